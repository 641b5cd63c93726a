//! Many point queries at the same time.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::de::DeserializeOwned;

use partita_client::{Result, Stored, Table};

/// The entities with these keys, in the order of the keys, with nothing where there is none. So many requests are under
/// way at once, at least one. Ends with the first that fails.
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
) -> Result<Vec<Option<Stored<T>>>> {
    let keys: Vec<(String, String)> =
        keys.into_iter().map(|(partition, row)| (partition.into(), row.into())).collect();
    let points = stream::iter(keys).map(|(partition, row)| {
        let table = table.clone();
        async move { table.find(&partition, &row).await }
    });
    points.buffered(concurrency.max(1)).try_collect().await
}
