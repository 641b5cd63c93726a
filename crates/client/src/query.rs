//! Queries: what to look for, a page at a time, or one entity after the other.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use serde::de::DeserializeOwned;
use wire::names;

use crate::answers;
use crate::entity::{Entity, Stored};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::table::Table;
use crate::transport::Answer;

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

/// Some of the entities a query finds, and where the others begin.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page<T> {
    /// Perhaps none, though there are more: a service ends a page when its time is over.
    pub entities: Vec<Stored<T>>,
    /// There is more, from here on.
    pub next: Option<Continuation>,
    /// How many entities the service looked at to find these, if [`Query::examined`] asked and it can tell: Partita can.
    pub examined: Option<u64>,
}

/// Where a page begins. As text it can be kept, and the query gone on with at any time, in another process too.
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

/// A page as the service has written it: for copies in which nothing may change, not even the spelling of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonPage {
    /// An object whose member `value` lists the entities, with minimal metadata.
    pub json: Bytes,
    /// There is more, from here on.
    pub next: Option<Continuation>,
}

impl Continuation {
    /// Of the two tokens of an answer, as the service gave them.
    pub fn new(partition_key: impl Into<String>, row_key: Option<String>) -> Self {
        Self { partition_key: partition_key.into(), row_key }
    }

    /// The token `NextPartitionKey`, which is no key.
    pub fn partition_key(&self) -> &str {
        &self.partition_key
    }

    /// The token `NextRowKey`.
    pub fn row_key(&self) -> Option<&str> {
        self.row_key.as_deref()
    }

    /// An empty token is as good as none, and services refuse to take it back.
    fn of(answer: &Answer) -> Option<Self> {
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

    /// Only entities that this keeps; with an earlier filter, those that both keep.
    pub fn filter(mut self, filter: impl Into<Filter>) -> Self {
        let filter = filter.into();
        self.filter = Some(match self.filter.take() {
            None => filter,
            Some(before) => before.and(filter),
        });
        self
    }

    /// Only these properties. Those an entity does not have are absent.
    pub fn select<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.select = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The first so many, of all pages together.
    pub fn take(mut self, entities: usize) -> Self {
        self.take = Some(entities);
        self
    }

    /// How many entities a page has at most; a service gives 1,000 unless told.
    pub fn page_size(mut self, entities: usize) -> Self {
        self.page_size = Some(entities);
        self
    }

    /// Asks how many entities are looked at: the difference to those found is what the query costs in vain.
    pub fn examined(mut self) -> Self {
        self.examined = true;
        self
    }

    /// One page: the first, or the one that begins where an earlier one ended. `take` bounds this one page.
    pub async fn page<T: DeserializeOwned>(&self, from: Option<&Continuation>) -> Result<Page<T>> {
        let page = self.read(from, self.take).await?;
        let entities = page.entities.into_iter().map(Stored::into_typed).collect::<Result<_>>()?;
        Ok(Page { entities, next: page.next, examined: page.examined })
    }

    /// The same page as the service has written it. Nothing in it is decrypted.
    pub async fn json_page(&self, from: Option<&Continuation>) -> Result<JsonPage> {
        let answer = self.ask(from, self.take).await?;
        Ok(JsonPage { next: Continuation::of(&answer), json: answer.body })
    }

    /// One entity after the other, read page by page as they are asked for.
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
    ) -> impl Stream<Item = Result<Stored<T>>> + Send {
        self.resolve(Stored::into_typed)
    }

    /// The same, with a function that makes of each entity what it is: for tables that hold several types.
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
        make: impl FnMut(Stored<Entity>) -> Result<R> + Send + 'static,
    ) -> impl Stream<Item = Result<R>> + Send {
        let mut make = make;
        self.pages()
            .map_ok(|entities| stream::iter(entities.into_iter().map(Ok)))
            .try_flatten()
            .map(move |stored| stored.and_then(&mut make))
    }

    /// All of them at once, in memory.
    pub async fn all<T: DeserializeOwned + Send + 'static>(self) -> Result<Vec<Stored<T>>> {
        self.stream().try_collect().await
    }

    /// The first, if there is one.
    pub async fn first<T: DeserializeOwned + Send + 'static>(self) -> Result<Option<Stored<T>>> {
        std::pin::pin!(self.take(1).stream()).try_next().await
    }

    /// How many there are. Every one of them is read, without its properties.
    pub async fn count(self) -> Result<u64> {
        let query = self.select([names::PARTITION_KEY]);
        query.pages().try_fold(0, |count, page| async move { Ok(count + page.len() as u64) }).await
    }

    fn pages(self) -> impl Stream<Item = Result<Vec<Stored<Entity>>>> + Send {
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

    async fn ask(&self, from: Option<&Continuation>, left: Option<usize>) -> Result<Answer> {
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
        // A service gives no more than it was asked for, but a limit is worth a look.
        entities.truncate(left.unwrap_or(usize::MAX));
        for stored in &mut entities {
            self.table.decrypt(stored, self.select.as_deref()).await?;
        }
        let next = Continuation::of(&answer);
        let examined = answer.header(names::X_PARTITA_EXAMINED).and_then(|text| text.parse().ok());
        Ok(Page { entities, next, examined })
    }
}
