//! One file per family of operations: decode, call the service, encode.

mod batch;
pub mod condition;
mod entity_query;
mod entity_write;
mod long_work;
mod service_document;
mod show;
mod table;

use std::sync::Arc;

use front::headers::Headers;
use front::{Held, Memory, PropertiesStore, RefusalLog, Site, cut};
use http::header::CONTENT_TYPE;
use model::{EntityKey, Refusal, TableName};
use service::{Grant, Need, Service};
use store::TableRef;
use wire::url::QueryString;
use wire::{Format, Version, names};

use crate::answer::{Answer, Failure};
use crate::route::Operation;
use condition::Condition;
use long_work::{LONG_WORK, Place, WRITTEN_PER_READ};

/// What all operations of one request share.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub service: &'a Service,
    pub settings: &'a PropertiesStore,
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
    /// Where the parts of a batch are worked on.
    pub place: Option<&'a Place<'a>>,
}

/// One operation as it was asked, alone or as part of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub headers: Headers<'a>,
    /// Of the entity that is there.
    pub condition: &'a Condition,
    pub query: &'a QueryString,
    pub body: &'a [u8],
    /// What to answer in. Meaningless where nothing but an error could be shown.
    pub format: Format,
}

impl Context<'_> {
    /// Memory for an answer of which no more than this is known; refused if there is none.
    fn hold(&self, bytes: usize) -> Result<Held, Refusal> {
        let mut held = self.memory.nothing();
        if held.resize(bytes) { Ok(held) } else { Err(Refusal::Busy) }
    }

    /// Where to read the body, or to write an answer of about so many bytes.
    async fn take_place(&self, bytes: usize) -> Place<'static> {
        LONG_WORK.place(bytes.max(self.body_bytes * WRITTEN_PER_READ)).await
    }

    /// Reads the body, or a part of it.
    async fn read<T>(&self, read: impl FnOnce() -> T) -> T {
        self.write(0, read).await
    }

    /// Writes an answer of about so many bytes.
    async fn write<T>(&self, bytes: usize, write: impl FnOnce() -> T) -> T {
        match self.place {
            Some(place) => place.run(write),
            None => self.take_place(bytes).await.run(write),
        }
    }

    fn table(&self, name: TableName) -> TableRef {
        TableRef::table(self.site.account.clone(), name)
    }

    /// The service says that a table is missing before it says what else is wrong. An engine finds a missing table itself,
    /// so that the table is looked for here only if something is wrong.
    async fn unless_missing<T>(&self, table: &TableRef, checked: Result<T, Failure>) -> Result<T, Failure> {
        if checked.is_err() {
            self.service.require_table(table).await?;
        }
        checked
    }

    /// Refuses what the caller may not do, and tells the log.
    fn permits(&self, need: &Need) -> Result<(), Refusal> {
        self.grant.permits(need).inspect_err(|refusal| self.log(refusal, need))
    }

    /// Refuses entities that the caller may not write, and tells the log.
    fn reaches(&self, key: &EntityKey) -> Result<(), Refusal> {
        let outside = || format!("writing the entity {:?}, {:?}", key.partition.as_str(), key.row.as_str());
        self.grant.reaches(key).inspect_err(|refusal| self.log(refusal, &outside()))
    }

    fn log(&self, refusal: &Refusal, asked: &impl std::fmt::Display) {
        self.refusal_log.write(|| {
            let why = format!("{} does not permit {asked}", self.grant);
            tracing::warn!(
                request_id = self.request_id,
                code = refusal.code(),
                why = cut(&why),
                "access refused"
            );
        });
    }
}

impl Call<'_> {
    fn content_type(&self) -> Result<Option<&str>, Refusal> {
        self.headers.get(&CONTENT_TYPE).required_readable(Refusal::MediaTypeNotSupported)
    }
}

pub async fn run(context: &Context<'_>, operation: Operation, call: &Call<'_>) -> Result<Answer, Failure> {
    match operation {
        Operation::QueryTables => table::query(context, call).await,
        Operation::GetTable(name) => table::get(context, call, name).await,
        Operation::CreateTable => table::create(context, call).await,
        Operation::DeleteTable(name) => table::delete(context, name).await,
        Operation::QueryEntities(table) => entity_query::query(context, call, table).await,
        Operation::GetEntity(table, key) => entity_query::get(context, call, table, key).await,
        Operation::InsertEntity(_)
        | Operation::PutEntity(..)
        | Operation::MergeEntity(..)
        | Operation::DeleteEntity(..) => entity_write::run(context, call, operation).await,
        Operation::Batch => batch::run(context, call).await,
        Operation::GetProperties => service_document::get_properties(context).await,
        Operation::SetProperties => service_document::set_properties(context, call).await,
        Operation::GetStatistics => Ok(service_document::get_statistics()),
        Operation::GetPolicies(table) => service_document::get_policies(context, table).await,
        Operation::SetPolicies(table) => service_document::set_policies(context, call, table).await,
        Operation::RefuseIn(table, refusal) => {
            context.service.require_table(&context.table(table)).await?;
            // The store was asked for what lies beneath a table, not for a wrong number of keys.
            let reached_the_store = refusal == Refusal::NotImplemented;
            Err(Failure { reached_the_store, ..refusal.into() })
        }
    }
}

/// OData options the service does not have are not ignored: the answer would not be what was asked for.
fn refuse_unknown_options(query: &QueryString) -> Result<(), Refusal> {
    let known = [names::FILTER, names::SELECT, names::TOP, names::FORMAT];
    if query.names().any(|name| name.starts_with('$') && !known.contains(&name)) {
        return Err(Refusal::NotImplemented);
    }
    Ok(())
}

/// An option's value; an empty one is as good as none.
fn option<'q>(query: &'q QueryString, name: &str) -> Option<&'q str> {
    query.get(name).filter(|value| !value.is_empty())
}
