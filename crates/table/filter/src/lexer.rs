//! Splits a filter into tokens, one at a time, on demand.
//!
//! On demand, because the service reports the first error: an unexpected word must be reported before a bad character after
//! it. Words are not classified here: `and` or `eq` may also be a property's name, which only the parser can tell. Offsets
//! are bytes; errors turn them into positions.

use model::{EdmType, is_property_name};

use crate::FilterError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    /// A literal of this type. Its content is not checked yet.
    Literal(EdmType),
    /// `time'…'` and `datetimeoffset'…'`: OData types the Table service does not have.
    ForeignLiteral,
    Open,
    Close,
    Comma,
    Minus,
    Slash,
    /// Punctuation of OData that no filter can use.
    Symbol,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub at: usize,
}

impl Token<'_> {
    pub fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The next token; after the last one, always `End`.
    pub fn next(&mut self) -> Result<Token<'a>, FilterError> {
        self.skip(char::is_whitespace);
        let at = self.at;
        let Some(first) = self.peek() else { return Ok(Token { kind: Kind::End, text: "", at }) };
        let kind = match first {
            '\'' => self.string()?,
            '-' => self.minus()?,
            '0'..='9' => self.number()?,
            '(' | ')' | ',' | '/' | '*' | ':' | '?' | '.' | '=' => {
                self.at += 1;
                punctuation(first)
            }
            _ if starts_word(first) => self.word()?,
            _ => return Err(FilterError::character(self.text, at, first)),
        };
        Ok(Token { kind, text: &self.text[at..self.at], at })
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, accepts: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !accepts(c)).unwrap_or(rest.len());
    }

    fn take(&mut self, any_of: &[char]) -> bool {
        let taken = self.peek().filter(|c| any_of.contains(c));
        self.at += taken.map_or(0, char::len_utf8);
        taken.is_some()
    }

    /// A quote inside is written twice.
    fn string(&mut self) -> Result<Kind, FilterError> {
        while self.take(&['\'']) {
            self.skip(|c| c != '\'');
            if !self.take(&['\'']) {
                return Err(FilterError::unterminated_string(self.text));
            }
        }
        Ok(Kind::Literal(EdmType::String))
    }

    fn word(&mut self) -> Result<Kind, FilterError> {
        let start = self.at;
        self.skip(continues_word);
        let word = &self.text[start..self.at];
        if self.peek() == Some('\'')
            && let Some(kind) = prefixed(word)
        {
            self.at += 1;
            self.skip(|c| c != '\'');
            if !self.take(&['\'']) {
                return Err(FilterError::unterminated_literal(self.text));
            }
            return Ok(kind);
        }
        Ok(match word {
            "true" | "false" => Kind::Literal(EdmType::Boolean),
            "NaN" | "INF" => Kind::Literal(EdmType::Double),
            _ => Kind::Word,
        })
    }

    fn minus(&mut self) -> Result<Kind, FilterError> {
        self.at += 1;
        if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return self.number();
        }
        let after_infinity = self.rest().strip_prefix("INF").map(|rest| rest.chars().next());
        if after_infinity.is_some_and(|next| !next.is_some_and(continues_word)) {
            self.at += "INF".len();
            return Ok(Kind::Literal(EdmType::Double));
        }
        Ok(Kind::Minus)
    }

    /// Digits, fraction, exponent and a suffix for the type. What follows is the next token.
    fn number(&mut self) -> Result<Kind, FilterError> {
        let mut kind = EdmType::Int32;
        self.skip(|c| c.is_ascii_digit());
        if self.take(&['.']) {
            kind = EdmType::Double;
            self.digits()?;
        }
        if self.take(&['e', 'E']) {
            kind = EdmType::Double;
            self.take(&['+', '-']);
            self.digits()?;
        }
        // Single and Decimal do not exist in tables; the nearest type that does is Double (spec: open question 7).
        if self.take(&['d', 'D', 'f', 'F', 'm', 'M']) {
            kind = EdmType::Double;
        } else if self.take(&['l', 'L']) {
            kind = EdmType::Int64;
        }
        Ok(Kind::Literal(kind))
    }

    fn digits(&mut self) -> Result<(), FilterError> {
        if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Err(FilterError::digit(self.text, self.at));
        }
        self.skip(|c| c.is_ascii_digit());
        Ok(())
    }
}

fn punctuation(character: char) -> Kind {
    match character {
        '(' => Kind::Open,
        ')' => Kind::Close,
        ',' => Kind::Comma,
        '/' => Kind::Slash,
        _ => Kind::Symbol,
    }
}

/// The type that a word directly before a quote gives to the text in quotes. OData ignores the word's case.
fn prefixed(word: &str) -> Option<Kind> {
    const PREFIXES: [(&str, Kind); 6] = [
        ("datetime", Kind::Literal(EdmType::DateTime)),
        ("guid", Kind::Literal(EdmType::Guid)),
        ("binary", Kind::Literal(EdmType::Binary)),
        ("x", Kind::Literal(EdmType::Binary)),
        ("time", Kind::ForeignLiteral),
        ("datetimeoffset", Kind::ForeignLiteral),
    ];
    PREFIXES.into_iter().find(|(prefix, _)| prefix.eq_ignore_ascii_case(word)).map(|(_, kind)| kind)
}

