//! One action on a blob over one connection. A blob is to the judge what an entity is: whoever writes it puts a number into it.
//!
//! The same write is made in one of three ways: as one request, as blocks and their list, or as a copy of another blob.

use std::collections::BTreeMap;
use std::sync::Arc;

use connection::{Response, Target};

use super::client::{Heard, Talk};
use super::wire::{Message, Wire, text};
use crate::history::{Action, Found, Outcome, Refusal, Verb, Version, WRITER, Write};

/// A number and a space.
const WORD_BYTES: usize = 9;
/// Content that is kept in a row, in one chunk, and in several: in words.
const WORDS: [usize; 4] = [1, 700, 20_000, 150_000];
const BLOCKS: usize = 3;

#[derive(Debug)]
pub struct BlobExchange {
    wire: Wire,
    client: u32,
}

impl Talk for BlobExchange {
    type Action = Action;
    type Outcome = Outcome;

    fn reconnect(&mut self) {
        self.wire.reconnect();
    }

    async fn perform(&mut self, container: &str, action: &Action) -> Heard<Outcome> {
        if let Action::Write(write) = action
            && !self.prepare(container, write).await
        {
            // The blob itself was not asked for anything.
            return Heard::Outcome(Outcome::TurnedAway);
        }
        let Some(message) = self.message(container, action) else {
            return Heard::Strange(format!("{action:?} is nothing that blobs know"));
        };
        let unknown = Outcome::Unknown { until: None };
        self.wire.hear(&message, unknown, |response| understand(action, &response)).await
    }
}

/// The text of a write: its number again and again.
fn content(number: u32) -> String {
    format!("{number:08} ").repeat(WORDS[number as usize % WORDS.len()])
}

/// The number of a text that is whole; an error if it is a mix, or a part.
fn number_of(content_found: &str) -> Result<u32, String> {
    let first = content_found.get(..WORD_BYTES).and_then(|word| word.trim_end().parse().ok());
    let number = first.ok_or_else(|| format!("content begins with {:?}", content_found.get(..WORD_BYTES)))?;
    let expected = content(number);
    if content_found == expected {
        return Ok(number);
    }
    let at = content_found.bytes().zip(expected.bytes()).position(|(one, other)| one != other);
    let other = at.and_then(|at| content_found.get(at - at % WORD_BYTES..)?.get(..WORD_BYTES));
    Err(format!(
        "content is a mix: {} bytes that begin with {number:08}, of {}; then {other:?} at {at:?}",
        content_found.len(),
        expected.len()
    ))
}

/// The Base64 of the client, the number of the write and that of the block: always of the same length.
fn block_id(client: u32, write: u32, block: usize) -> String {
    // Digits only, in groups of three bytes, are Base64 of something.
    format!("{:04}{:08}{:04}", client % 10_000, write, block % 10_000)
}

fn put(path: String, query: &str, headers: String, body: String) -> Message {
    Message { method: "PUT", path, query: query.to_owned(), headers, body: Some(body) }
}

impl BlobExchange {
    pub fn new(target: Arc<Target>, client: u32) -> Self {
        Self { wire: Wire::new(target), client }
    }

    pub async fn create(&mut self, container: &str) -> Result<(), String> {
        let message = put(format!("/{container}"), "restype=container", String::new(), String::new());
        self.wire.control(&format!("make container {container}"), &message).await
    }

    pub async fn delete(&mut self, container: &str) -> Result<(), String> {
        let (query, headers) = ("restype=container".to_owned(), String::new());
        let message = Message { method: "DELETE", path: format!("/{container}"), query, headers, body: None };
        match self.wire.status(&message).await {
            Some(202) => Ok(()),
            other => Err(format!("can't delete container {container}: {other:?}")),
        }
    }

    /// One request that no history has.
    pub async fn status(&mut self, message: &Message) -> Option<u16> {
        self.wire.status(message).await
    }

    pub fn url(&self) -> String {
        self.wire.url()
    }

