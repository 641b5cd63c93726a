//! Entity group transactions: parts are routed and decoded like single requests, then written together.

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;
use http::header::{ACCEPT, HeaderName};
use model::Refusal;
use service::WriteGroup;
use wire::batch::{self, Batch, BatchPart, PartAnswer};
use wire::url::{QueryString, Resource};
use wire::{Format, MetadataLevel, TableVersion as _, format, names};

use super::context::HeaderFacts;
use super::entity_write::{self, Reply, WriteRequest};
use super::precondition::Precondition;
use super::{Call, Context, Operation};
use crate::answer::{Content, Preference, TableAnswer, TableFailure};
use crate::headers::{DATA_SERVICE_VERSION, PREFER, X_HTTP_METHOD};
use crate::respond;
use crate::route;
use front::headers::Headers;
use front::{MemoryShare, request_id};

static CONTENT_ID: HeaderName = HeaderName::from_static("content-id");

pub async fn run(context: &Context<'_>, call: &Call<'_>) -> Result<TableAnswer, TableFailure> {
    let content_type = call.content_type()?.unwrap_or_default();
    let permit = context.work_permit(0).await;
    // A body that is not a batch is refused as a whole; a batch is answered part by part.
    let read = permit.run_all(read(context, call, content_type)).await?;
    drop(permit);
    let batch_id = request_id::new_guid();
    let (body, held) = match read {
        ReadBatch::Writes(writes) => change_set(context, &batch_id, writes).await?,
        // The writes are not done, but a refusal is sent even if it is above the memory limit.
        ReadBatch::Failed(answer) => {
            let mut held = context.memory.nothing();
            held.grow_anyway(answer.body.len());
            (batch::write_change_set(&batch_id, &request_id::new_guid(), &[answer]), held)
        }
        ReadBatch::Query(part) => {
            let answer = query(context, call, &part).await?;
            let held = context.hold(answer.body.len())?;
            let write = || batch::write_query(&batch_id, &answer);
            (context.write(answer.body.len(), write).await, held)
        }
        ReadBatch::Closed => {
            (batch::write_change_set(&batch_id, &request_id::new_guid(), &[]), context.memory.nothing())
        }
    };
    let content = Content { content_type: batch::content_type(&batch_id).into(), bytes: body.into() };
    let content = content.holding(held);
    Ok(TableAnswer { status: 202, content: Some(content), ..TableAnswer::default() })
}

/// A batch that was read and checked, and nothing of it is done yet.
enum ReadBatch<'a> {
    Writes(Writes),
    /// The answer to the part that failed.
    Failed(PartAnswer),
    Query(BatchPart<'a>),
    Closed,
}

/// The writes of a change set, and how to answer each.
struct Writes {
    group: WriteGroup,
    replies: Vec<PartReply>,
    last: Option<LastPart>,
    alone: bool,
}

/// What the answer of a failed change set shows of the part that was read last.
#[derive(Default)]
struct LastPart {
    error_level: Option<MetadataLevel>,
    content_id: Option<String>,
    /// Of an insert.
    preference: Option<Preference>,
}

struct PartReply {
    reply: Reply,
    content_id: Option<String>,
    atom_version: &'static str,
}

async fn read<'a>(
    context: &Context<'_>,
    call: &Call<'a>,
    content_type: &'a str,
) -> Result<ReadBatch<'a>, TableFailure> {
    let read = batch::read(content_type, call.body).map_err(|_| Refusal::BodyNotReadable)?;
    // The secondary allows a query, because it only reads.
    if context.site.secondary && !matches!(read, Batch::Query(_)) {
        return Err(common::Refusal::WritesNotAllowed.into());
    }
    match read {
        Batch::ChangeSet(parts) => read_writes(context, call, parts).await,
        Batch::Query(part) => Ok(ReadBatch::Query(part)),
        Batch::Closed => Ok(ReadBatch::Closed),
    }
}

/// One part, parsed like a request of its own.
struct Inner<'a> {
    part: &'a BatchPart<'a>,
    operation: Result<Operation, Refusal>,
    condition: Precondition,
    headers: Headers<'a>,
    query: QueryString,
    format: Format,
    error_level: Option<MetadataLevel>,
    facts: HeaderFacts,
}

