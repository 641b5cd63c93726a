//! Filters, built from values, so that no value can change the filter's structure.

use std::fmt;

use model::{Value, is_property_name};

/// The `$filter` of a query. Built from [`property`], [`partition_key`], [`row_key`] and [`timestamp`], or from text.
///
/// Values become literals of their types, with quotes doubled, so that user input can't become part of the filter.
///
/// ```
/// use partita_client::{partition_key, property};
///
/// let filter = partition_key().eq("O'Neil").and(property("Age").ge(30).or(property("Boss").eq(true)));
/// assert_eq!(filter.to_string(), "(PartitionKey eq 'O''Neil') and ((Age ge 30) or (Boss eq true))");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Filter {
    text: String,
    /// What is wrong with it. The query returns it as an error.
    fault: Option<String>,
}

impl Filter {
    /// A filter as OData text. Never build it from user input.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), fault: None }
    }

    pub fn and(self, other: Self) -> Self {
        self.join("and", other)
    }

    pub fn or(self, other: Self) -> Self {
        self.join("or", other)
    }

    /// Negates the filter. An entity without the property matches neither.
    #[expect(clippy::should_implement_trait, reason = "reads like `and` and `or`")]
    pub fn not(self) -> Self {
        Self { text: format!("not ({})", self.text), ..self }
    }

    /// Matches if all match; `None` for no filters, which matches everything.
    pub fn all(filters: impl IntoIterator<Item = Self>) -> Option<Self> {
        filters.into_iter().reduce(Self::and)
    }

    /// Matches if any matches; `None` for no filters, because no filter matches nothing.
    pub fn any(filters: impl IntoIterator<Item = Self>) -> Option<Self> {
        filters.into_iter().reduce(Self::or)
    }

    fn join(self, word: &str, other: Self) -> Self {
        Self { text: format!("({}) {word} ({})", self.text, other.text), fault: self.fault.or(other.fault) }
    }

    /// The text, or what is wrong with the filter.
    pub(crate) fn checked(&self) -> crate::Result<&str> {
        match &self.fault {
            None => Ok(&self.text),
            Some(fault) => Err(crate::Error::invalid(fault.as_str())),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for Filter {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Filter {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// A property to compare.
#[derive(Clone, Debug)]
#[must_use]
pub struct Operand {
    name: String,
}

/// A property by its name.
pub fn property(name: impl Into<String>) -> Operand {
    Operand { name: name.into() }
}

/// `PartitionKey`. A query that fixes it reads one partition.
pub fn partition_key() -> Operand {
    property(wire::names::PARTITION_KEY)
}

/// `RowKey`. The entities of a partition are in the order of their row keys.
pub fn row_key() -> Operand {
    property(wire::names::ROW_KEY)
}

/// `Timestamp`, the time of the last change. There is no index for it: such a query reads every entity in its range.
pub fn timestamp() -> Operand {
    property(wire::names::TIMESTAMP)
}

impl Operand {
    pub fn eq(self, value: impl Into<Value>) -> Filter {
        self.compare("eq", value)
    }

    pub fn ne(self, value: impl Into<Value>) -> Filter {
        self.compare("ne", value)
    }

    pub fn gt(self, value: impl Into<Value>) -> Filter {
        self.compare("gt", value)
    }

    pub fn ge(self, value: impl Into<Value>) -> Filter {
        self.compare("ge", value)
    }

    pub fn lt(self, value: impl Into<Value>) -> Filter {
        self.compare("lt", value)
    }

    pub fn le(self, value: impl Into<Value>) -> Filter {
        self.compare("le", value)
    }

    /// At least `from`, and less than `until`.
    pub fn between(self, from: impl Into<Value>, until: impl Into<Value>) -> Filter {
        self.clone().ge(from).and(self.lt(until))
    }

    /// Texts with this prefix. For a key this is a range, so the query reads only what it finds.
    ///
    /// ```
    /// use partita_client::row_key;
    ///
    /// assert_eq!(row_key().starts_with("2024-").to_string(), "(RowKey ge '2024-') and (RowKey lt '2024.')");
    /// ```
    pub fn starts_with(self, prefix: &str) -> Filter {
        match after_prefix(prefix) {
            Some(end) => self.between(prefix, end),
            None => self.ge(prefix),
        }
    }

    fn compare(self, operator: &str, value: impl Into<Value>) -> Filter {
        let fault = (!is_property_name(&self.name)).then(|| {
            format!("{:?} can't be the name of a property, so nothing can be compared with it", self.name)
        });
        Filter { text: format!("{} {operator} {}", self.name, literal(&value.into())), fault }
    }
}

/// The smallest text that is greater than every text with this prefix, in the order of the service: by UTF-16 units.
/// `None` if there is none. [`Operand::starts_with`] uses it.
///
/// ```
/// assert_eq!(partita_client::after_prefix("2026-"), Some("2026.".to_owned()));
/// ```
pub fn after_prefix(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        if let Some(next) = next_character(last) {
            text.push(next);
            return Some(text);
        }
    }
    None
}

/// In UTF-16 order, surrogate pairs, that is all characters above U+FFFF, come between U+D7FF and U+E000.
fn next_character(character: char) -> Option<char> {
    match character {
        '\u{d7ff}' => Some('\u{10000}'),
        char::MAX => Some('\u{e000}'),
        '\u{ffff}' => None,
        other => char::from_u32(u32::from(other) + 1),
    }
}

/// A value as a literal of `$filter` (spec: table-operations 5.2).
fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Boolean(value) => value.to_string(),
        Value::Int32(value) => value.to_string(),
        Value::Int64(value) => format!("{value}L"),
        Value::Double(value) if value.is_nan() => "NaN".to_owned(),
        Value::Double(value) if value.is_infinite() => if *value > 0.0 { "INF" } else { "-INF" }.to_owned(),
        Value::Double(value) => model::format_double(*value),
        Value::DateTime(value) => format!("datetime'{value}'"),
        Value::Guid(value) => format!("guid'{value}'"),
        Value::Binary(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("X'{digits}'")
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{DateTime, Guid};

    use super::*;

    fn check(filter: Filter, expected: &str) {
        assert_eq!(filter.checked().unwrap(), expected);
    }

    #[test]
    fn values_are_literals_of_their_types() {
        check(property("A").eq("it's"), "A eq 'it''s'");
        check(property("A").ne(true), "A ne true");
        check(property("A").lt(-5), "A lt -5");
        check(property("A").le(5_i64), "A le 5L");
        check(property("A").gt(5.0), "A gt 5.0");
        check(property("A").ge(f64::NEG_INFINITY), "A ge -INF");
        let time = DateTime::parse("2021-05-06T07:08:09.5Z").unwrap();
        check(timestamp().ge(time), "Timestamp ge datetime'2021-05-06T07:08:09.5Z'");
        let guid = Guid::parse("0f8fad5b-d9cb-469f-a165-70867728950e").unwrap();
        check(property("A").eq(guid), "A eq guid'0f8fad5b-d9cb-469f-a165-70867728950e'");
        check(property("A").eq(vec![10, 255]), "A eq X'0aff'");
    }

    #[test]
    fn input_stays_a_value() {
        check(partition_key().eq("x' or PartitionKey ne '"), "PartitionKey eq 'x'' or PartitionKey ne '''");
        let fault = property("Age ge 1 or Age").lt(3).or(row_key().eq("a")).checked().unwrap_err();
        assert!(fault.to_string().contains("\"Age ge 1 or Age\" can't be the name"), "{fault}");
    }

    #[test]
    fn a_prefix_is_a_range() {
        let check = |prefix: &str, expected: Option<&str>| {
            assert_eq!(after_prefix(prefix).as_deref(), expected, "{prefix:?}");
        };
        check("abc", Some("abd"));
        check("a\u{ffff}", Some("b"));
        check("\u{ffff}", None);
        check("", None);
        check("\u{d7ff}", Some("\u{10000}"));
        check("\u{1f600}", Some("\u{1f601}"));
        check("\u{10ffff}", Some("\u{e000}"));
    }

    proptest::proptest! {
        #[test]
        fn the_range_of_a_prefix_holds_what_begins_so_and_nothing_else(prefix in "\\PC{1,3}", text in "\\PC{0,5}") {
            use std::cmp::Ordering::Less;
            let inside = |text: &str| {
                let below = after_prefix(&prefix).is_none_or(|end| model::ordinal_cmp(text, &end) == Less);
                model::ordinal_cmp(text, &prefix) != Less && below
            };
            assert_eq!(inside(&text), text.starts_with(&prefix));
            assert!(inside(&format!("{prefix}{text}")));
        }
    }
}
