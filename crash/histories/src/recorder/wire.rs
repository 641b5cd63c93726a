//! One connection to a server: sends requests of any service, and waits for an answer no longer than a while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use connection::{Client, Response, SendError, Target, UnsignedRequest};

use super::client::Heard;

/// A request without an answer is given up after this time. Its outcome is unknown.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Wire {
    target: Arc<Target>,
    client: Client,
}

/// A request that owns its texts.
#[derive(Debug)]
pub struct Message {
    pub method: &'static str,
    pub path: String,
    pub query: String,
    pub headers: String,
    pub body: Option<String>,
}

impl Wire {
    pub fn new(target: Arc<Target>) -> Self {
        Self { client: Client::new(target.clone()), target }
    }

    pub fn url(&self) -> String {
        self.target.endpoint.url()
    }

    /// Uses a new connection for the next request.
    pub fn reconnect(&mut self) {
        self.client = Client::new(self.target.clone());
    }

    /// What is heard of an action; `unknown` if that is nothing.
    pub async fn hear<O>(
        &mut self,
        message: &Message,
        unknown: O,
        understand: impl FnOnce(Response<'_>) -> Result<O, String>,
    ) -> Heard<O> {
        match self.send(message, understand).await {
            Ok(Some(Ok(outcome))) => Heard::Outcome(outcome),
            Ok(Some(Err(why))) => Heard::Strange(format!("{} {}: {why}", message.method, message.path)),
            Ok(None) | Err(SendError::Broken(_)) => Heard::Outcome(unknown),
            Err(error @ SendError::Unreachable { .. }) => Heard::NotSent(error.to_string()),
        }
    }

    /// Makes or deletes a table or a queue. `what` is for the error.
    pub async fn control(&mut self, what: &str, message: &Message) -> Result<(), String> {
        let why = match self.send(message, |response| (response.status, text(response.body))).await {
            Ok(Some((201 | 204, _))) => return Ok(()),
            Ok(Some((status, body))) => format!("{status} {body}"),
            Ok(None) => "no answer in time".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(format!("can't {what} at {}: {why}", self.url()))
    }

    /// The status of a request that is not part of a history; `None` if there is no answer.
    pub async fn status(&mut self, message: &Message) -> Option<u16> {
        self.send(message, |response| response.status).await.ok().flatten()
    }

    /// `None` if no answer came in time.
    async fn send<T>(
        &mut self,
        message: &Message,
        read: impl FnOnce(Response<'_>) -> T,
    ) -> Result<Option<T>, SendError> {
        let request = UnsignedRequest {
            method: message.method,
            path: &message.path,
            query: &message.query,
            headers: &message.headers,
            body: message.body.as_deref().map(str::as_bytes),
        };
        match tokio::time::timeout(ANSWER_TIME_MAX, self.client.send(request, Instant::now())).await {
            Ok(response) => response.map(read).map(Some),
            Err(_) => {
                // The answer may still arrive, and must not be taken for the answer to another request.
                self.reconnect();
                Ok(None)
            }
        }
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
