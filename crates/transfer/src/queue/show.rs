//! What `partita queue` prints: for people, or JSON lines.

use std::io::{self, IsTerminal as _, Write as _};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use super::command::Shown;
use super::line::{self, MessageLine};

/// Lines of one message that a terminal shows.
const LINES_MAX: usize = 10;

/// Standard output.
pub struct Display {
    shown: Shown,
    /// Of the terminal, if there is one.
    width: Option<usize>,
}

impl Display {
    pub fn new(shown: Shown) -> Self {
        let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        Self { shown, width: terminal.map(|(width, _)| usize::from(width.0)) }
    }

    /// A line for people, or the value in JSON.
    pub fn say(&self, text: &str, json: &impl Serialize) -> io::Result<()> {
        let mut out = Vec::new();
        match self.shown {
            Shown::Json => line::write(&mut out, json),
            Shown::Text => out.extend_from_slice(format!("{text}\n").as_bytes()),
        }
        print(&out)
    }

    pub fn message(&self, message: &MessageLine) -> io::Result<()> {
        let mut out = Vec::new();
        match self.shown {
            Shown::Json => line::write(&mut out, message),
            Shown::Text => out.extend_from_slice(for_people(message, self.width).as_bytes()),
        }
        print(&out)
    }
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// The id, how often it was taken, when it expires, the receipt if there is one, and the text.
fn for_people(message: &MessageLine, width: Option<usize>) -> String {
    let id = fitted(message.id.as_deref().unwrap_or_default(), None);
    let expires = match (message.is_forever(), &message.expires) {
        (true, _) | (_, None) => "never",
        (_, Some(time)) => time,
    };
    let taken = message.dequeue_count.unwrap_or_default();
    let mut out = format!("{id}  taken {taken}x, expires {expires}\n");
    if let Some(receipt) = &message.receipt {
        out.push_str(&format!("  receipt {}\n", fitted(receipt, None)));
    }
    let text = message.text.as_deref().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let count = if width.is_some() { lines.len().min(LINES_MAX) } else { lines.len() };
    for line in &lines[..count] {
        out.push_str("  ");
        out.push_str(&fitted(line, width.map(|width| width.saturating_sub(2))));
        out.push('\n');
    }
    if lines.len() > count {
        out.push_str(&format!("  … and {} more lines\n", lines.len() - count));
    }
    out
}

/// A line without control characters, which could change the terminal, and no longer than the terminal is wide.
pub fn fitted(line: &str, width: Option<usize>) -> String {
    let shown: String = line
        .chars()
        .flat_map(|c| {
            let (visible, escaped) =
                if c.is_control() { (None, Some(c.escape_default())) } else { (Some(c), None) };
            visible.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect();
    match width {
        Some(width) if shown.chars().count() > width => {
            shown.chars().take(width.saturating_sub(1)).chain(['…']).collect()
        }
        _ => shown,
    }
}

/// The text in a message that was encoded in Base64; `None` if it was not, or if it is not text.
pub fn decoded(text: &str) -> Option<String> {
    String::from_utf8(BASE64_STANDARD.decode(text.trim()).ok()?).ok()
}

pub fn encoded(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> MessageLine {
        MessageLine {
            id: Some("7".to_owned()),
            dequeue_count: Some(2),
            expires: Some("2030-01-01T00:00:00Z".to_owned()),
            text: Some(text.to_owned()),
            ..MessageLine::default()
        }
    }

    #[test]
    fn a_terminal_shows_what_fits_and_a_pipe_everything() {
        let check = |text: &str, width, expected: &str| {
            let head = "7  taken 2x, expires 2030-01-01T00:00:00Z\n";
            assert_eq!(for_people(&message(text), width), format!("{head}{expected}"), "{text:?}");
        };
        check("short", Some(20), "  short\n");
        check("", Some(20), "");
        check("exactly18 letters.", Some(20), "  exactly18 letters.\n");
        check("one more than that.", Some(20), "  one more than tha…\n");
        check("one more than that.", None, "  one more than that.\n");
        check("a\nb", Some(20), "  a\n  b\n");
        check("\x1b[31mred\x07", Some(40), "  \\u{1b}[31mred\\u{7}\n");
        check("ünïcode", Some(20), "  ünïcode\n");
        let many = "x\n".repeat(12);
        check(&many, Some(20), &format!("{}  … and 2 more lines\n", "  x\n".repeat(10)));
        check(&many, None, &"  x\n".repeat(12));
    }

    #[test]
    fn a_receipt_is_shown_and_no_expiry_is_never() {
        let mut taken = message("a");
        taken.receipt = Some("AgAA".to_owned());
        taken.expires = Some("9999-12-31T23:59:59Z".to_owned());
        assert_eq!(for_people(&taken, Some(80)), "7  taken 2x, expires never\n  receipt AgAA\n  a\n");
    }

    #[test]
    fn base64_is_text_or_nothing() {
        for (text, expected) in
            [("aGk=", Some("hi")), (" aGk=\n", Some("hi")), ("", Some("")), ("hi!", None), ("/w==", None)]
        {
            assert_eq!(decoded(text).as_deref(), expected, "{text:?}");
        }
        assert_eq!(encoded(&[0xff, 0]), "/wA=");
    }
}
