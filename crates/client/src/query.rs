//! Queries, read by pages or as a stream of entities.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use serde::de::DeserializeOwned;
use wire::names;

use crate::answers;
use crate::entity::{Entity, StoredEntity};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::table::Table;
use crate::transport::ServiceAnswer;

/// A query of one table, made by [`Table::query`].
#[derive(Clone, Debug)]
#[must_use = "a query does nothing before it is asked for its entities"]
pub struct Query {
    table: Table,
    filter: Option<Filter>,
    select: Option<Vec<String>>,
    take: Option<usize>,
    page_size: Option<usize>,
    examined: bool,
}

/// Some of the entities that a query finds, and where to continue.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page<T> {
    /// Can be empty even if `next` is set: a service ends a page after some seconds.
    pub entities: Vec<StoredEntity<T>>,
    /// There is more, from here on.
    pub next: Option<Continuation>,
    /// How many entities the service examined to find these, if [`Query::examined`] was set and the service reports it:
    /// Partita does.
    pub examined: Option<u64>,
}

/// The position of the next page. It can be saved as text, and the query continued at any time, even by another process.
///
/// ```
/// use partita_client::Continuation;
///
/// # fn main() -> partita_client::Result<()> {
/// let kept = "NextPartitionKey=1%218%21U21pdGg-&NextRowKey=1%2112%21QmVuMTg5OA--";
/// let next: Continuation = kept.parse()?;
/// assert_eq!(next.to_string(), kept);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Continuation {
    partition_key: String,
    row_key: Option<String>,
}

/// A page as the service has written it. For exact copies, which keep even the spelling of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonPage {
    /// An object whose member `value` lists the entities, with minimal metadata.
    pub json: Bytes,
    /// There is more, from here on.
    pub next: Option<Continuation>,
}

impl Continuation {
    /// From the two tokens of an answer.
    pub fn new(partition_key: impl Into<String>, row_key: Option<String>) -> Self {
        Self { partition_key: partition_key.into(), row_key }
    }

    /// The token `NextPartitionKey`, which is not a partition key.
    pub fn partition_key(&self) -> &str {
        &self.partition_key
    }

    /// The token `NextRowKey`.
    pub fn row_key(&self) -> Option<&str> {
        self.row_key.as_deref()
    }

    /// `None` for an empty token: services refuse it in a request.
    fn of(answer: &ServiceAnswer) -> Option<Self> {
        let token = |name| answer.header(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let partition_key = token(names::NEXT_PARTITION_KEY_HEADER)?;
        Some(Self { partition_key, row_key: token(names::NEXT_ROW_KEY_HEADER) })
    }
}

impl fmt::Display for Continuation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", names::NEXT_PARTITION_KEY, crate::transport::encode(&self.partition_key))?;
        match &self.row_key {
            Some(row_key) => write!(f, "&{}={}", names::NEXT_ROW_KEY, crate::transport::encode(row_key)),
            None => Ok(()),
        }
    }
}

impl FromStr for Continuation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let query = wire::url::QueryString::parse(text);
        let part = |name| query.as_ref().and_then(|query| query.get(name)).map(str::to_owned);
        let partition_key = part(names::NEXT_PARTITION_KEY).ok_or_else(|| {
            Error::invalid(format!("{text:?} is not where a page begins; keep the whole text"))
        })?;
        Ok(Self { partition_key, row_key: part(names::NEXT_ROW_KEY) })
    }
}

impl Query {
    pub(crate) fn new(table: Table) -> Self {
        Self { table, filter: None, select: None, take: None, page_size: None, examined: false }
    }

    /// Only entities that match. Several filters must all match.
    pub fn filter(mut self, filter: impl Into<Filter>) -> Self {
        let filter = filter.into();
        self.filter = Some(match self.filter.take() {
            None => filter,
            Some(before) => before.and(filter),
        });
        self
    }

    /// Only these properties. If an entity lacks one, it is absent.
    pub fn select<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.select = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// At most this many entities, over all pages.
    pub fn take(mut self, entities: usize) -> Self {
        self.take = Some(entities);
        self
    }

    /// At most this many entities in a page; by default 1,000.
    pub fn page_size(mut self, entities: usize) -> Self {
        self.page_size = Some(entities);
        self
    }

    /// Asks how many entities the service examines. The more of them don't match, the more the query costs in vain.
    pub fn examined(mut self) -> Self {
        self.examined = true;
        self
    }

    /// One page: the first, or the one after an earlier page. `take` limits this one page.
    pub async fn page<T: DeserializeOwned>(&self, from: Option<&Continuation>) -> Result<Page<T>> {
        let page = self.read(from, self.take).await?;
        let entities = page.entities.into_iter().map(StoredEntity::into_typed).collect::<Result<_>>()?;
        Ok(Page { entities, next: page.next, examined: page.examined })
    }

    /// A page as the service has written it. Nothing in it is decrypted.
    pub async fn json_page(&self, from: Option<&Continuation>) -> Result<JsonPage> {
        let answer = self.ask(from, self.take).await?;
        Ok(JsonPage { next: Continuation::of(&answer), json: answer.body })
    }

