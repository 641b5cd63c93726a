//! What an operation is given: what all operations of its request share, and its own part of the request.

use std::sync::Arc;

use front::headers::Headers;
use front::{Held, Memory, RefusalLog, ServiceKind, Settings, Site, cut};
use http::header::CONTENT_TYPE;
use model::{EntityKey, Refusal, TableName};
use service::long_work::{LONG_WORK, WRITTEN_PER_READ, WorkPermit};
use service::{Grant, Need, Service};
use store::TableRef;
use wire::url::Query;
use wire::{Format, Version, names};

use super::precondition::Precondition;
use crate::answer::Failure;

/// What all operations of one request share.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub service: &'a Service,
    pub settings: &'a Settings,
    pub site: &'a Site,
    /// What the caller may touch.
    pub grant: &'a Grant,
    pub version: Version,
    pub odata_3: bool,
    pub request_id: &'a str,
    /// What the answer is to be held in.
    pub memory: &'a Arc<Memory>,
    pub refusal_log: &'a RefusalLog,
    /// Of the whole request, also for a part of a batch.
    pub body_bytes: usize,
    /// What the parts of a batch share, which are one piece of work.
    pub permit: Option<&'a WorkPermit<'a>>,
}

/// One operation as it was asked, alone or as part of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub headers: Headers<'a>,
    /// Of the entity that is there.
    pub condition: &'a Precondition,
    pub query: &'a Query,
    pub body: &'a [u8],
    /// What to answer in. Meaningless where nothing but an error could be shown.
    pub format: Format,
}

impl Context<'_> {
    /// Memory for an answer of which no more than this is known; refused if there is none.
    pub fn hold(&self, bytes: usize) -> Result<Held, common::Refusal> {
        let mut held = self.memory.nothing();
        if held.resize(bytes) { Ok(held) } else { Err(common::Refusal::Busy) }
    }

    /// For reading the body, or for writing an answer of about so many bytes.
    pub async fn work_permit(&self, bytes: usize) -> WorkPermit<'static> {
        LONG_WORK.permit(bytes.max(self.body_bytes * WRITTEN_PER_READ)).await
    }

    /// Reads the body, or a part of it.
    pub async fn read<T>(&self, read: impl FnOnce() -> T) -> T {
        self.write(0, read).await
    }

    /// Writes an answer of about so many bytes.
    pub async fn write<T>(&self, bytes: usize, write: impl FnOnce() -> T) -> T {
        match self.permit {
            Some(permit) => permit.run(write),
            None => self.work_permit(bytes).await.run(write),
        }
    }

    pub fn table(&self, name: TableName) -> TableRef {
        TableRef { account: self.site.account.clone(), name }
    }

    /// The service says that a table is missing before it says what else is wrong. An engine finds a missing table itself,
    /// so that the table is looked for here only if something is wrong.
    pub async fn unless_missing<T>(
        &self,
        table: &TableRef,
        checked: Result<T, TableFailure>,
    ) -> Result<T, TableFailure> {
        if checked.is_err() {
            self.service.require_table(table).await?;
        }
        checked
    }

    /// Refuses what the caller may not do, and tells the log.
    pub fn permits(&self, need: &Need) -> Result<(), common::Refusal> {
        self.grant.permits(need).inspect_err(|refusal| self.log(refusal, need))
    }

    /// Refuses entities that the caller may not write, and tells the log.
    pub fn reaches(&self, key: &EntityKey) -> Result<(), common::Refusal> {
        let outside = || format!("writing the entity {:?}, {:?}", key.partition.as_str(), key.row.as_str());
        self.grant.reaches(key).inspect_err(|refusal| self.log(refusal, &outside()))
    }

    fn log(&self, refusal: &common::Refusal, asked: &impl std::fmt::Display) {
        self.refusal_log.write(|| {
            let why = format!("{} does not permit {asked}", self.grant);
            tracing::warn!(
                request_id = self.request_id,
                code = refusal.code(ServiceKind::Table),
                why = cut(&why),
                "access refused"
            );
        });
    }
}

impl Call<'_> {
    pub fn content_type(&self) -> Result<Option<&str>, Refusal> {
        self.headers.get(&CONTENT_TYPE).required_readable(Refusal::MediaTypeNotSupported)
    }
}

/// OData options the service does not have are not ignored: the answer would not be what was asked for.
pub fn refuse_unknown_options(query: &Query) -> Result<(), Refusal> {
    let known = [names::FILTER, names::SELECT, names::TOP, names::FORMAT];
    if query.names().any(|name| name.starts_with('$') && !known.contains(&name)) {
        return Err(common::Refusal::NotImplemented.into());
    }
    Ok(())
}

/// An option's value; an empty one is as good as none.
pub fn option<'q>(query: &'q Query, name: &str) -> Option<&'q str> {
    query.get(name).filter(|value| !value.is_empty())
}