impl<'a> Inner<'a> {
    fn new(context: &Context<'_>, outer: &Call<'_>, part: &'a BatchPart<'a>) -> Self {
        let headers = Headers::Part(&part.headers);
        let target = context.site.inner_path(part.target);
        let (path, query_text) = target.split_once('?').unwrap_or((target, ""));
        let parsed_query = QueryString::parse(query_text);
        let query = parsed_query.clone().unwrap_or_default();

        let accept = headers.get(&ACCEPT).if_readable().or_else(|| outer.headers.get(&ACCEPT).if_readable());
        let negotiated =
            format::negotiate(query.get(names::FORMAT), accept, context.version, context.odata_3);
        let (format, error_level) = match &negotiated {
            Ok(negotiated) => (negotiated.success, negotiated.error),
            Err(_) => (Format::Json(MetadataLevel::Minimal), None),
        };
        let operation = || {
            parsed_query.ok_or(Refusal::QuerySyntax)?;
            let method = Method::from_bytes(part.method.as_bytes()).map_err(|_| Refusal::MethodNotAllowed)?;
            let method = route::effective_method(&method, headers)?;
            let resource = Resource::parse(path)?;
            let operation = route::resolve(&method, resource, context.site.account.as_str())?;
            if operation.info(&Precondition::None).shows_document {
                negotiated?;
            }
            Ok(operation)
        };
        let operation = operation();
        let condition = condition(context, &operation, headers);
        let facts = HeaderFacts::read(headers, context.version);
        Self { part, operation, condition, headers, query, format, error_level, facts }
    }

    /// The next part. Inserts into one table differ only in their bodies, so the rest is not parsed again.
    fn next(&self, context: &Context<'_>, outer: &Call<'_>, part: &'a BatchPart<'a>) -> Self {
        let headers = Headers::Part(&part.headers);
        let is_shared = Arc::ptr_eq(&self.part.headers, &part.headers);
        let is_same = |name| is_shared || self.headers.all(name).eq(headers.all(name));
        if self.part.target != part.target
            || self.part.method != part.method
            || !is_same(&ACCEPT)
            || !is_same(&X_HTTP_METHOD)
        {
            return Self::new(context, outer, part);
        }
        let operation = self.operation.clone();
        let condition = condition(context, &operation, headers);
        let facts = match is_shared {
            true => self.facts.clone(),
            false => HeaderFacts::read(headers, context.version),
        };
        Self { part, headers, operation, condition, query: self.query.clone(), facts, ..*self }
    }

    fn call(&self) -> Call<'_> {
        let Self { headers, condition, query, format, facts, .. } = self;
        let body = self.part.body;
        Call { headers: *headers, condition, query, body, format: *format, facts: Some(facts) }
    }

    /// The version of an answer in Atom: 2.0 if the client speaks it, else 1.0.
    fn atom_version(&self, outer: &Call<'_>) -> &'static str {
        if self.format != Format::Atom {
            return "1.0;";
        }
        let of = |headers: Headers<'_>| {
            headers.get(&DATA_SERVICE_VERSION).if_readable().map(|text| text.trim().starts_with("2.0"))
        };
        if of(self.headers).or_else(|| of(outer.headers)) == Some(true) { "2.0;" } else { "1.0;" }
    }

    fn content_id(&self) -> Option<String> {
        self.headers.get(&CONTENT_ID).if_readable().map(str::to_owned)
    }

    fn into_last(self) -> LastPart {
        let is_insert = matches!(self.operation, Ok(Operation::InsertEntity(_)));
        let preference = self.headers.get(&PREFER).if_readable().and_then(Preference::parse);
        LastPart {
            error_level: self.error_level,
            content_id: self.content_id(),
            preference: preference.filter(|_| is_insert),
        }
    }
}

fn condition(
    context: &Context<'_>,
    operation: &Result<Operation, Refusal>,
    headers: Headers<'_>,
) -> Precondition {
    let read = operation.as_ref().map(|operation| Precondition::read(operation, headers, context.version));
    read.unwrap_or_else(|refusal| Precondition::Refused(refusal.clone()))
}

