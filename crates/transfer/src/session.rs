//! Requests to one endpoint that are sent until they are answered: busy servers and broken connections are waited for.
//!
//! Every request here may be sent twice without harm; the caller learns whether one was.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use connection::{Client, Request, Response, Target, Trouble};
use serde::Deserialize;

use crate::progress::Progress;
use crate::retry;

/// The service itself gives up after 30 s; an answer of a page takes a while to come.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(90);
/// Shorter pauses are not worth a word.
const TOLD_FROM: Duration = Duration::from_secs(1);
const MESSAGE_CHARS_MAX: usize = 300;

#[derive(Debug)]
pub struct Session {
    client: Client,
    progress: Arc<Progress>,
    /// Somebody has answered here before, so that waiting for an answer makes sense.
    reached: bool,
}

/// An answer that trying again would not change.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    pub error_code: Option<String>,
    pub next_partition_key: Option<String>,
    pub next_row_key: Option<String>,
    pub next_table_name: Option<String>,
    /// An earlier attempt may have been carried out.
    pub tried_before: bool,
    /// When the server wants to be asked again.
    pub told: Option<Duration>,
}

impl Session {
    pub fn new(target: Arc<Target>, progress: Arc<Progress>) -> Self {
        Self { client: Client::new(target), progress, reached: false }
    }

    /// Another connection to the same endpoint.
    pub fn another(&self, target: Arc<Target>) -> Self {
        Self { client: Client::new(target), progress: self.progress.clone(), reached: self.reached }
    }

    pub fn url(&self) -> String {
        self.client.endpoint().url()
    }

    /// An error says why no answer came, in spite of many attempts.
    pub async fn send(&mut self, request: Request<'_>) -> Result<Answer, String> {
        self.send_unless(request, |answer| retry::is_passing(answer.status)).await
    }

    /// As `send`; `passing` says of which answers another attempt is worth while.
    pub async fn send_unless(
        &mut self,
        request: Request<'_>,
        passing: impl Fn(&Answer) -> bool,
    ) -> Result<Answer, String> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let (why, told) = match self.attempt(request).await {
                Ok(answer) if !passing(&answer) => {
                    return Ok(Answer { tried_before: attempts > 1, ..answer });
                }
                Ok(answer) => (answer.explain(), answer.told),
                Err(Trouble::Unreachable(why)) if !self.reached => return Err(why),
                Err(Trouble::Unreachable(why) | Trouble::Broken(why)) => (why, None),
            };
            if attempts == retry::ATTEMPTS_MAX {
                return Err(format!("gave up after {attempts} attempts: {why}"));
            }
            let pause = retry::pause(attempts, rand::random(), told);
            if pause >= TOLD_FROM {
                self.progress.notice(&format!("{why}; trying again in {:.1} s", pause.as_secs_f64()));
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(&mut self, request: Request<'_>) -> Result<Answer, Trouble> {
        let outcome = tokio::time::timeout(ANSWER_TIME_MAX, self.client.send(request, Instant::now())).await;
        let answer = match outcome {
            Ok(response) => Answer::of(&response?),
            Err(_) => {
                self.client.disconnect();
                return Err(Trouble::Broken(format!("no answer within {} s", ANSWER_TIME_MAX.as_secs())));
            }
        };
        self.reached = true;
        Ok(answer)
    }
}

impl Answer {
    fn of(response: &Response<'_>) -> Self {
        // An empty token is as good as none, and services refuse to take it back.
        let text = |bytes: Option<&[u8]>| {
            bytes.filter(|bytes| !bytes.is_empty()).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        Self {
            status: response.status,
            body: response.body.to_vec(),
            error_code: text(response.error_code),
            next_partition_key: text(response.next_partition_key),
            next_row_key: text(response.next_row_key),
            next_table_name: text(response.header(wire::names::NEXT_TABLE_NAME_HEADER)),
            tried_before: false,
            told: response.header("Retry-After").and_then(|header| retry::told(header, SystemTime::now())),
        }
    }

    /// The service's code of an error, or nothing.
    pub fn code(&self) -> String {
        self.error_code.clone().or_else(|| Some(error_document(&self.body)?.code)).unwrap_or_default()
    }

    /// Status, code and the first line of the message.
    pub fn explain(&self) -> String {
        let document = error_document(&self.body);
        let code = self.code();
        let body = String::from_utf8_lossy(&self.body);
        let message = match &document {
            Some(document) => &document.message.value,
            None => xml_message(&body).unwrap_or(body.trim()),
        };
        let message: String =
            message.lines().next().unwrap_or_default().chars().take(MESSAGE_CHARS_MAX).collect();
        let (space, colon) =
            (if code.is_empty() { "" } else { " " }, if message.is_empty() { "" } else { ": " });
        format!("{}{space}{code}{colon}{message}", self.status)
    }
}

#[derive(Deserialize)]
struct ErrorDocument {
    #[serde(rename = "odata.error")]
    error: ErrorText,
}

#[derive(Deserialize)]
struct ErrorText {
    code: String,
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    value: String,
}

fn error_document(body: &[u8]) -> Option<ErrorText> {
    let document: ErrorDocument = serde_json::from_slice(body).ok()?;
    Some(document.error)
}

/// Some refusals come as XML whatever was asked for: `<m:message xml:lang="en-US">`, or `<Message>`.
fn xml_message(body: &str) -> Option<&str> {
    let (_, rest) = body.split_once("<Message").or_else(|| body.split_once("message"))?;
    let (_, rest) = rest.split_once('>')?;
    rest.split('<').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_explains_itself() {
        let check = |status, code: Option<&str>, body: &str, expected: &str| {
            let error_code = code.map(str::to_owned);
            let answer = Answer { status, error_code, body: body.as_bytes().to_vec(), ..Answer::default() };
            assert_eq!(answer.explain(), expected);
        };
        let json = r#"{"odata.error":{"code":"InvalidInput","message":{"lang":"en-US","value":"0:No.\nRequestId:1"}}}"#;
        check(400, None, json, "400 InvalidInput: 0:No.");
        check(403, Some("AuthenticationFailed"), "", "403 AuthenticationFailed");
        check(404, None, "<html>", "404: <html>");
        check(
            403,
            Some("No"),
            "<?xml?>\n<Error>\n<Code>No</Code>\n<Message>Not you.\nTime:1</Message></Error>",
            "403 No: Not you.",
        );
        check(400, Some("No"), "<m:error><m:message xml:lang=\"en\">Not so.</m:message>", "400 No: Not so.");
        check(500, None, "", "500");
    }
}
