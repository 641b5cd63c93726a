//! What an operation is given: what all operations of its request share, and its own part of the request.

use front::headers::{Header, Headers};
use front::metrics::Metrics;
use front::{AccountMemory, MemoryShare, PropertiesStore, RefusalLog, ServiceKind, Site, SlowQueries, cut};
use http::header::{CONTENT_TYPE, HeaderName};
use model::{EntityKey, Refusal, TableName};
use service::long_work::{LONG_WORK, WRITTEN_PER_READ, WorkPermit};
use service::{Grant, Need, Service};
use store::TableRef;
use wire::format::{self, BodyFormat};
use wire::url::QueryString;
use wire::{Format, TableVersion as _, Version, names};

use super::precondition::Precondition;
use crate::answer::{Preference, TableFailure};
use crate::extension::Extensions;
use crate::headers::PREFER;

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
    pub memory: &'a AccountMemory,
    pub refusal_log: &'a RefusalLog,
    pub metrics: &'a Metrics,
    pub slow_queries: &'a SlowQueries,
    /// The body's size of the whole request, also for a part of a batch.
    pub body_bytes: usize,
    /// Whether this is within `WorkPermit::run_all`, as the parts of a batch are: they are one piece of work.
    pub is_permitted: bool,
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
    /// What was read of the headers before; `None` if they are read for one operation only.
    pub facts: Option<&'a HeaderFacts>,
}

/// What the headers of a write say of its body and of its answer. Most parts of a batch have the same headers.
#[derive(Clone, Debug)]
pub struct HeaderFacts {
    body_format: Result<BodyFormat, Refusal>,
    preference: Option<Preference>,
}

impl HeaderFacts {
    pub fn read(headers: Headers<'_>, version: Version) -> Self {
        Self { body_format: body_format(headers, version), preference: preference(headers, version) }
    }
}

fn body_format(headers: Headers<'_>, version: Version) -> Result<BodyFormat, Refusal> {
    format::of_body(content_type(headers)?, version)
}

fn content_type(headers: Headers<'_>) -> Result<Option<&str>, Refusal> {
    headers.get(&CONTENT_TYPE).required_readable(Refusal::MediaTypeNotSupported)
}

fn preference(headers: Headers<'_>, version: Version) -> Option<Preference> {
    headers.get(&PREFER).if_readable().filter(|_| version.has_prefer()).and_then(Preference::parse)
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
        match self.is_permitted {
            true => WorkPermit::PIECE.run(write),
            false => self.work_permit(bytes).await.run(write),
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
        content_type(self.headers)
    }

    pub fn body_format(&self, context: &Context<'_>) -> Result<BodyFormat, Refusal> {
        match self.facts {
            Some(facts) => facts.body_format.clone(),
            None => body_format(self.headers, context.version),
        }
    }

    pub fn preference(&self, context: &Context<'_>) -> Option<Preference> {
        match self.facts {
            Some(facts) => facts.preference,
            None => preference(self.headers, context.version),
        }
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