/// Reads and checks the writes of a change set, up to the first that fails.
async fn read_writes<'a>(
    context: &Context<'_>,
    outer: &Call<'_>,
    parts: Vec<BatchPart<'a>>,
) -> Result<ReadBatch<'a>, TableFailure> {
    if parts.is_empty() {
        let refusal = Refusal::BodyNotReadable.into();
        return Ok(ReadBatch::Failed(error_part(context, &refusal, None, None, None)));
    }
    let alone = parts.len() == 1;
    let mut group = WriteGroup::new();
    let mut replies = Vec::with_capacity(parts.len());
    let mut last: Option<Inner<'_>> = None;
    // The parts follow each other without a pause, so all of them are one piece of work.
    let working = Context { is_permitted: true, ..*context };
    for (index, part) in parts.iter().enumerate() {
        if group.is_full() {
            // The service names the last operation within the limit.
            let failure = TableFailure { index: Some(index - 1), ..Refusal::TooManyChanges.into() };
            return Ok(ReadBatch::Failed(failed(context, last.map(Inner::into_last), failure, alone)));
        }
        let inner = match &last {
            Some(last) => last.next(context, outer, part),
            None => Inner::new(context, outer, part),
        };
        match add(&working, &inner, &mut group).await {
            Ok(reply) => {
                let (content_id, atom_version) = (inner.content_id(), inner.atom_version(outer));
                replies.push(PartReply { reply, content_id, atom_version });
            }
            Err(failure) if failure.refusal.is_ours() => return Err(failure),
            Err(failure) => {
                let failure = TableFailure { index: Some(index), ..failure };
                return Ok(ReadBatch::Failed(failed(context, Some(inner.into_last()), failure, alone)));
            }
        }
        last = Some(inner);
    }
    Ok(ReadBatch::Writes(Writes { group, replies, last: last.map(Inner::into_last), alone }))
}

/// Does the writes. Returns the answers to all parts, or the answer to the one that failed, and the memory that they take.
async fn change_set(
    context: &Context<'_>,
    batch_id: &str,
    writes: Writes,
) -> Result<(Vec<u8>, MemoryShare), TableFailure> {
    let Writes { group, replies, last, alone } = writes;
    let written = context.service.write_group(group).await;
    let permit = context.work_permit(0).await;
    let working = Context { is_permitted: true, ..*context };
    let answer = async {
        let answers = match written {
            Ok(timestamps) => {
                let mut answers = Vec::with_capacity(replies.len());
                for (PartReply { reply, content_id, atom_version }, timestamp) in
                    replies.into_iter().zip(timestamps)
                {
                    let answer = reply.answer(&working, timestamp).await;
                    answers.push(part_answer(context, answer, content_id, atom_version));
                }
                answers
            }
            Err(error) => {
                let failure = TableFailure::from(error);
                // Clients decide to retry by the status of the whole batch.
                if failure.refusal.is_ours() {
                    return Err(TableFailure { index: None, ..failure });
                }
                vec![failed(context, last, failure, alone)]
            }
        };
        // The writes are done, so the answer is sent even if it is above the memory limit.
        let mut held = context.memory.nothing();
        held.grow_anyway(answers.iter().map(|answer| answer.body.len()).sum());
        Ok((batch::write_change_set(batch_id, &request_id::new_guid(), &answers), held))
    };
    permit.run_all(answer).await
}

async fn add(
    context: &Context<'_>,
    inner: &Inner<'_>,
    group: &mut WriteGroup,
) -> Result<Reply, TableFailure> {
    let operation = inner.operation.clone()?;
    context.permits(&operation.need(&inner.condition))?;
    let WriteRequest { table, write, reply } =
        entity_write::prepare(context, &inner.call(), operation).await?;
    // Once for all parts, because they have the same table.
    if group.table() != Some(&table) {
        context.service.require_table(&table).await?;
    }
    group.push(&table, write)?;
    Ok(reply)
}

async fn query(
    context: &Context<'_>,
    outer: &Call<'_>,
    part: &BatchPart<'_>,
) -> Result<PartAnswer, TableFailure> {
    let inner = Inner::new(context, outer, part);
    match run_query(context, &inner).await {
        Ok(answer) => Ok(part_answer(context, answer, inner.content_id(), inner.atom_version(outer))),
        // Clients decide to retry by the status of the whole batch.
        Err(failure) if failure.refusal.is_ours() => Err(failure),
        Err(failure) => {
            let failure = TableFailure { index: Some(0), ..failure };
            Ok(error_part(context, &failure, inner.error_level, inner.content_id(), None))
        }
    }
}