fn starts_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || (!c.is_ascii() && is_property_name(c.encode_utf8(&mut [0; 4])))
}

/// Uses the model's rule, so that a filter can use every name that can be stored.
fn continues_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || (!c.is_ascii() && is_property_name(&format!("_{c}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut lexer = Lexer::new(text);
        let mut shown = Vec::new();
        loop {
            match lexer.next() {
                Ok(Token { kind: Kind::End, .. }) => break,
                Ok(Token { kind: Kind::Literal(kind), text, at }) => {
                    shown.push(format!("{at} {kind} {text}"));
                }
                Ok(Token { kind, text, at }) => shown.push(format!("{at} {kind:?} {text}")),
                Err(error) => {
                    shown.push(error.to_string());
                    break;
                }
            }
        }
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn words_and_punctuation() {
        check("", &[]);
        check(" \t\r\n", &[]);
        check("a  eq\tb", &["0 Word a", "3 Word eq", "6 Word b"]);
        check(
            "(a)and(b)",
            &["0 Open (", "1 Word a", "2 Close )", "3 Word and", "6 Open (", "7 Word b", "8 Close )"],
        );
        check("été_1 日本", &["0 Word été_1", "8 Word 日本"]);
        check("a\u{301}b", &["0 Word a\u{301}b"]);
        check("a/b,c", &["0 Word a", "1 Slash /", "2 Word b", "3 Comma ,", "4 Word c"]);
        check("a=1", &["0 Word a", "1 Symbol =", "2 Edm.Int32 1"]);
    }

    #[test]
    fn strings() {
        check("'a''b'", &["0 Edm.String 'a''b'"]);
        check("''", &["0 Edm.String ''"]);
        check("''''", &["0 Edm.String ''''"]);
        check("'a' 'b'", &["0 Edm.String 'a'", "4 Edm.String 'b'"]);
        check("'a\nб𝄞'", &["0 Edm.String 'a\nб𝄞'"]);
        check("'𝄞", &["There is an unterminated string literal at position 3 in ''𝄞'."]);
        check("'a''", &["There is an unterminated string literal at position 4 in ''a'''."]);
        check("'", &["There is an unterminated string literal at position 1 in '''."]);
    }

    #[test]
    fn numbers() {
        check("1 -5 7L -7l", &["0 Edm.Int32 1", "2 Edm.Int32 -5", "5 Edm.Int64 7L", "8 Edm.Int64 -7l"]);
        check("1.5 1e10 1E-5", &["0 Edm.Double 1.5", "4 Edm.Double 1e10", "9 Edm.Double 1E-5"]);
        check("1d 2F 3.5m", &["0 Edm.Double 1d", "3 Edm.Double 2F", "6 Edm.Double 3.5m"]);
        check("INF -INF NaN", &["0 Edm.Double INF", "4 Edm.Double -INF", "9 Edm.Double NaN"]);
        check("-INFO", &["0 Minus -", "1 Word INFO"]);
        check("- 1", &["0 Minus -", "2 Edm.Int32 1"]);
        check("12ab", &["0 Edm.Int32 12", "2 Word ab"]);
        check("x 1.", &["0 Word x", "A digit was expected at position 4 in 'x 1.'."]);
        check("1e+", &["A digit was expected at position 3 in '1e+'."]);
    }

    #[test]
    fn typed_literals() {
        check("datetime'x'", &["0 Edm.DateTime datetime'x'"]);
        check("guid'x' GUID'x'", &["0 Edm.Guid guid'x'", "8 Edm.Guid GUID'x'"]);
        check(
            "X'0a' x'0a' binary''",
            &["0 Edm.Binary X'0a'", "6 Edm.Binary x'0a'", "12 Edm.Binary binary''"],
        );
        check("time'x'", &["0 ForeignLiteral time'x'"]);
        check("datetime 'x'", &["0 Word datetime", "9 Edm.String 'x'"]);
        check("foo'x'", &["0 Word foo", "3 Edm.String 'x'"]);
        check("guid'x", &["There is an unterminated literal at position 6 in 'guid'x'."]);
    }

    #[test]
    fn booleans_are_lower_case() {
        check("true false True", &["0 Edm.Boolean true", "5 Edm.Boolean false", "11 Word True"]);
    }

    #[test]
    fn characters_that_begin_nothing() {
        check("<class", &["Syntax error: character '<' is not valid at position 0 in '<class'."]);
        check("é𝄞", &["0 Word é", "Syntax error: character '𝄞' is not valid at position 1 in 'é𝄞'."]);
        check("a\0", &["0 Word a", "Syntax error: character '\0' is not valid at position 1 in 'a\0'."]);
    }
}
