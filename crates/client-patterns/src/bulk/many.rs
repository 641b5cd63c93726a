//! Many concurrent point reads.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::de::DeserializeOwned;

use partita_client::{Result, StoredEntity, Table};

/// Reads the entities with these keys, in the order of the keys; `None` for those that do not exist. Sends up to
/// `concurrency` requests at the same time, at least one. Fails with the first error.
///
/// ```no_run
/// # async fn run(table: partita_client::Table) -> partita_client::Result<()> {
/// use partita_client::Entity;
/// use partita_client_patterns::bulk::get_many;
///
/// let found = get_many::<Entity>(&table, [("novels", "emma"), ("novels", "persuasion")], 8).await?;
/// for book in found.into_iter().flatten() {
///     println!("{:?}", book.text("Title"));
/// }
/// # Ok(())
/// # }
/// ```
pub async fn get_many<T: DeserializeOwned>(
    table: &Table,
    keys: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    concurrency: usize,
) -> Result<Vec<Option<StoredEntity<T>>>> {
    let keys: Vec<(String, String)> =
        keys.into_iter().map(|(partition, row)| (partition.into(), row.into())).collect();
    let points = stream::iter(keys).map(|(partition, row)| {
        let table = table.clone();
        async move { table.find(&partition, &row).await }
    });
    points.buffered(concurrency.max(1)).try_collect().await
}
