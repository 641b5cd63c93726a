//! Queues of Azurite: the messages in their order, with the times at which they expire and are visible.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::DateTime;
use partita_client::{Error, PutOptions, Queue, QueueService, TimeToLive};

use super::content::Contents;
use super::database::Database;
use super::records::{self, MessageRecord, QueueRecord};
use super::{AzuriteError, Tally};
use crate::endpoint::RequestError;
use crate::progress::{ProgressPrinter, grouped};

/// More than the text of a message in Base64.
const MESSAGE_BYTES_MAX: u64 = 1024 * 1024;
/// Longer than a service hides a message.
const HIDDEN_MAX: Duration = Duration::from_secs(7 * 86_400);

pub async fn import(
    service: &QueueService,
    folder: &Path,
    database: &Database,
    account: &str,
    progress: &Arc<ProgressPrinter>,
) -> Result<Tally, AzuriteError> {
    let contents = Contents::of(folder, "queue").await?;
    let (mut tally, mut queues) = (Tally::default(), BTreeSet::new());
    let (mut records, mut expired) = (database.records(), 0_u64);
    progress.start("importing queues".to_owned(), 0, None);
    let failed = |queue: &str, error: Error| AzuriteError::Request {
        what: format!("queue {queue}"),
        source: RequestError::at(|| service.url(), error),
    };
    while let Some(record) = records.next().await? {
        match record.collection.as_str() {
            records::QUEUES => {
                let of: QueueRecord = database.parse(&record)?;
                if of.account_name != account {
                    continue;
                }
                let queue = service.queue(&of.name).map_err(|error| failed(&of.name, error))?;
                create(&queue, &of).await.map_err(|error| failed(&of.name, error))?;
                let there = queue.properties().await.map_err(|error| failed(&of.name, error))?;
                if there.approximate_count > 0 {
                    return Err(AzuriteError::QueueHasMessages { queue: of.name });
                }
                progress.notice(&format!("queue {}", of.name));
                tally.containers += 1;
                queues.insert(of.name);
            }
            records::MESSAGES => {
                let message: MessageRecord = database.parse(&record)?;
                if message.account_name != account || !queues.contains(&message.queue_name) {
                    continue;
                }
                let unreadable = |why: &str| AzuriteError::Record {
                    path: database.path().to_owned(),
                    what: format!("a message of the queue {}", message.queue_name),
                    why: why.to_owned(),
                };
                let Some(options) = options(&message).ok_or_else(|| unreadable("it has no times"))? else {
                    expired += 1;
                    continue;
                };
                if message.persistency.count > MESSAGE_BYTES_MAX {
                    return Err(unreadable("it is longer than a message can be"));
                }
                let text = String::from_utf8(contents.read(&message.persistency)?)
                    .map_err(|_| unreadable("it is not text"))?;
                let queue = service.queue(&message.queue_name);
                let queue = queue.map_err(|error| failed(&message.queue_name, error))?;
                let put = queue.put_with(&text, options).await;
                put.map_err(|error| failed(&message.queue_name, error))?;
                tally.items += 1;
                tally.bytes += text.len() as u64;
                progress.update(tally.items, tally.bytes);
            }
            _ => {}
        }
    }
    if expired > 0 {
        tally.left_out.push(format!("{} messages that have expired", grouped(expired)));
    }
    Ok(tally)
}

/// One that exists keeps its metadata.
async fn create(queue: &Queue, of: &QueueRecord) -> Result<(), Error> {
    match queue.create(&of.metadata.clone().unwrap_or_default()).await {
        Err(error) if error.code() == Some("QueueAlreadyExists") => Ok(()),
        done => done,
    }
}

/// How to put it; `Some(None)` if it has expired, `None` if its times can't be read.
fn options(message: &MessageRecord) -> Option<Option<PutOptions>> {
    let now = DateTime::now().to_system_time()?;
    let expires = records::time(&message.expiration_time)?;
    let visible = records::time(&message.time_next_visible)?.to_system_time()?;
    let mut options = PutOptions::new();
    if let Ok(hidden) = visible.duration_since(now)
        && hidden > Duration::ZERO
    {
        options = options.visible_after(hidden.min(HIDDEN_MAX));
    }
    // The service's word for never.
    if expires.to_seconds_string().starts_with("9999-") {
        return Some(Some(options.time_to_live(TimeToLive::Forever)));
    }
    match expires.to_system_time()?.duration_since(now) {
        Ok(rest) if rest > Duration::ZERO => Some(Some(options.time_to_live(TimeToLive::For(rest)))),
        _ => Some(None),
    }
}
