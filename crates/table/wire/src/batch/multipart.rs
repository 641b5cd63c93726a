//! Multipart bodies: boundaries, sections, lines. Knows nothing of what a section holds.

pub(super) fn is_multipart(content_type: &str) -> bool {
    content_type.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("multipart/"))
}

/// The `boundary` parameter, quoted or not.
pub(super) fn boundary(content_type: &str) -> Option<&str> {
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
pub(super) fn boundary_in_use<'a>(body: &'a [u8], declared: &'a str) -> &'a str {
    let is_declared = |line: &[u8]| Sections::new(&[], declared).delimiter(line).is_some();
    let Some(opening) = Lines::new(body).find(|line| !is_blank(line)) else { return declared };
    if is_declared(opening) || Lines::new(body).any(is_declared) {
        return declared;
    }
    let named = opening.strip_prefix(b"--").and_then(|name| std::str::from_utf8(name.trim_ascii_end()).ok());
    named.filter(|name| !name.is_empty()).unwrap_or(declared)
}

/// No boundary ends the section, so it is cut off.
#[derive(Debug)]
pub(super) struct CutOff;

/// The sections between the boundaries of a multipart body. Text before the first boundary or after the closing one is
/// ignored, and so is a section of only blanks.
pub(super) struct Sections<'a> {
    lines: Lines<'a>,
    boundary: &'a str,
    opened: bool,
    opened_part: bool,
    closed: bool,
}

impl<'a> Sections<'a> {
    pub(super) fn new(input: &'a [u8], boundary: &'a str) -> Self {
        Self { lines: Lines::new(input), boundary, opened: false, opened_part: false, closed: false }
    }

    /// Whether there has been a boundary yet.
    pub(super) fn opened(&self) -> bool {
        self.opened
    }

    /// Whether there has been a boundary other than the closing one.
    pub(super) fn opened_part(&self) -> bool {
        self.opened_part
    }

    /// The next section, without the line end before the next boundary.
    pub(super) fn section(&mut self) -> Result<Option<&'a [u8]>, CutOff> {
        let mut start = self.lines.rest;
        let mut before = start;
        while !self.closed
            && let Some(line) = self.lines.next()
        {
            if let Some(closing) = self.delimiter(line) {
                let section = &start[..start.len() - before.len()];
                let counts = self.opened && !is_blank(section);
                self.opened = true;
                self.opened_part |= !closing;
                self.closed = closing;
                if counts {
                    return Ok(Some(without_line_end(section)));
                }
                start = self.lines.rest;
            }
            before = self.lines.rest;
        }
        // A last boundary without its dashes opens a section that is not there.
        if self.closed || is_blank(start) { Ok(None) } else { Err(CutOff) }
    }

    /// Whether the line is a boundary, and if so whether it is the closing one.
    fn delimiter(&self, line: &[u8]) -> Option<bool> {
        let rest = line.strip_prefix(b"--")?.strip_prefix(self.boundary.as_bytes())?;
        match rest.trim_ascii_end() {
            b"" => Some(false),
            b"--" => Some(true),
            _ => None,
        }
    }
}

/// Lines without their ends, LF or CRLF.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// The bytes not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn skip_blank(&mut self) {
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

pub(super) fn is_blank(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().is_empty()
}

#[cfg(test)]
mod tests {
    fn check(content_type: &str, expected: Option<&str>) {
        assert_eq!(super::boundary(content_type), expected, "{content_type}");
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