    /// A stream of entities, which reads the next page when it is needed.
    ///
    /// ```no_run
    /// # async fn run(table: partita_client::Table) -> partita_client::Result<()> {
    /// use futures_util::TryStreamExt as _;
    /// use partita_client::{Entity, property};
    ///
    /// let query = table.query().filter(property("Age").ge(30));
    /// let mut people = std::pin::pin!(query.stream::<Entity>());
    /// while let Some(person) = people.try_next().await? {
    ///     println!("{}", person.row_key);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream<T: DeserializeOwned + Send + 'static>(
        self,
    ) -> impl Stream<Item = Result<StoredEntity<T>>> + Send {
        self.resolve(StoredEntity::into_typed)
    }

    /// A stream of what a function makes of each entity. For tables with several types.
    ///
    /// ```no_run
    /// # async fn run(table: partita_client::Table) -> partita_client::Result<()> {
    /// # #[derive(serde::Deserialize)] struct Person {}
    /// # #[derive(serde::Deserialize)] struct Department {}
    /// use futures_util::TryStreamExt as _;
    ///
    /// enum Row { Person(Person), Department(Department) }
    ///
    /// let rows: Vec<Row> = table
    ///     .query()
    ///     .resolve(|entity| match entity.text("Kind") {
    ///         Some("person") => Ok(Row::Person(entity.to()?)),
    ///         _ => Ok(Row::Department(entity.to()?)),
    ///     })
    ///     .try_collect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn resolve<R: Send + 'static>(
        self,
        make: impl FnMut(StoredEntity<Entity>) -> Result<R> + Send + 'static,
    ) -> impl Stream<Item = Result<R>> + Send {
        let mut make = make;
        self.pages()
            .map_ok(|entities| stream::iter(entities.into_iter().map(Ok)))
            .try_flatten()
            .map(move |stored| stored.and_then(&mut make))
    }

    /// All entities, in memory.
    pub async fn all<T: DeserializeOwned + Send + 'static>(self) -> Result<Vec<StoredEntity<T>>> {
        self.stream().try_collect().await
    }

    /// The first entity, if there is one.
    pub async fn first<T: DeserializeOwned + Send + 'static>(self) -> Result<Option<StoredEntity<T>>> {
        std::pin::pin!(self.take(1).stream()).try_next().await
    }

    /// Counts the entities. Reads each of them, without its properties.
    pub async fn count(self) -> Result<u64> {
        let query = self.select([names::PARTITION_KEY]);
        query.pages().try_fold(0, |count, page| async move { Ok(count + page.len() as u64) }).await
    }

    fn pages(self) -> impl Stream<Item = Result<Vec<StoredEntity<Entity>>>> + Send {
        enum At {
            Start,
            From(Continuation),
            End,
        }
        let left = self.take;
        stream::try_unfold((self, At::Start, left), |(query, at, left)| async move {
            let from = match &at {
                At::Start => None,
                At::From(next) => Some(next),
                At::End => return Ok(None),
            };
            if left == Some(0) {
                return Ok(None);
            }
            let page = query.read(from, left).await?;
            let left = left.map(|left| left.saturating_sub(page.entities.len()));
            let at = page.next.map_or(At::End, At::From);
            Ok(Some((page.entities, (query, at, left))))
        })
    }

    async fn ask(&self, from: Option<&Continuation>, left: Option<usize>) -> Result<ServiceAnswer> {
        let mut request = self.table.request("query", http::Method::GET, "()");
        if let Some(filter) = &self.filter {
            request = request.query(names::FILTER, filter.checked()?);
        }
        if let Some(mut select) = self.select.clone() {
            self.table.extend_select(&mut select);
            request = request.query(names::SELECT, select.join(","));
        }
        let page_max = model::limits::PAGE_ENTITIES_MAX;
        let top = [left, self.page_size].into_iter().flatten().min();
        if let Some(top) = top {
            request = request.query(names::TOP, top.clamp(1, page_max).to_string());
        }
        if let Some(from) = from {
            request = request.query(names::NEXT_PARTITION_KEY, from.partition_key.as_str());
            if let Some(row_key) = &from.row_key {
                request = request.query(names::NEXT_ROW_KEY, row_key.as_str());
            }
        }
        if self.examined {
            request = request.header(names::X_PARTITA_EXAMINED, "1");
        }
        self.table.send(request).await
    }

    async fn read(&self, from: Option<&Continuation>, left: Option<usize>) -> Result<Page<Entity>> {
        let answer = self.ask(from, left).await?;
        let mut entities = answers::entities(&answer.body)?;
        // A service should not send more than `$top`, but the caller's limit must hold in any case.
        entities.truncate(left.unwrap_or(usize::MAX));
        for stored in &mut entities {
            self.table.decrypt(stored, self.select.as_deref()).await?;
        }
        let next = Continuation::of(&answer);
        let examined = answer.header(names::X_PARTITA_EXAMINED).and_then(|text| text.parse().ok());
        Ok(Page { entities, next, examined })
    }
}
