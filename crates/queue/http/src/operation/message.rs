//! Put, get, peek, update, delete and clear messages.

use std::time::Duration;

use common::Refusal as Shared;
use front::{AccountMemory, MemoryShare};
use http::HeaderValue;
use queue_model::{Refusal, limits};
use queue_service::QueueRef;
use queue_wire::{QueueVersion as _, message_body, message_list};
use tokio::time::Instant;

use super::Context;
use crate::answer::{Answer, Failure};
use crate::command::Lease;
use crate::headers::{POP_RECEIPT, TIME_NEXT_VISIBLE};

pub async fn put(
    context: &Context<'_>,
    queue: &QueueRef,
    (visibility, time_to_live): (Duration, Option<Duration>),
    body: &[u8],
) -> Result<Answer, Failure> {
    let text = message_body::read(body)?;
    let message = context.service.put(queue, text, visibility, time_to_live).await?;
    Ok(match context.version.has_put_answer() {
        true => Answer::document(201, message_list::write_new(&message)),
        false => Answer::empty(201),
    })
}

pub async fn get(
    context: &Context<'_>,
    queue: &QueueRef,
    count: u32,
    visibility: Duration,
) -> Result<Answer, Failure> {
    let (held, count) = hold(context.memory, count)?;
    let messages = context.service.get(queue, count, visibility).await?;
    let document = message_list::write_taken(&messages, context.version);
    Ok(Answer::document(200, front::held_bytes(document.into(), held)))
}

pub async fn peek(context: &Context<'_>, queue: &QueueRef, count: u32) -> Result<Answer, Failure> {
    let (held, count) = hold(context.memory, count)?;
    let messages = context.service.peek(queue, count).await?;
    let document = message_list::write_peeked(&messages);
    Ok(Answer::document(200, front::held_bytes(document.into(), held)))
}

/// What a message may take until it is sent: its text, and the same in XML, where `&` takes five letters.
const MESSAGE_BYTES_MAX: usize = 6 * limits::TEXT_BYTES_MAX;

/// Memory for up to so many messages, and for how many it is: fewer if memory is short. It is taken before the messages are
/// read, because what Get has taken must be told.
fn hold(memory: &AccountMemory, count: u32) -> Result<(MemoryShare, u32), Shared> {
    let mut held = memory.nothing();
    let mut count = count;
    while !held.resize(count as usize * MESSAGE_BYTES_MAX) {
        if count <= 1 {
            return Err(Shared::Busy);
        }
        count /= 2;
    }
    Ok((held, count))
}

pub async fn clear(context: &Context<'_>, queue: &QueueRef) -> Result<Answer, Failure> {
    let time = context.deadline.saturating_duration_since(Instant::now());
    context.service.clear(queue, time).await?;
    Ok(Answer::empty(204))
}

/// Without a body, the text stays as it is.
pub async fn update(
    context: &Context<'_>,
    queue: &QueueRef,
    lease: Option<Lease>,
    visibility: Duration,
    body: &[u8],
) -> Result<Answer, Failure> {
    let text = if body.is_empty() { None } else { Some(message_body::read(body)?) };
    let Lease { id, receipt } = known(context, queue, lease).await?;
    let receipt = context.service.update(queue, id, &receipt, visibility, text).await?;
    let mut headers = Vec::with_capacity(2);
    // Base64, and a date.
    if let Ok(value) = HeaderValue::try_from(receipt.to_string()) {
        headers.push((POP_RECEIPT.clone(), value));
    }
    if let Ok(value) = HeaderValue::from_bytes(&receipt.next_visible().http_date()) {
        headers.push((TIME_NEXT_VISIBLE.clone(), value));
    }
    Ok(Answer { headers, ..Answer::empty(204) })
}

pub async fn delete(
    context: &Context<'_>,
    queue: &QueueRef,
    lease: Option<Lease>,
) -> Result<Answer, Failure> {
    let Lease { id, receipt } = known(context, queue, lease).await?;
    context.service.delete_message(queue, id, &receipt).await?;
    Ok(Answer::empty(204))
}

/// A missing queue is told before a message that can't be there.
async fn known(context: &Context<'_>, queue: &QueueRef, lease: Option<Lease>) -> Result<Lease, Failure> {
    match lease {
        Some(lease) => Ok(lease),
        None => {
            context.service.require(queue).await?;
            Err(Refusal::MessageNotFound.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_messages_are_read_if_memory_is_short() {
        let memory = front::Memory::new(40 * MESSAGE_BYTES_MAX);
        let [one, two] = ["one", "two"].map(|name| memory.of(&common::AccountName::parse(name).unwrap()));
        let check = |memory: &AccountMemory, count, expected: Option<u32>| {
            let held = hold(memory, count);
            assert_eq!(held.as_ref().ok().map(|(_, count)| *count), expected, "{count}");
            held.ok()
        };
        let first = check(&one, 32, Some(32));
        check(&one, 1, None);
        let _second = check(&two, 32, Some(4));
        drop(first);
        let _third = check(&one, 1, Some(1));
        let _fourth = check(&one, 15, Some(15));
        let _fifth = check(&one, 32, Some(8));
    }
}
