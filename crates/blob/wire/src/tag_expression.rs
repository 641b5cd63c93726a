//! Expressions over tags as text: the header `x-ms-if-tags`, and `where` of Find Blobs by Tags (spec: blob-operations 2.6,
//! 4.5).

use blob_model::{Comparison, Refusal, TagCondition, TagExpression, Tags, limits};

/// What Find Blobs by Tags asks for: all of these, in one container or in any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagSearch {
    pub container: Option<String>,
    pub conditions: Vec<TagCondition>,
}

impl TagSearch {
    /// Only at the account's address a container can be named.
    pub fn parse(text: &str, at_account: bool) -> Result<Self, Refusal> {
        let refuse = |Problem { at, expected }| {
            let at = text[..at].chars().count() + 1;
            Refusal::WhereInvalid { at, problem: expected, value: text.to_owned() }
        };
        Parser::new(text).and_then(|parser| parser.search(at_account)).map_err(refuse)
    }

    pub fn holds(&self, tags: &Tags) -> bool {
        self.conditions.iter().all(|condition| condition.holds(tags))
    }

    /// The tags that the answer shows: those that the expression names, sorted.
    pub fn shown<'t>(&self, tags: &'t Tags) -> Vec<(&'t str, &'t str)> {
        tags.iter().filter(|(key, _)| self.conditions.iter().any(|condition| condition.key == *key)).collect()
    }
}

/// The header `x-ms-if-tags` or `x-ms-source-if-tags`.
pub fn parse_condition(header: &'static str, text: &str) -> Result<TagExpression, Refusal> {
    let parsed = Parser::new(text).and_then(Parser::condition);
    parsed.map_err(|_| Refusal::HeaderInvalid { name: header, value: text.to_owned() })
}

/// Where the text is no expression, and what should be there.
struct Problem {
    at: usize,
    expected: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'t> {
    /// A bare key, or a word such as AND.
    Word(&'t str),
    /// A key in double quotes.
    Quoted(&'t str),
    Value(&'t str),
    Sign(Comparison),
    Container,
    Open,
    Close,
}

impl Token<'_> {
    fn is_word(&self, word: &str) -> bool {
        matches!(self, Self::Word(found) if found.eq_ignore_ascii_case(word))
    }
}

struct Parser<'t> {
    tokens: Vec<(usize, Token<'t>)>,
    next: usize,
    end: usize,
    comparisons: usize,
}

const CONTAINER: &str = "@container";

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Result<Self, Problem> {
        if text.len() > limits::TAG_EXPRESSION_BYTES_MAX {
            return Err(Problem { at: 0, expected: "the query is too long" });
        }
        let mut tokens = Vec::new();
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            let at = text.len() - rest.len();
            if rest.is_empty() {
                return Ok(Self { tokens, next: 0, end: at, comparisons: 0 });
            }
            let (token, after) = token(rest).ok_or(Problem { at, expected: "unexpected character" })?;
            tokens.push((at, token));
            rest = after;
        }
    }

    fn peek(&self) -> Option<&Token<'t>> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn take(&mut self) -> Option<Token<'t>> {
        let token = self.peek().cloned();
        self.next += 1;
        token
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_next = self.peek().is_some_and(|token| token.is_word(word));
        if is_next {
            self.next += 1;
        }
        is_next
    }

    /// At this token, or at the end if there are not so many.
    fn problem<T>(&self, token: usize, expected: &'static str) -> Result<T, Problem> {
        let at = self.tokens.get(token).map_or(self.end, |(at, _)| *at);
        Err(Problem { at, expected })
    }

    fn search(mut self, at_account: bool) -> Result<TagSearch, Problem> {
        let mut search = TagSearch::default();
        loop {
            let start = self.next;
            if self.peek() == Some(&Token::Container) {
                self.next += 1;
                let name = match (self.take(), self.take()) {
                    (Some(Token::Sign(Comparison::Equal)), Some(Token::Value(name))) => name,
                    _ => return self.problem(start, "expected an operator"),
                };
                if !at_account || search.container.replace(name.to_owned()).is_some() {
                    return self.problem(start, "unexpected @container");
                }
            } else {
                let condition = self.comparison()?;
                if condition.comparison == Comparison::NotEqual {
                    return self.problem(start, "expected an operator");
                }
                search.conditions.push(condition);
            }
            if self.peek().is_none() {
                break;
            }
            if !self.takes_word("AND") {
                return self.problem(self.next, "expected AND");
            }
        }
        match search.conditions.is_empty() {
            true => self.problem(self.next, "expected a tag"),
            false => Ok(search),
        }
    }

