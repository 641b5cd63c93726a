//! One action on a queue over one connection: makes its request, and turns the answer into an outcome of the history.

use std::sync::Arc;

use connection::{Response, Target};

use super::client::{Heard, Talk};
use super::wire::{Message, Wire, text};
use crate::queues::history::{Handle, QueueAction, QueueOutcome, Shown, Taken};

const XML: &str = "Content-Type: application/xml\r\n";
/// Messages that never expire.
const FOREVER: &str = "messagettl=-1";

#[derive(Debug)]
pub struct QueueExchange {
    wire: Wire,
}

impl Talk for QueueExchange {
    type Action = QueueAction;
    type Outcome = QueueOutcome;

    fn reconnect(&mut self) {
        self.wire.reconnect();
    }

    async fn perform(&mut self, queue: &str, action: &QueueAction) -> Heard<QueueOutcome> {
        let message = message(queue, action);
        let unknown = QueueOutcome::Unknown { until: None };
        self.wire.hear(&message, unknown, |response| understand(action, &response)).await
    }
}

impl QueueExchange {
    pub fn new(target: Arc<Target>) -> Self {
        Self { wire: Wire::new(target) }
    }

    pub async fn create(&mut self, queue: &str) -> Result<(), String> {
        self.control("make", "PUT", queue).await
    }

    pub async fn delete(&mut self, queue: &str) -> Result<(), String> {
        self.control("delete", "DELETE", queue).await
    }

    async fn control(&mut self, verb: &str, method: &'static str, queue: &str) -> Result<(), String> {
        // A length is required of a PUT.
        let body = (method == "PUT").then(String::new);
        let message = request(method, format!("/{queue}"), String::new(), body);
        self.wire.control(&format!("{verb} queue {queue}"), &message).await
    }
}

fn request(method: &'static str, path: String, query: String, body: Option<String>) -> Message {
    Message { method, path, query, headers: XML.to_owned(), body }
}

fn message(queue: &str, action: &QueueAction) -> Message {
    let messages = format!("/{queue}/messages");
    let named = |handle: &Handle| {
        let receipt = handle.receipt.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        (format!("{messages}/{}", handle.id), format!("popreceipt={receipt}"))
    };
    let body =
        |message, text| format!("<QueueMessage><MessageText>{message}.{text}</MessageText></QueueMessage>");
    match action {
        QueueAction::Put { number, visibility } => {
            let (query, body) = (format!("visibilitytimeout={visibility}&{FOREVER}"), body(*number, *number));
            request("POST", messages, query, Some(body))
        }
        QueueAction::Get { count, visibility } => {
            let query = format!("numofmessages={count}&visibilitytimeout={visibility}");
            request("GET", messages, query, None)
        }
        QueueAction::Peek { count } => {
            let query = format!("peekonly=true&numofmessages={count}");
            request("GET", messages, query, None)
        }
        QueueAction::Update { handle, visibility, text } => {
            let (path, receipt) = named(handle);
            let query = format!("{receipt}&visibilitytimeout={visibility}");
            let body = text.map_or_else(String::new, |text| body(handle.message, text));
            request("PUT", path, query, Some(body))
        }
        QueueAction::Delete(handle) => {
            let (path, query) = named(handle);
            request("DELETE", path, query, None)
        }
        // Never sent: it is noted when the queue is empty.
        QueueAction::Drain => request("GET", messages, String::new(), None),
    }
}

fn understand(action: &QueueAction, response: &Response<'_>) -> Result<QueueOutcome, String> {
    let strange = || Err(format!("answered with {} {}", response.status, text(response.body)));
    match (response.status, action) {
        (503, _) => Ok(QueueOutcome::TurnedAway),
        (500.., _) => Ok(QueueOutcome::Unknown { until: None }),
        (201, QueueAction::Put { number, .. }) => match entries(&text(response.body)).as_slice() {
            [entry] => {
                let (id, receipt) = (entry.element("MessageId")?, entry.element("PopReceipt")?);
                Ok(QueueOutcome::Stored(Handle { message: *number, id, receipt }))
            }
            _ => strange(),
        },
        (200, QueueAction::Get { count, .. }) => {
            let taken =
                entries(&text(response.body)).iter().map(Entry::taken).collect::<Result<Vec<_>, _>>()?;
            page(*count, &taken, |taken| taken.shown.message)?;
            Ok(QueueOutcome::Taken(taken))
        }
        (200, QueueAction::Peek { count }) => {
            let shown =
                entries(&text(response.body)).iter().map(Entry::shown).collect::<Result<Vec<_>, _>>()?;
            page(*count, &shown, |shown| shown.message)?;
            Ok(QueueOutcome::Peeked(shown))
        }
        (204, QueueAction::Update { .. }) => match response.header("x-ms-popreceipt") {
            Some(receipt) => Ok(QueueOutcome::Updated(text(receipt))),
            None => Err("an Update gave no receipt".to_owned()),
        },
        (204, QueueAction::Delete(_)) => Ok(QueueOutcome::Deleted),
        (404, QueueAction::Update { .. } | QueueAction::Delete(_))
            if response.header("x-ms-error-code") == Some(b"MessageNotFound".as_slice()) =>
        {
            Ok(QueueOutcome::NotFound)
        }
        _ => strange(),
    }
}