    /// What has to be there before the write itself; false if that could not be done.
    async fn prepare(&mut self, container: &str, write: &Write) -> bool {
        match write.verb {
            Verb::InsertOrMerge => {
                let content = content(write.number);
                for (block, part) in parts(&content).into_iter().enumerate() {
                    let id = block_id(self.client, write.number, block);
                    let query = format!("comp=block&blockid={id}");
                    let path = format!("/{container}/{}", write.row);
                    let message = put(path, &query, String::new(), part.to_owned());
                    if self.wire.status(&message).await != Some(201) {
                        return false;
                    }
                }
                true
            }
            Verb::Merge => {
                let headers = "x-ms-blob-type: BlockBlob\r\n".to_owned();
                let message = put(self.draft(container), "", headers, content(write.number));
                self.wire.status(&message).await == Some(201)
            }
            Verb::Insert | Verb::InsertOrReplace | Verb::Replace | Verb::Delete => true,
        }
    }

    /// A blob that only this client writes.
    fn draft(&self, container: &str) -> String {
        format!("/{container}/draft-{}", self.client)
    }

    fn message(&self, container: &str, action: &Action) -> Option<Message> {
        let write = match action {
            Action::Write(write) => write,
            Action::Get { row } => {
                let (path, query) = (format!("/{container}/{row}"), String::new());
                return Some(Message { method: "GET", path, query, headers: String::new(), body: None });
            }
            Action::Batch(_) | Action::Query => return None,
        };
        let etag = write.if_match.map(|version| format!("\"0x{version:X}\""));
        let matches = format!("If-Match: {}\r\n", etag.as_deref().unwrap_or("*"));
        let path = format!("/{container}/{}", write.row);
        let of_type = |condition: &str| format!("{condition}x-ms-blob-type: BlockBlob\r\n");
        Some(match write.verb {
            Verb::Insert => put(path, "", of_type("If-None-Match: *\r\n"), content(write.number)),
            Verb::InsertOrReplace => put(path, "", of_type(""), content(write.number)),
            Verb::Replace => put(path, "", of_type(&matches), content(write.number)),
            Verb::InsertOrMerge => {
                let count = parts(&content(write.number)).len();
                let ids = (0..count).map(|block| block_id(self.client, write.number, block));
                let list: String = ids.map(|id| format!("<Uncommitted>{id}</Uncommitted>")).collect();
                put(path, "comp=blocklist", String::new(), format!("<BlockList>{list}</BlockList>"))
            }
            Verb::Merge => {
                let source = format!("{}{}", self.url(), self.draft(container));
                put(path, "", format!("{matches}x-ms-copy-source: {source}\r\n"), String::new())
            }
            Verb::Delete => {
                Message { method: "DELETE", path, query: String::new(), headers: matches, body: None }
            }
        })
    }
}

/// A text as some blocks.
fn parts(content: &str) -> Vec<&str> {
    let words = content.len() / WORD_BYTES;
    let length = words.div_ceil(BLOCKS) * WORD_BYTES;
    (0..content.len()).step_by(length).map(|at| &content[at..content.len().min(at + length)]).collect()
}

fn understand(action: &Action, response: &Response<'_>) -> Result<Outcome, String> {
    let code = text(response.header("x-ms-error-code").unwrap_or_default());
    let strange = || Err(format!("answered with {} {code} {}", response.status, text(response.body)));
    let refused = |refusal| Ok(Outcome::Refused { index: 0, refusal });
    match (action, response.status, code.as_str()) {
        (_, 503, _) => Ok(Outcome::TurnedAway),
        (_, 500.., _) => Ok(Outcome::Unknown { until: None }),
        (Action::Get { row }, 200, _) => {
            let number = number_of(&text(response.body))?;
            let values = BTreeMap::from([(WRITER.to_owned(), number)]);
            Ok(Outcome::Found(vec![Found { row: row.clone(), version: version(response.etag)?, values }]))
        }
        (Action::Get { .. }, 404, "BlobNotFound") => Ok(Outcome::Found(Vec::new())),
        (Action::Write(Write { verb: Verb::Delete, .. }), 202, _) => Ok(Outcome::Done(vec![None])),
        (Action::Write(_), 201 | 202, _) => Ok(Outcome::Done(vec![Some(version(response.etag)?)])),
        (Action::Write(Write { verb: Verb::Insert, .. }), 409, "BlobAlreadyExists") => {
            refused(Refusal::EntityAlreadyExists)
        }
        (Action::Write(Write { verb: Verb::Delete, .. }), 404, "BlobNotFound") => {
            refused(Refusal::ResourceNotFound)
        }
        (Action::Write(write), 412, "ConditionNotMet" | "TargetConditionNotMet")
            if write.verb != Verb::Insert =>
        {
            refused(Refusal::ConditionNotMet)
        }
        // Somebody else has committed meanwhile, and the blocks are gone.
        (Action::Write(Write { verb: Verb::InsertOrMerge, .. }), 400, "InvalidBlockList") => {
            Ok(Outcome::TurnedAway)
        }
        _ => strange(),
    }
}