async fn run_query(context: &Context<'_>, inner: &Inner<'_>) -> Result<TableAnswer, TableFailure> {
    let operation = inner.operation.clone()?;
    context.permits(&operation.need(&inner.condition))?;
    match operation {
        Operation::GetEntity(table, key) => {
            super::entity_query::get(context, &inner.call(), table, &key).await
        }
        Operation::QueryEntities(table) => super::entity_query::query(context, &inner.call(), table).await,
        _ => Err(Refusal::MethodNotAllowed.into()),
    }
}

/// The only part in the answer of a failed change set. The service echoes the `Content-ID` of the operation that it read
/// last, even if another one failed.
fn failed(context: &Context<'_>, last: Option<LastPart>, failure: TableFailure, alone: bool) -> PartAnswer {
    let named = !alone || failure.refusal.names_index_when_alone();
    let failure = TableFailure { index: failure.index.filter(|_| named), ..failure };
    let LastPart { error_level, content_id, preference } = last.unwrap_or_default();
    error_part(context, &failure, error_level, content_id, preference)
}

fn error_part(
    context: &Context<'_>,
    failure: &TableFailure,
    level: Option<MetadataLevel>,
    content_id: Option<String>,
    preference: Option<Preference>,
) -> PartAnswer {
    let (content_type, bytes) = respond::error_document(failure, level, context.version, context.request_id);
    let mut headers = Vec::new();
    headers.extend(content_id.map(|id| ("Content-ID", id.into())));
    if context.version.has_json() {
        headers.push(NO_SNIFF);
    }
    if failure.reached_the_store {
        headers.push(("Cache-Control", "no-cache".into()));
    }
    if let Some(preference) = preference.filter(|_| failure.reached_the_store) {
        headers.push(("Preference-Applied", preference.as_str().into()));
    }
    headers.push(("DataServiceVersion", if level.is_some() { "3.0;" } else { "1.0;" }.into()));
    headers.push(("Content-Type", content_type.into()));
    PartAnswer { status: failure.refusal.status(), headers, body: bytes.into() }
}

const NO_SNIFF: (&str, Cow<'static, str>) = ("X-Content-Type-Options", Cow::Borrowed("nosniff"));

/// Headers in the service's order (spec: table-operations 6.3), which depends on whether there is content.
///
/// `atom_version` is the version that a part in Atom shows.
fn part_answer(
    context: &Context<'_>,
    answer: TableAnswer,
    content_id: Option<String>,
    atom_version: &'static str,
) -> PartAnswer {
    let mut headers = Vec::with_capacity(8);
    let json =
        answer.content.as_ref().is_some_and(|content| content.content_type.starts_with("application/json"));
    // Inserts, and answers that applied a preference, have version 3.0 even without content; other empty answers have 1.0.
    let applied = answer.location.is_some() || answer.preference_applied.is_some();
    let version = match &answer.content {
        Some(_) if json => "3.0;",
        Some(_) => atom_version,
        None if applied => "3.0;",
        None => "1.0;",
    };
    // Versions without JSON have it elsewhere (8.5).
    let is_old = !context.version.has_json();
    let mut body = bytes::Bytes::new();
    let of_content = answer.content.map(|content| {
        body = content.bytes;
        [("DataServiceVersion", version.into()), ("Content-Type", content.content_type)]
    });
    let (first, later) = if is_old { (None, of_content) } else { (of_content, None) };
    headers.extend(first.into_iter().flatten());
    headers.extend(content_id.map(|id| ("Content-ID", id.into())));
    if !is_old {
        headers.push(NO_SNIFF);
    }
    headers.push(("Cache-Control", "no-cache".into()));
    headers.extend(answer.preference_applied.map(|p| ("Preference-Applied", p.as_str().into())));
    headers.extend(later.into_iter().flatten());
    if body.is_empty() {
        headers.push(("DataServiceVersion", version.into()));
    }
    if let Some(location) = answer.location {
        headers.push(("Location", location.clone().into()));
        if answer.names_location_twice {
            headers.push(("DataServiceId", location.into()));
        }
    }
    headers.extend(answer.etag.map(|etag| ("ETag", etag.into())));
    headers.extend(answer.continuation.into_iter().map(|(name, value)| (name, value.into())));
    PartAnswer { status: answer.status, headers, body }
}