    fn condition(mut self) -> Result<TagExpression, Problem> {
        let expression = self.either(0)?;
        match self.peek() {
            None => Ok(expression),
            Some(_) => self.problem(self.next, "expected the end"),
        }
    }

    fn either(&mut self, depth: usize) -> Result<TagExpression, Problem> {
        let mut expression = self.both(depth)?;
        while self.takes_word("OR") {
            expression = TagExpression::Or(expression.into(), self.both(depth)?.into());
        }
        Ok(expression)
    }

    fn both(&mut self, depth: usize) -> Result<TagExpression, Problem> {
        let mut expression = self.single(depth)?;
        while self.takes_word("AND") {
            expression = TagExpression::And(expression.into(), self.single(depth)?.into());
        }
        Ok(expression)
    }

    fn single(&mut self, depth: usize) -> Result<TagExpression, Problem> {
        if depth == limits::TAG_EXPRESSION_DEPTH_MAX {
            return self.problem(self.next, "expected fewer parentheses");
        }
        // A tag may have the key `not`.
        let is_key = matches!(self.tokens.get(self.next + 1), Some((_, Token::Sign(_))));
        if !is_key && self.takes_word("NOT") {
            return Ok(TagExpression::Not(self.single(depth + 1)?.into()));
        }
        if self.peek() == Some(&Token::Open) {
            self.next += 1;
            let expression = self.either(depth + 1)?;
            return match self.take() {
                Some(Token::Close) => Ok(expression),
                _ => self.problem(self.next, "expected )"),
            };
        }
        self.comparison().map(TagExpression::Compare)
    }

    fn comparison(&mut self) -> Result<TagCondition, Problem> {
        let start = self.next;
        self.comparisons += 1;
        if self.comparisons > limits::TAG_CONDITIONS_MAX {
            return self.problem(start, "expected fewer conditions");
        }
        let (Some(Token::Word(key)) | Some(Token::Quoted(key))) = self.take() else {
            return self.problem(start, "expected a tag");
        };
        let Some(Token::Sign(comparison)) = self.take() else {
            return self.problem(start, "expected an operator");
        };
        let Some(Token::Value(value)) = self.take() else {
            return self.problem(start + 2, "expected a value");
        };
        let (key, value) = (key.to_owned(), value.to_owned());
        if !(1..=limits::TAG_KEY_MAX).contains(&key.len()) || value.len() > limits::TAG_VALUE_MAX {
            return self.problem(start, "expected a shorter tag");
        }
        Ok(TagCondition { key, comparison, value })
    }
}

