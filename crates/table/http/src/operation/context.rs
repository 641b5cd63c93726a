//! What an operation is given: what all operations of its request share, and its own part of the request.

use std::sync::Arc;

use front::headers::{Header, Headers};
use front::metrics::Metrics;
use front::{Memory, MemoryShare, PropertiesStore, RefusalLog, ServiceKind, Site, SlowQueries, cut};
use http::header::{CONTENT_TYPE, HeaderName};
use model::{EntityKey, Refusal, TableName};
use service::long_work::{LONG_WORK, WRITTEN_PER_READ, WorkPermit};
use service::{Grant, Need, Service};
use store::TableRef;
use wire::url::QueryString;
use wire::{Format, Version, names};

use super::precondition::Precondition;
use crate::answer::TableFailure;
use crate::extension::Extensions;

/// What all operations of one request share.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub service: &'a Service,
    /// Beyond Azure.
    pub extensions: &'a Extensions,
    pub settings: &'a PropertiesStore,
    pub site: &'a Site,
    /// What the caller may do.
    pub grant: &'a Grant,
    pub version: Version,
    pub odata_3: bool,
    pub request_id: &'a str,
    /// The memory for requests and answers.
    pub memory: &'a Arc<Memory>,
    pub refusal_log: &'a RefusalLog,
    pub metrics: &'a Metrics,
    pub slow_queries: &'a SlowQueries,
    /// The body's size of the whole request, also for a part of a batch.
    pub body_bytes: usize,
    /// The permit of a batch: its parts are one piece of work.
    pub permit: Option<&'a WorkPermit<'a>>,
}

/// The request for one operation, alone or as part of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub headers: Headers<'a>,
    /// The condition on the stored entity.
    pub condition: &'a Precondition,
    pub query: &'a QueryString,
    pub body: &'a [u8],
    /// The format of the answer. Not used if the answer can only be an error.
    pub format: Format,
}

impl Context<'_> {
    /// Memory for an answer of at most this size; refused if there is too little.
    pub fn hold(&self, bytes: usize) -> Result<MemoryShare, common::Refusal> {
        let mut held = self.memory.nothing();
        if held.resize(bytes) { Ok(held) } else { Err(common::Refusal::Busy) }
    }

    /// Counts the entities that were read and those that are in the answer.
    pub fn count_entities(&self, examined: u64, returned: usize) {
        self.metrics.entities(examined, returned as u64);
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
        TableRef::table(self.site.account.clone(), name)
    }

    /// The service reports a missing table before any other error. The engine finds a missing table itself, so the table is
    /// looked up here only if there is another error.
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

    /// Refuses what the caller may not do, and logs it.
    pub fn permits(&self, need: &Need) -> Result<(), common::Refusal> {
        self.grant.permits(need).inspect_err(|refusal| self.log(refusal, need))
    }

    /// Refuses entities that the caller may not write, and logs it.
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

impl<'a> Call<'a> {
    /// The value of one of Partita's own headers, unless extensions are off.
    pub fn extension_header(&self, context: &Context<'_>, name: &HeaderName) -> Header<'a> {
        if context.extensions.are_on { self.headers.get(name) } else { Header::Absent }
    }

    pub fn content_type(&self) -> Result<Option<&str>, Refusal> {
        self.headers.get(&CONTENT_TYPE).required_readable(Refusal::MediaTypeNotSupported)
    }
}

/// Unknown OData options are refused: if they were ignored, the answer would not be what the client asked for.
pub fn refuse_unknown_options(query: &QueryString) -> Result<(), Refusal> {
    let known = [names::FILTER, names::SELECT, names::TOP, names::FORMAT];
    if query.names().any(|name| name.starts_with('$') && !known.contains(&name)) {
        return Err(common::Refusal::NotImplemented.into());
    }
    Ok(())
}

/// The value of an option. An empty value counts as none.
pub fn option<'q>(query: &'q QueryString, name: &str) -> Option<&'q str> {
    query.get(name).filter(|value| !value.is_empty())
}
