//! The keys between the parentheses of an address: one literal, or several with names.
//!
//! Errors have the texts of Microsoft's URI parser, which quotes the input and counts UTF-16 units.

use model::Refusal;

#[derive(Debug, PartialEq, Eq)]
pub enum Predicate {
    Empty,
    /// `'Books'`
    Single(String),
    /// `PartitionKey='a',RowKey='b'`
    Named(Vec<(String, String)>),
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Text(String),
    Comma,
    Equals,
}

/// The keys of `PartitionKey='a',RowKey='b'`, in exactly this form. `parse` reads every other form.
pub fn both_keys(text: &str) -> Option<(String, String)> {
    let (partition, rest) = literal(text.strip_prefix("PartitionKey=")?)?;
    let (row, rest) = literal(rest.strip_prefix(",RowKey=")?)?;
    rest.is_empty().then_some((partition, row))
}

/// A text in quotes, and the rest after it.
fn literal(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('\'')?;
    let mut value = String::new();
    let mut rest = text;
    loop {
        let end = memchr::memchr(b'\'', rest.as_bytes())?;
        let (piece, behind) = (&rest[..end], &rest[end + 1..]);
        value.push_str(piece);
        match behind.strip_prefix('\'') {
            // Two quotes stand for one.
            Some(behind) => {
                value.push('\'');
                rest = behind;
            }
            None => return Some((value, behind)),
        }
    }
}

pub fn parse(text: &str) -> Result<Predicate, Refusal> {
    let tokens = tokens(text)?;
    let mut tokens = tokens.into_iter().peekable();
    if tokens.peek().is_none() {
        return Ok(Predicate::Empty);
    }
    if let Some((Token::Text(_), _)) = tokens.peek()
        && let Some((Token::Text(single), _)) = tokens.next()
    {
        return match tokens.next() {
            None => Ok(Predicate::Single(single)),
            Some((_, end)) => Err(syntax(end, text)),
        };
    }
    let mut named = Vec::new();
    loop {
        let name = match tokens.next() {
            Some((Token::Name(name), _)) => name,
            Some((_, end)) => return Err(syntax(end, text)),
            None => return Err(syntax(units(text), text)),
        };
        match tokens.next() {
            Some((Token::Equals, _)) => {}
            Some((_, end)) => return Err(syntax(end, text)),
            None => return Err(syntax(units(text), text)),
        }
        match tokens.next() {
            Some((Token::Text(value), _)) => named.push((name, value)),
            Some((_, end)) => return Err(syntax(end, text)),
            None => return Err(syntax(units(text), text)),
        }
        match tokens.next() {
            None => return Ok(Predicate::Named(named)),
            Some((Token::Comma, _)) => {}
            Some((_, end)) => return Err(syntax(end, text)),
        }
    }
}

/// All tokens, each with the position of its end. A character that starts no token is reported before any other error.
fn tokens(text: &str) -> Result<Vec<(Token, usize)>, Refusal> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    let mut at = 0;
    while let Some(c) = chars.next() {
        let start = at;
        at += c.len_utf16();
        let token = match c {
            ' ' => continue,
            ',' => Token::Comma,
            '=' => Token::Equals,
            '\'' => {
                let mut value = String::new();
                loop {
                    match chars.next() {
                        Some('\'') if chars.peek() == Some(&'\'') => {
                            chars.next();
                            value.push('\'');
                            at += 2;
                        }
                        Some('\'') => {
                            at += 1;
                            break;
                        }
                        Some(c) => {
                            value.push(c);
                            at += c.len_utf16();
                        }
                        None => {
                            let message = format!(
                                "There is an unterminated string literal at position {at} in '{text}'."
                            );
                            return Err(Refusal::Syntax { message });
                        }
                    }
                }
                Token::Text(value)
            }
            c if c.is_alphanumeric() || c == '_' => {
                let mut name = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    name.push(c);
                    at += c.len_utf16();
                }
                Token::Name(name)
            }
            c => {
                let message =
                    format!("Syntax error: character '{c}' is not valid at position {start} in '{text}'.");
                return Err(Refusal::Syntax { message });
            }
        };
        tokens.push((token, at));
    }
    Ok(tokens)
}

fn syntax(position: usize, text: &str) -> Refusal {
    Refusal::Syntax { message: format!("Syntax error at position {position} in '{text}'.") }
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        let shown = match parse(text) {
            Ok(Predicate::Empty) => "empty".to_owned(),
            Ok(Predicate::Single(value)) => format!("[{value}]"),
            Ok(Predicate::Named(named)) => {
                named.iter().map(|(n, v)| format!("{n}=[{v}]")).collect::<Vec<_>>().join(" ")
            }
            Err(refusal) => refusal.to_string(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn literals_are_read() {
        check("", "empty");
        check("'Books'", "[Books]");
        check("PartitionKey='a',RowKey='b'", "PartitionKey=[a] RowKey=[b]");
        check("PartitionKey = 'o''clock' , RowKey=''", "PartitionKey=[o'clock] RowKey=[]");
        check("PartitionKey='a,=()',RowKey='\"'", "PartitionKey=[a,=()] RowKey=[\"]");
    }

    #[test]
    fn the_short_way_finds_what_the_long_way_finds() {
        let keys = "PartitionKey='([aé]|''){0,20}',RowKey='([aé,=]|''){0,20}'";
        testing::check_near(
            testing::text_near(keys, &["'", "''", ",", "=", "RowKey='a'", " "]),
            4..=80,
            |text| {
                let Some((partition, row)) = both_keys(&text) else { return Ok(testing::Reading::Refused) };
                let named = vec![("PartitionKey".to_owned(), partition), ("RowKey".to_owned(), row)];
                prop_assert_eq!(parse(&text), Ok(Predicate::Named(named)));
                Ok(testing::Reading::Accepted)
            },
        );
    }

    #[test]
    fn the_usual_form_takes_the_short_way() {
        let keys = |partition: &str, row: &str| Some((partition.to_owned(), row.to_owned()));
        assert_eq!(both_keys("PartitionKey='o''clock',RowKey=''"), keys("o'clock", ""));
        assert_eq!(both_keys("RowKey='a',PartitionKey='b'"), None);
        assert_eq!(both_keys("PartitionKey='a',RowKey='b' "), None);
    }

    #[test]
    fn errors_say_where() {
        check(
            "PartitionKey='A'aaa\"_bbbb2',RowKey='\"A'aaa\"_bbbb2'",
            "Syntax error: character '\"' is not valid at position 19 in 'PartitionKey='A'aaa\"_bbbb2',RowKey='\"A'aaa\"_bbbb2''.",
        );
        check("PartitionKey='a' RowKey='b'", "Syntax error at position 23 in 'PartitionKey='a' RowKey='b''.");
        check("PartitionKey='a',", "Syntax error at position 17 in 'PartitionKey='a','.");
        check("PartitionKey", "Syntax error at position 12 in 'PartitionKey'.");
        check(
            "PartitionKey='a",
            "There is an unterminated string literal at position 15 in 'PartitionKey='a'.",
        );
    }
}
