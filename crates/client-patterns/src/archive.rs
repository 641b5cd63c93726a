//! Entities that move from one table to another, such as from the current ones to an archive: each is in one of them.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::outbox::{Committed, Outbox};
use super::steps::Step;
use partita_client::{Entity, Error, Match, Result, Stored, Table, TableService, Transaction};

/// Moves entities from one table to another; with the two the other way round, back.
///
/// An entity is deleted in the one and noted for the other in one transaction, so that nobody can change it while it moves
/// and it is never in both. Then it is inserted into the other; if the process dies before that, whoever
/// [heals](Outbox::heal) the outbox does it. In between [`find`](Self::find) sees it nevertheless. A move that is repeated
/// after the entity moved on does nothing: it finds the mark that it left, which [`collect`](Self::collect) deletes in time.
///
/// ```no_run
/// # async fn run(service: partita_client::TableService) -> partita_client::Result<()> {
/// use partita_client::Match;
/// use partita_client_patterns::archive::Archive;
///
/// let archive = Archive::new(&service, "Current", "Former")?;
/// archive.store("Sales", "000223", Match::Any).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Archive {
    outbox: Outbox,
    to: Table,
}

/// Where an entity was found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Found<T> {
    /// Where it came from: it was not moved.
    Source(Stored<T>),
    /// On its way.
    Moving(T),
    /// Where it went.
    Destination(Stored<T>),
}

impl Archive {
    /// From a table to another of the same account.
    pub fn new(service: &TableService, from: &str, to: &str) -> Result<Self> {
        Self::with_outbox(Outbox::new(service, from)?, to)
    }

    /// The same with settings of the outbox, which is that of the table to move from.
    pub fn with_outbox(outbox: Outbox, to: &str) -> Result<Self> {
        if outbox.table().name().eq_ignore_ascii_case(to) {
            return Err(Error::Invalid(format!(
                "entities can't be moved from {to} to {to}; name two tables"
            )));
        }
        Ok(Self { to: outbox.table_of(to)?, outbox })
    }

    /// The outbox by which it moves entities: that of the table they come from.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Moves an entity. Fails if there is none (404), not this version (412), or one whose last move is not done
    /// with (409).
    ///
    /// An entity with the same keys in the other table is an [`Error::Invalid`]; one that comes there in between makes the
    /// message wait until it is gone, poisoned in the end: neither is lost.
    pub async fn store(
        &self,
        partition_key: &str,
        row_key: &str,
        condition: impl Into<Match>,
    ) -> Result<Committed> {
        let condition = condition.into();
        let entity: Stored<Entity> = self.outbox.table().get(partition_key, row_key).await?;
        if self.to.find::<Entity>(partition_key, row_key).await?.is_some() {
            return Err(Error::Invalid(format!(
                "{} has an entity {row_key:?} in partition {partition_key:?} already; delete or rename one of the two",
                self.to.name()
            )));
        }
        // What is deleted must be what was read.
        let version = match &condition {
            Match::Any => Match::from(&entity.etag),
            version => version.clone(),
        };
        let mut transaction = Transaction::new();
        transaction.delete(partition_key, row_key, version);
        let step = Step::insert(self.to.name(), &entity.entity)?;
        self.outbox.commit_as(row_key, transaction, &[step]).await
    }

    /// Deletes the marks of moves that are older than this: see [`Outbox::collect_marks`].
    pub async fn collect(&self, older_than: Duration) -> Result<u64> {
        self.outbox.collect_marks(self.to.name(), older_than).await
    }

    /// An entity, wherever it is, unless it is poisoned.
    pub async fn find<T: DeserializeOwned>(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Found<T>>> {
        // In the order in which it moves, so that it can't slip past.
        if let Some(found) = self.outbox.table().find(partition_key, row_key).await? {
            return Ok(Some(Found::Source(found)));
        }
        let message = self.outbox.queue(partition_key).find(row_key).await?;
        let steps = message.map(|message| Step::read(&message.body)).transpose()?.unwrap_or_default();
        if let Some(found) = self.to.find(partition_key, row_key).await? {
            return Ok(Some(Found::Destination(found)));
        }
        steps.into_iter().next().map(|step| Ok(Found::Moving(step.into_entity().into_typed()?))).transpose()
    }
}
