//! Multipart bodies: boundaries, sections, lines. Knows nothing of what a section holds.

use memchr::memmem;

pub fn is_multipart(content_type: &str) -> bool {
    content_type.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("multipart/"))
}

/// The `boundary` parameter, quoted or not.
pub fn boundary(content_type: &str) -> Option<&str> {
    if !is_multipart(content_type) {
        return None;
    }
    let (_, mut rest) = content_type.split_once(';')?;
    loop {
        let (before, value) = rest.split_once('=')?;
        let value = value.trim_start();
        // A quoted value may hold semicolons; a boundary can hold nothing that needs a backslash.
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_once(';').unwrap_or((value, "")),
        };
        let name = before.rsplit(';').next().unwrap_or(before).trim();
        if name.eq_ignore_ascii_case("boundary") {
            let boundary = value.trim_end();
            return (!boundary.is_empty()).then_some(boundary);
        }
        rest = after;
    }
}

/// The boundary of this body: the declared one, unless the body has no such line and starts with another boundary. A proxy
/// may rewrite headers, but not bodies.
pub fn boundary_in_use<'a>(body: &'a [u8], declared: &'a str) -> &'a str {
    let is_declared = |line: &[u8]| delimiter(line, declared).is_some();
    let Some(opening) = Lines::new(body).find(|line| !is_blank(line)) else { return declared };
    if is_declared(opening) || Lines::new(body).any(is_declared) {
        return declared;
    }
    let named = opening.strip_prefix(b"--").and_then(|name| std::str::from_utf8(name.trim_ascii_end()).ok());
    named.filter(|name| !name.is_empty()).unwrap_or(declared)
}

/// No boundary ends the section, so it is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff;

/// The sections between the boundaries of a multipart body. Text before the first boundary or after the closing one is
/// ignored, and so is a section of only blanks.
#[derive(Debug)]
pub struct Sections<'a> {
    /// Begins with a line.
    rest: &'a [u8],
    boundary: &'a str,
    dashed: memmem::Finder<'static>,
    opened: bool,
    opened_part: bool,
    closed: bool,
}

/// A line that is a boundary.
struct Delimiter<'a> {
    before: &'a [u8],
    after: &'a [u8],
    is_closing: bool,
}

impl<'a> Sections<'a> {
    pub fn new(input: &'a [u8], boundary: &'a str) -> Self {
        let dashed = memmem::Finder::new(&["--", boundary].concat()).into_owned();
        Self { rest: input, boundary, dashed, opened: false, opened_part: false, closed: false }
    }

    /// Whether there has been a boundary yet.
    pub fn opened(&self) -> bool {
        self.opened
    }

    /// Whether there has been a boundary other than the closing one.
    pub fn opened_part(&self) -> bool {
        self.opened_part
    }

    /// The next section, without the line end before the next boundary.
    pub fn section(&mut self) -> Result<Option<&'a [u8]>, CutOff> {
        while !self.closed
            && let Some(Delimiter { before: section, after, is_closing }) = self.delimiter()
        {
            let counts = self.opened && !is_blank(section);
            self.opened = true;
            self.opened_part |= !is_closing;
            self.closed = is_closing;
            self.rest = after;
            if counts {
                return Ok(Some(without_line_end(section)));
            }
        }
        // A last boundary without its dashes opens a section that is not there.
        if self.closed || is_blank(self.rest) { Ok(None) } else { Err(CutOff) }
    }

    /// The next boundary. Only lines that have its text are looked at.
    fn delimiter(&self) -> Option<Delimiter<'a>> {
        let mut from = 0;
        loop {
            let start = from + self.dashed.find(&self.rest[from..])?;
            let (before, line) = self.rest.split_at(start);
            if before.last().is_none_or(|byte| *byte == b'\n') {
                let mut lines = Lines::new(line);
                if let Some(is_closing) = lines.next().and_then(|line| delimiter(line, self.boundary)) {
                    return Some(Delimiter { before, after: lines.rest, is_closing });
                }
            }
            from = start + 1;
        }
    }
}

/// Whether the line is a boundary, and if so whether it is the closing one.
fn delimiter(line: &[u8], boundary: &str) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary.as_bytes())?;
    match rest.trim_ascii_end() {
        b"" => Some(false),
        b"--" => Some(true),
        _ => None,
    }
}

/// Lines without their ends, LF or CRLF.
#[derive(Debug)]
pub struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    pub fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn skip_blank(&mut self) {
        let mut ahead = Lines { rest: self.rest };
        while let Some(line) = ahead.next()
            && is_blank(line)
        {
            self.rest = ahead.rest;
        }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.rest).map_or(self.rest.len(), |at| at + 1);
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(without_line_end(line))
    }
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    let Some(bytes) = bytes.strip_suffix(b"\n") else { return bytes };
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

pub fn is_blank(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The sections, line by line.
    fn by_lines<'a>(input: &'a [u8], boundary: &str) -> Option<Vec<&'a [u8]>> {
        let (mut found, mut is_open) = (Vec::new(), false);
        let mut lines = Lines::new(input);
        let (mut start, mut before) = (input, input);
        while let Some(line) = lines.next() {
            if let Some(is_closing) = delimiter(line, boundary) {
                let section = &start[..start.len() - before.len()];
                if is_open && !is_blank(section) {
                    found.push(without_line_end(section));
                }
                if is_closing {
                    return Some(found);
                }
                (is_open, start) = (true, lines.rest);
            }
            before = lines.rest;
        }
        is_blank(start).then_some(found)
    }

    proptest! {
        #[test]
        fn sections_are_those_of_the_lines(
            input in "((--b|--b--|--bb|--|b|x| |----b|x--b)[ \t]?(\r\n|\n|\r)?){0,12}",
        ) {
            let mut sections = Sections::new(input.as_bytes(), "b");
            let mut found = Vec::new();
            let whole = loop {
                match sections.section() {
                    Ok(Some(section)) => found.push(section),
                    Ok(None) => break true,
                    Err(CutOff) => break false,
                }
            };
            prop_assert_eq!(whole.then_some(found), by_lines(input.as_bytes(), "b"));
        }
    }

    fn check(content_type: &str, expected: Option<&str>) {
        assert_eq!(boundary(content_type), expected, "{content_type}");
    }

    #[test]
    fn finds_the_boundary_among_parameters() {
        check("multipart/mixed; boundary=batch_1", Some("batch_1"));
        check("multipart/mixed;boundary=batch_1", Some("batch_1"));
        check("Multipart/Mixed; Boundary = \"batch 1\"", Some("batch 1"));
        check("multipart/mixed; charset=\"utf-8\"; boundary=batch_1", Some("batch_1"));
        check("multipart/mixed; charset=\"a;boundary=x\"; boundary=y ; z=1", Some("y"));
        check("multipart/mixed; flag; boundary=a=b", Some("a=b"));
        check("multipart/mixed", None);
        check("multipart/mixed; boundary=", None);
        check("multipart/mixed; boundary=\"open", None);
        check("multipart/mixed; charset=utf-8", None);
        check("application/json; boundary=x", None);
        check("multipartÄ", None);
    }
}
