//! Reads a batch answer, for clients (spec: table-operations 6.3).

use protocol::multipart::{self, Lines, Sections};

/// The answer to one operation, borrowed from the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartAnswerRef<'a> {
    pub status: u16,
    pub headers: Vec<(&'a str, &'a str)>,
    pub body: &'a [u8],
}

impl PartAnswerRef<'_> {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

/// One answer per operation, or the single one of the operation that failed. `None` if this is not a batch answer, or is
/// cut off.
pub fn read_answers<'a>(content_type: &'a str, body: &'a [u8]) -> Option<Vec<PartAnswerRef<'a>>> {
    let boundary = multipart::boundary_in_use(body, multipart::boundary(content_type)?);
    let section = Sections::new(body, boundary).section().ok()??;
    let mut lines = Lines::new(section);
    let mime = headers(&mut lines)?;
    let (_, content_type) = mime.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"))?;
    if !multipart::is_multipart(content_type) {
        return Some(vec![answer(lines)?]);
    }
    let mut sections = Sections::new(lines.rest(), multipart::boundary(content_type)?);
    let mut answers = Vec::new();
    while let Some(section) = sections.section().ok()? {
        let mut lines = Lines::new(section);
        headers(&mut lines)?;
        answers.push(answer(lines)?);
    }
    Some(answers)
}

/// `lines` starts after the MIME headers.
fn answer(mut lines: Lines<'_>) -> Option<PartAnswerRef<'_>> {
    lines.skip_blank();
    let status_line = std::str::from_utf8(lines.next()?).ok()?;
    let status = status_line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some(PartAnswerRef { status, headers: headers(&mut lines)?, body: lines.rest() })
}

/// Up to the blank line.
fn headers<'a>(lines: &mut Lines<'a>) -> Option<Vec<(&'a str, &'a str)>> {
    let mut found = Vec::new();
    for line in lines.by_ref().take_while(|line| !multipart::is_blank(line)) {
        let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
        found.push((name.trim(), value.trim()));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::batch::{PartAnswer, content_type, write_change_set, write_query};

    fn part(status: u16, etag: Option<&'static str>, body: &'static str) -> PartAnswer {
        let headers = etag.map(|etag| ("ETag", etag.into())).into_iter().collect();
        PartAnswer { status, headers, body: Bytes::from_static(body.as_bytes()) }
    }

    fn check(answers: &[PartAnswer], body: &[u8]) {
        let content_type = content_type("1");
        let found = read_answers(&content_type, body).expect("it is whole");
        assert_eq!(found.len(), answers.len());
        for (found, sent) in found.iter().zip(answers) {
            assert_eq!((found.status, found.body), (sent.status, &*sent.body));
            assert_eq!(found.header("etag"), sent.headers.first().map(|(_, value)| &**value));
        }
    }

    #[test]
    fn a_client_reads_what_a_server_writes() {
        let answers = [part(204, Some("W/\"1\""), ""), part(204, None, ""), part(204, Some("W/\"2\""), "")];
        check(&answers, &write_change_set("1", "2", &answers));
        let failed = [part(409, None, "{\"odata.error\":{}}")];
        check(&failed, &write_change_set("1", "2", &failed));
        check(&failed, &write_query("1", &failed[0]));
    }

    #[test]
    fn half_an_answer_is_none() {
        let whole = write_change_set("1", "2", &[part(204, None, ""), part(204, None, "")]);
        let end = whole.windows(3).rposition(|window| window == b"204").expect("it is in there");
        for cut in [0, 10, end, end + 20] {
            assert_eq!(read_answers(&content_type("1"), &whole[..cut]), None, "{cut}");
        }
        assert_eq!(read_answers("text/html", b"<p>"), None);
    }
}
