//! Create, delete, list and look at queues; their metadata and stored access policies.

use std::sync::Arc;

use bytes::Bytes;
use queue_model::{AccountName, Metadata, QueueName, Refusal, ServiceKind, limits};
use store::Fault;

use crate::document::Document;
use crate::head::{Count, Head};
use crate::live::LiveQueue;
use crate::sweep::Purpose;
use crate::{QueueRef, QueueService, Result};

/// Queues that are asked of the engine at once.
const LIST_ROWS: usize = 1000;

/// What Create has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    Created,
    /// It was there, with the same metadata.
    Unchanged,
}

#[derive(Clone, Copy, Debug)]
pub struct ListQuery<'a> {
    pub prefix: &'a str,
    /// The first name to list, whether or not there is a queue of that name.
    pub from: &'a str,
    pub limit: usize,
    /// Without it, all metadata is empty.
    pub metadata: bool,
}

#[derive(Debug)]
pub struct QueuePage {
    pub queues: Vec<(QueueName, Metadata)>,
    /// The first queue of the next page.
    pub next: Option<QueueName>,
}

impl QueueService {
    pub async fn create(&self, queue: &QueueRef, metadata: &Metadata) -> Result<Creation> {
        let _pass = self.gate.pass().await?;
        let table = queue.table()?;
        // Earlier than every message that is put as soon as the queue is there.
        let start = self.clock.tick();
        match self.engine.create_table(&table, Some(Document::new(metadata.clone()).write())).await {
            Ok(()) => {
                // Whoever has put a message already has also made this entry, and knows more.
                let head = Head::empty(start, !self.is_shared, &self.live.ahead_memory);
                self.live.insert(LiveQueue::new(queue.clone(), table, head));
                Ok(Creation::Created)
            }
            Err(store::Error::TableAlreadyExists) => {
                let document = self.document(queue).await?;
                let is_same = document.metadata == *metadata;
                if is_same { Ok(Creation::Unchanged) } else { Err(Refusal::QueueAlreadyExists.into()) }
            }
            Err(error) => Err(error.into()),
        }
    }

    pub async fn delete(&self, queue: &QueueRef) -> Result<()> {
        let _pass = self.gate.pass().await?;
        let dropped = self.engine.drop_table(&queue.table()?).await;
        self.live.forget(queue);
        Ok(dropped?)
    }

    /// Whether there is such a queue.
    pub async fn require(&self, queue: &QueueRef) -> Result<()> {
        self.engine.find_table(&queue.table()?).await?;
        Ok(())
    }

    pub async fn list(&self, account: &AccountName, query: ListQuery<'_>) -> Result<QueuePage> {
        let mut page = QueuePage { queues: Vec::new(), next: None };
        let mut metadata_bytes = 0;
        let mut from = Some(query.from.max(query.prefix).to_owned());
        while let Some(start) = from {
            let found = self.engine.list_tables(account, ServiceKind::Queue, &start, LIST_ROWS).await?;
            for name in found.names {
                // Names are in order, so none behind this one has the prefix.
                if !name.as_str().starts_with(query.prefix) {
                    return Ok(page);
                }
                let unlike = |_| Fault::damaged("a stored queue has a name that no queue has").about(&name);
                let name = QueueName::parse(name.as_str()).map_err(unlike)?;
                if page.queues.len() == query.limit {
                    page.next = Some(name);
                    return Ok(page);
                }
                let queue = QueueRef::new(account, &name);
                let metadata = match query.metadata {
                    false => Metadata::default(),
                    true => match self.document(&queue).await {
                        Ok(document) => document.metadata,
                        // Deleted since it was listed.
                        Err(crate::Error::Refused(Refusal::QueueNotFound)) => continue,
                        Err(error) => return Err(error),
                    },
                };
                metadata_bytes += metadata.bytes();
                if metadata_bytes > limits::LIST_METADATA_BYTES_MAX {
                    page.next = Some(name);
                    return Ok(page);
                }
                page.queues.push((name, metadata));
            }
            from = found.next;
        }
        Ok(page)
    }

    /// The queue's metadata, and about how many messages it has: all that are stored, also the invisible ones and those
    /// that have expired and are not removed yet.
    pub async fn look(&self, queue: &QueueRef) -> Result<(Metadata, u64)> {
        let metadata = self.document(queue).await?.metadata;
        let live = self.live(queue).await?;
        let is_due = self.is_count_due(&live);
        let known = live.head().count();
        let messages = match known {
            Count::Known(messages) if !is_due => messages,
            // One request counts at a time. The others are told the last number, or wait for the first one.
            Count::Known(messages) => match live.counting.try_lock() {
                Ok(_turn) => self.count(&live, Purpose::Glance).await?,
                Err(_) => messages,
            },
            Count::Remembered(_) | Count::Unknown => {
                let _turn = live.counting.lock().await;
                let known = live.head().count();
                match known {
                    Count::Known(messages) => messages,
                    Count::Remembered(_) => self.count(&live, Purpose::Glance).await?,
                    Count::Unknown => self.count(&live, Purpose::Count).await?,
                }
            }
        };
        Ok((metadata, messages))
    }

    async fn count(&self, live: &LiveQueue, purpose: Purpose) -> Result<u64> {
        Ok(self.sweep_live(live, purpose).await?.messages)
    }

    pub async fn set_metadata(&self, queue: &QueueRef, metadata: &Metadata) -> Result<()> {
        self.change_document(queue, |document| document.metadata = metadata.clone()).await
    }

    /// The queue's stored access policies, if any were ever set.
    pub async fn policies(&self, queue: &QueueRef) -> Result<Option<Bytes>> {
        Ok(self.document(queue).await?.policies)
    }

    pub async fn set_policies(&self, queue: &QueueRef, policies: Bytes) -> Result<()> {
        self.change_document(queue, |document| document.policies = Some(policies.clone())).await
    }

    async fn document(&self, queue: &QueueRef) -> Result<Document> {
        let stored = self.engine.table_metadata(&queue.table()?).await?;
        Ok(Document::read(stored.as_ref()).map_err(|fault| fault.about(queue))?)
    }

    /// Again if another has changed the document meanwhile, so that nobody undoes what somebody else has set.
    async fn change_document(&self, queue: &QueueRef, change: impl Fn(&mut Document)) -> Result<()> {
        let _pass = self.gate.pass().await?;
        let table = queue.table()?;
        loop {
            let stored = self.engine.table_metadata(&table).await?;
            let mut document = Document::read(stored.as_ref()).map_err(|fault| fault.about(queue))?;
            change(&mut document);
            if self.engine.replace_table_metadata(&table, stored, document.write()).await? {
                return Ok(());
            }
        }
    }

    /// What is known of the queue. `QueueNotFound` if there is none; one that was deleted by another server may still be
    /// found here.
    pub(crate) async fn live(&self, queue: &QueueRef) -> Result<Arc<LiveQueue>> {
        if let Some(live) = self.live.find(queue) {
            return Ok(live);
        }
        let table = queue.table()?;
        let stored = self.stored_head(&table).await?;
        // No message lies below the hint, and none shall.
        self.clock.raise(stored.hint);
        let head = Head::unknown(stored, &self.live.ahead_memory);
        Ok(self.live.insert(LiveQueue::new(queue.clone(), table, head)))
    }

    /// An answer of the engine about a queue in use.
    pub(crate) fn answered<T>(
        &self,
        live: &LiveQueue,
        answer: std::result::Result<T, store::Error>,
    ) -> Result<T> {
        if matches!(answer, Err(store::Error::TableNotFound)) {
            self.live.forget(&live.queue);
        }
        Ok(answer?)
    }
}
