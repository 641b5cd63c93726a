//! One file per family of operations: call the service, encode what it says.

mod message;
mod queue;
mod service_document;

use common::{Refusal as Shared, Version};
use front::{AccountMemory, MemoryShare, PropertiesStore, Site};
use queue_model::QueueName;
use queue_service::{QueueRef, QueueService};
use tokio::time::Instant;

use crate::answer::{Answer, Failure};
use crate::command::{Command, QueueCommand};

/// What all operations of one request share.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub service: &'a QueueService,
    pub properties: &'a PropertiesStore,
    /// What the answer is to be held in.
    pub memory: &'a AccountMemory,
    pub site: &'a Site,
    pub version: Version,
    /// When the time for the request is over.
    pub deadline: Instant,
}

impl Context<'_> {
    fn queue(&self, name: &QueueName) -> QueueRef {
        QueueRef::new(&self.site.account, name)
    }

    /// Memory for an answer of up to so many bytes; refused if there is none.
    fn hold(&self, bytes: usize) -> Result<MemoryShare, Shared> {
        let mut held = self.memory.nothing();
        if held.resize(bytes) { Ok(held) } else { Err(Shared::Busy) }
    }
}

pub async fn run(context: &Context<'_>, command: Command<'_>, body: &[u8]) -> Result<Answer, Failure> {
    let (queue, command) = match command {
        Command::ListQueues(list) => return queue::list(context, &list).await,
        Command::GetProperties => return service_document::get_properties(context).await,
        Command::SetProperties => return service_document::set_properties(context, body).await,
        Command::GetStatistics => return Ok(service_document::get_statistics()),
        Command::OfQueue(name, command) => (context.queue(&name), command),
    };
    match command {
        QueueCommand::Create(metadata) => queue::create(context, &queue, &metadata).await,
        QueueCommand::Delete => queue::delete(context, &queue).await,
        QueueCommand::GetMetadata => queue::get_metadata(context, &queue).await,
        QueueCommand::SetMetadata(metadata) => queue::set_metadata(context, &queue, &metadata).await,
        QueueCommand::GetPolicies => service_document::get_policies(context, &queue).await,
        QueueCommand::SetPolicies => service_document::set_policies(context, &queue, body).await,
        QueueCommand::Put { visibility, time_to_live } => {
            message::put(context, &queue, (visibility, time_to_live), body).await
        }
        QueueCommand::Get { count, visibility } => message::get(context, &queue, count, visibility).await,
        QueueCommand::Peek { count } => message::peek(context, &queue, count).await,
        QueueCommand::Clear => message::clear(context, &queue).await,
        QueueCommand::Update { lease, visibility } => {
            message::update(context, &queue, lease, visibility, body).await
        }
        QueueCommand::DeleteMessage { lease } => message::delete(context, &queue, lease).await,
    }
}