/// The first token of a text that does not begin with a blank, and what is behind it.
fn token(text: &str) -> Option<(Token<'_>, &str)> {
    let within = |quote: char| text[1..].split_once(quote);
    match text.as_bytes()[0] {
        b'"' => within('"').map(|(key, rest)| (Token::Quoted(key), rest)),
        b'\'' => within('\'').map(|(value, rest)| (Token::Value(value), rest)),
        b'(' => Some((Token::Open, &text[1..])),
        b')' => Some((Token::Close, &text[1..])),
        b'@' => {
            let (word, rest) = text.split_at_checked(CONTAINER.len())?;
            word.eq_ignore_ascii_case(CONTAINER).then_some((Token::Container, rest))
        }
        _ => {
            let sign = Comparison::ALL.into_iter().find(|comparison| text.starts_with(comparison.sign()));
            if let Some(sign) = sign {
                return Some((Token::Sign(sign), &text[sign.sign().len()..]));
            }
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
            (end > 0).then(|| (Token::Word(&text[..end]), &text[end..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(expression: &TagExpression) -> String {
        match expression {
            TagExpression::Compare(TagCondition { key, comparison, value }) => {
                format!("{key}{}{value}", comparison.sign())
            }
            TagExpression::And(one, other) => format!("({} and {})", show(one), show(other)),
            TagExpression::Or(one, other) => format!("({} or {})", show(one), show(other)),
            TagExpression::Not(negated) => format!("not {}", show(negated)),
        }
    }

    #[test]
    fn a_condition_is_read() {
        let check = |text: &str, expected: Option<&str>| {
            let read = parse_condition("x-ms-if-tags", text);
            assert_eq!(read.as_ref().ok().map(show).as_deref(), expected, "{text}");
            if let Err(refusal) = read {
                assert_eq!(refusal.details()[1], ("HeaderValue", text.into()));
            }
        };
        check("\"tag1\"='first tag'", Some("tag1=first tag"));
        check("tag1 = 'v' AND \"n\" > '5'", Some("(tag1=v and n>5)"));
        check("\"condition tag\"='wrong tag'", Some("condition tag=wrong tag"));
        check("a<>'1'or b>='2' and c<='3'", Some("(a<>1 or (b>=2 and c<=3))"));
        check("(a='1' OR b='2') AND NOT c<'3'", Some("((a=1 or b=2) and not c<3)"));
        check("not='1' and NOT not='2'", Some("(not=1 and not not=2)"));
        check("a=''", Some("a="));
        for text in [
            "",
            "a",
            "a=",
            "='v'",
            "a='v",
            "a='v' b='w'",
            "a='v' AND",
            "(a='v'",
            "a='v')",
            "a==''",
            "a='v' XOR b='w'",
            "@container='c'",
            "\"\"='v'",
            "é='v'",
            "a=\"v\"",
        ] {
            check(text, None);
        }
        check(&format!("{}a='v'{}", "(".repeat(31), ")".repeat(31)), Some("a=v"));
        check(&format!("{}a='v'{}", "(".repeat(4000), ")".repeat(90)), None);
        check(&"NOT ".repeat(2000), None);
        check(
            &format!("{}a='v'", "a='v' AND ".repeat(9)).replace("AND", "OR"),
            Some(&{
                let mut shown = "a=v".to_owned();
                for _ in 0..9 {
                    shown = format!("({shown} or a=v)");
                }
                shown
            }),
        );
        check(&format!("{}a='v'", "a='v' AND ".repeat(10)), None);
        check(&format!("a='{}'", "v".repeat(10_000)), None);
    }

    #[test]
    fn a_search_joins_by_and_alone() {
        let check = |text: &str, at_account, expected: Result<&str, (usize, &str)>| {
            let read = TagSearch::parse(text, at_account);
            let shown = read.as_ref().map(|search| {
                let conditions =
                    search.conditions.iter().map(|c| format!(" {}{}{}", c.key, c.comparison.sign(), c.value));
                format!("{}{}", search.container.as_deref().unwrap_or("*"), conditions.collect::<String>())
            });
            let refused = |refusal: &Refusal| match refusal {
                Refusal::WhereInvalid { at, problem, .. } => (*at, *problem),
                other => panic!("{other:?}"),
            };
            assert_eq!(shown.as_deref().map_err(|refusal| refused(refusal)), expected, "{text}");
        };
        check("tag1='firsttag' and tag2='secondtag'", true, Ok("* tag1=firsttag tag2=secondtag"));
        check("@container='c1' AND \"a b\">='1'", true, Ok("c1 a b>=1"));
        // Recorded.
        check("invalidquery", true, Err((1, "expected an operator")));
        check("@container='c1' AND a='1'", false, Err((1, "unexpected @container")));
        check("@container='c1'", true, Err((16, "expected a tag")));
        check("@container>'c1' and a='1'", true, Err((1, "expected an operator")));
        check("a='1' OR b='2'", true, Err((7, "expected AND")));
        check("a<>'1'", true, Err((1, "expected an operator")));
        check("", true, Err((1, "expected a tag")));
        check("a='1' AND b>2", true, Err((13, "expected a value")));
        check("é", true, Err((1, "unexpected character")));
        check("NOT a='1'", true, Err((1, "expected an operator")));
        check(&"a='1' AND ".repeat(11), true, Err((101, "expected fewer conditions")));
    }

    #[test]
    fn a_search_shows_the_tags_that_it_names() {
        let search = TagSearch::parse("b='2' AND a>'0'", true).unwrap();
        let tags = Tags::parse("a=1&b=2&c=3").unwrap();
        assert!(search.holds(&tags));
        assert_eq!(search.shown(&tags), [("a", "1"), ("b", "2")]);
        assert!(!search.holds(&Tags::parse("a=1&b=3").unwrap()));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(text in "[ab@container'\"()=<> NOTANDORé]{0,60}") {
            let _ = parse_condition("x-ms-if-tags", &text);
            let _ = TagSearch::parse(&text, true);
        }
    }
}