/// `"0x8D…"`.
fn version(etag: Option<&[u8]>) -> Result<Version, String> {
    let etag = text(etag.ok_or("there is no ETag")?);
    let digits = etag.trim_matches('"').strip_prefix("0x");
    let version = digits.and_then(|digits| Version::from_str_radix(digits, 16).ok());
    version.ok_or_else(|| format!("{etag} is no ETag of a blob"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_that_is_not_one_version_is_told() {
        for number in 1..9 {
            assert_eq!(number_of(&content(number)), Ok(number));
            assert_eq!(parts(&content(number)).concat(), content(number));
        }
        let (one, other) = (content(1), content(5));
        assert_eq!(one.len(), other.len());
        let mixed = format!("{}{}", &one[..900], &other[900..]);
        assert!(number_of(&mixed).unwrap_err().contains("then Some(\"00000005 \") at Some("), "{mixed:.0}");
        assert!(number_of(&one[..900]).unwrap_err().contains("900 bytes"));
        assert!(number_of("").is_err());
    }

    #[test]
    fn an_answer_has_one_meaning_or_is_strange() {
        let check = |action: &Action, head: &str, etag: Option<&[u8]>, body: &str, expected: &str| {
            let response = Response {
                head: head.as_bytes(),
                status: head[9..12].parse().unwrap_or_default(),
                closes: false,
                etag,
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
        };
        let write = |verb| {
            let (row, extras) = ("r".to_owned(), Vec::new());
            Action::Write(Write { verb, row, if_match: None, number: 1, extras })
        };
        let get = Action::Get { row: "r".to_owned() };
        let etag = Some(&b"\"0x10\""[..]);
        let refused =
            |status: u16, code: &str| format!("HTTP/1.1 {status} No\r\nx-ms-error-code: {code}\r\n");
        check(&write(Verb::Insert), "HTTP/1.1 201 Created", etag, "", "Done([Some(16)])");
        check(&write(Verb::Merge), "HTTP/1.1 202 Accepted", etag, "", "Done([Some(16)])");
        check(&write(Verb::Insert), "HTTP/1.1 201 Created", None, "", "strange: there is no ETag");
        check(&write(Verb::Delete), "HTTP/1.1 202 Accepted", None, "", "Done([None])");
        let exists = refused(409, "BlobAlreadyExists");
        check(&write(Verb::Insert), &exists, None, "", "Refused { index: 0, refusal: EntityAlreadyExists }");
        check(&write(Verb::Replace), &exists, None, "", "strange: answered with 409");
        let unmet = refused(412, "ConditionNotMet");
        check(&write(Verb::Replace), &unmet, None, "", "Refused { index: 0, refusal: ConditionNotMet }");
        let target = refused(412, "TargetConditionNotMet");
        check(&write(Verb::Merge), &target, None, "", "Refused { index: 0, refusal: ConditionNotMet }");
        check(&write(Verb::Insert), &unmet, None, "", "strange: answered with 412");
        check(&write(Verb::InsertOrMerge), &refused(400, "InvalidBlockList"), None, "", "TurnedAway");
        check(
            &write(Verb::Insert),
            &refused(400, "InvalidBlockList"),
            None,
            "",
            "strange: answered with 400",
        );
        check(
            &write(Verb::Delete),
            &refused(404, "BlobNotFound"),
            None,
            "",
            "Refused { index: 0, refusal: Resource",
        );
        check(&get, &refused(404, "BlobNotFound"), None, "", "Found([])");
        check(&get, &refused(404, "ContainerNotFound"), None, "", "strange: answered with 404");
        check(
            &get,
            "HTTP/1.1 200 OK",
            etag,
            &content(1),
            "Found([Found { row: \"r\", version: 16, values: {\"Writer\": 1}",
        );
        check(&get, "HTTP/1.1 200 OK", etag, &content(1)[..800], "strange: content is a mix");
        check(&get, "HTTP/1.1 500 Late", None, "", "Unknown");
        check(&get, "HTTP/1.1 503 Busy", None, "", "TurnedAway");
    }
}
