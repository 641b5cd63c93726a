//! XML as .NET's writer lays it out and escapes it. Knows nothing of Atom.

/// Elements, each on a line of its own or all on one.
#[derive(Debug)]
pub(super) struct Xml<'a> {
    out: &'a mut Vec<u8>,
    indented: bool,
    depth: usize,
}

impl<'a> Xml<'a> {
    pub(super) fn written(&self) -> &Vec<u8> {
        self.out
    }

    /// Writes the declaration.
    pub(super) fn start(out: &'a mut Vec<u8>, indented: bool) -> Self {
        out.extend_from_slice(if indented {
            b"<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>".as_slice()
        } else {
            b"<?xml version=\"1.0\" encoding=\"utf-8\"?>"
        });
        Self { out, indented, depth: 0 }
    }

    pub(super) fn open(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.tag(tag, attributes, ">");
        self.depth += 1;
    }

    pub(super) fn close(&mut self, tag: &str) {
        self.depth -= 1;
        self.line();
        self.raw(&["</", tag, ">"]);
    }

    /// An element with text. Empty text also has both tags, as .NET writes it.
    pub(super) fn leaf(&mut self, tag: &str, attributes: &[(&str, &str)], text: &str) {
        self.tag(tag, attributes, ">");
        escape(self.out, text, false);
        self.raw(&["</", tag, ">"]);
    }

    pub(super) fn empty(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.tag(tag, attributes, " />");
    }

    fn tag(&mut self, tag: &str, attributes: &[(&str, &str)], end: &str) {
        self.line();
        self.raw(&["<", tag]);
        for (name, value) in attributes {
            self.raw(&[" ", name, "=\""]);
            escape(self.out, value, true);
            self.raw(&["\""]);
        }
        self.raw(&[end]);
    }

    fn line(&mut self) {
        if self.indented {
            self.raw(&["\r\n"]);
            self.out.resize(self.out.len() + 2 * self.depth, b' ');
        }
    }

    fn raw(&mut self, pieces: &[&str]) {
        for piece in pieces {
            self.out.extend_from_slice(piece.as_bytes());
        }
    }
}

/// Text or an attribute's value. Characters that XML 1.0 forbids become references. That is not quite XML, but .NET writes
/// and reads it, and dropping them would change the stored value.
fn escape(out: &mut Vec<u8>, text: &str, attribute: bool) {
    let mut written = 0;
    for (at, c) in text.char_indices() {
        let escaped = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' if attribute => "&quot;",
            '\t' | '\n' if !attribute => continue,
            // A bare CR would be read as LF.
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => &format!("&#x{:X};", u32::from(c)),
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[written..at]);
        out.extend_from_slice(escaped.as_bytes());
        written = at + c.len_utf8();
    }
    out.extend_from_slice(&text.as_bytes()[written..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_keep_their_line_ends() {
        let mut out = Vec::new();
        escape(&mut out, "a\tb\n\"<>&'", true);
        assert_eq!(String::from_utf8(out).unwrap(), "a&#x9;b&#xA;&quot;&lt;&gt;&amp;'");
    }
}