/// A page has at most as many messages as were asked for, and none twice.
fn page<T>(count: u32, shown: &[T], number: impl Fn(&T) -> u32) -> Result<(), String> {
    let mut numbers: Vec<u32> = shown.iter().map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() < shown.len() {
        return Err(format!("a message came twice in one answer, which has {numbers:?}"));
    }
    match shown.len() <= count as usize {
        true => Ok(()),
        false => Err(format!("{} messages came, and {count} were asked for", shown.len())),
    }
}

/// The XML of one message.
struct Entry(String);

fn entries(document: &str) -> Vec<Entry> {
    document.split("<QueueMessage>").skip(1).map(|entry| Entry(entry.to_owned())).collect()
}

impl Entry {
    /// Texts of this program and receipts need no escapes.
    fn element(&self, name: &str) -> Result<String, String> {
        let inner = self.0.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once("</"));
        inner.map(|(text, _)| text.to_owned()).ok_or_else(|| format!("no {name} in {}", self.0))
    }

    fn shown(&self) -> Result<Shown, String> {
        let (id, count, text) =
            (self.element("MessageId")?, self.element("DequeueCount")?, self.element("MessageText")?);
        let numbers = text
            .split_once('.')
            .and_then(|(message, text)| Some((message.parse().ok()?, text.parse().ok()?)));
        let (message, text) = numbers.ok_or_else(|| format!("a text that nobody wrote: {text:?}"))?;
        let dequeue_count = count.parse().map_err(|_| format!("the dequeue count {count:?}"))?;
        Ok(Shown { message, text, id, dequeue_count })
    }

    fn taken(&self) -> Result<Taken, String> {
        Ok(Taken { shown: self.shown()?, receipt: self.element("PopReceipt")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "<QueueMessage><MessageId>i</MessageId><PopReceipt>r=</PopReceipt>\
                         <DequeueCount>2</DequeueCount><MessageText>3.4</MessageText></QueueMessage>";

    fn check(action: &QueueAction, head: &str, body: &str, expected: &str) {
        let response = Response {
            head: head.as_bytes(),
            status: head[9..12].parse().unwrap_or_default(),
            closes: false,
            etag: None,
            error_code: None,
            next_partition_key: None,
            next_row_key: None,
            body: body.as_bytes(),
        };
        let shown = match understand(action, &response) {
            Ok(outcome) => format!("{outcome:?}"),
            Err(strange) => format!("strange: {strange}"),
        };
        assert!(shown.starts_with(expected), "{shown}");
    }

    #[test]
    fn an_answer_has_one_meaning_or_is_strange() {
        let list = |entries: &str| format!("\u{feff}<QueueMessagesList>{entries}</QueueMessagesList>");
        let put = QueueAction::Put { number: 3, visibility: 0 };
        let get = QueueAction::Get { count: 1, visibility: 1 };
        let peek = QueueAction::Peek { count: 1 };
        let handle = Handle { message: 3, id: "i".to_owned(), receipt: "r=".to_owned() };
        let delete = QueueAction::Delete(handle.clone());
        let update = QueueAction::Update { handle, visibility: 0, text: None };
        let one = list(ENTRY);
        check(
            &put,
            "HTTP/1.1 201 Created",
            &one,
            "Stored(Handle { message: 3, id: \"i\", receipt: \"r=\" })",
        );
        check(&put, "HTTP/1.1 201 Created", &list(""), "strange: answered with 201");
        check(&put, "HTTP/1.1 413 Too Large", "", "strange: answered with 413");
        check(&put, "HTTP/1.1 500 Late", "", "Unknown { until: None }");
        check(&get, "HTTP/1.1 503 Busy", "", "TurnedAway");
        check(&get, "HTTP/1.1 200 OK", &list(""), "Taken([])");
        check(&get, "HTTP/1.1 200 OK", &one, "Taken([Taken { shown: Shown { message: 3, text: 4, ");
        check(&peek, "HTTP/1.1 200 OK", &one, "Peeked([Shown { message: 3, text: 4, ");
        check(&get, "HTTP/1.1 200 OK", &list(&ENTRY.repeat(2)), "strange: a message came twice");
        let other = ENTRY.replace("3.4", "5.5");
        check(
            &get,
            "HTTP/1.1 200 OK",
            &list(&format!("{ENTRY}{other}")),
            "strange: 2 messages came, and 1 were",
        );
        check(
            &get,
            "HTTP/1.1 200 OK",
            &list(&ENTRY.replace("3.4", "x")),
            "strange: a text that nobody wrote",
        );
        check(&delete, "HTTP/1.1 204 No Content", "", "Deleted");
        let missing = "HTTP/1.1 404 Not Found\r\nx-ms-error-code: MessageNotFound\r\n";
        check(&delete, missing, "", "NotFound");
        check(&delete, &missing.replace("Message", "Queue"), "", "strange: answered with 404");
        check(&update, missing, "", "NotFound");
        check(&update, "HTTP/1.1 204 No Content\r\nx-ms-popreceipt: n=\r\n", "", "Updated(\"n=\")");
        check(&update, "HTTP/1.1 204 No Content\r\n", "", "strange: an Update gave no receipt");
    }
}
