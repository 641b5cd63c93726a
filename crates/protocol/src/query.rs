//! The query string of a request: its options, decoded once, `+` as space.

use std::sync::Arc;

use percent_encoding::percent_decode;

/// Options in their order. Names are case-sensitive; the first option of a name counts. Cheap to clone.
///
/// `None` if there is no option, as in most requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryString(Option<Arc<Options>>);

/// All names and values in one text: a query string can have thousands of options of one letter.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    text: String,
    ends: Vec<Ends>,
}

/// Where an option's name and value end; each begins where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    name: usize,
    value: usize,
}

impl QueryString {
    /// `None` if an option is not UTF-8 once decoded.
    pub fn parse(text: &str) -> Option<Self> {
        let mut options = Options { text: String::with_capacity(text.len()), ends: Vec::new() };
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = options.append(name)?;
            let value = options.append(value)?;
            options.ends.push(Ends { name, value });
        }
        Some(Self((!options.ends.is_empty()).then(|| Arc::new(options))))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.options().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// For the few options, such as `comp`, whose names the service compares without case.
    pub fn get_ignoring_case(&self, name: &str) -> Option<&str> {
        self.options().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Every value of a parameter, by its name in any case.
    pub fn all_ignoring_case(&self, name: &str) -> impl Iterator<Item = &str> {
        self.options().filter(move |(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.options().map(|(name, _)| name)
    }

    fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|options| options.iter())
    }
}

impl Options {
    /// Decodes and appends a piece; returns where it ends.
    fn append(&mut self, piece: &str) -> Option<usize> {
        if piece.contains(['+', '%']) {
            let spaced = piece.replace('+', " ");
            self.text.push_str(&percent_decode(spaced.as_bytes()).decode_utf8().ok()?);
        } else {
            self.text.push_str(piece);
        }
        Some(self.text.len())
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|ends| ends.value));
        let parts = starts.zip(&self.ends);
        parts.map(|(start, ends)| (&self.text[start..ends.name], &self.text[ends.name..ends.value]))
    }
}

#[cfg(test)]
mod tests {
    use super::QueryString;

    #[test]
    fn options_are_decoded_once() {
        let query =
            QueryString::parse("$filter=PartitionKey+eq+'a%2Bb'&%24top=5&x&NextRowKey=&timeout=1%2525")
                .unwrap();
        assert_eq!(query.get("$filter"), Some("PartitionKey eq 'a+b'"));
        assert_eq!(query.get("$top"), Some("5"));
        assert_eq!(query.get("x"), Some(""));
        assert_eq!(query.get("NextRowKey"), Some(""));
        assert_eq!(query.get("timeout"), Some("1%25"));
        assert_eq!(query.get("$Top"), None);
        assert_eq!(query.names().count(), 5);
        assert_eq!(QueryString::parse("a=%ff"), None);
        assert_eq!(QueryString::parse("").map(|query| query.names().count()), Some(0));
        assert_eq!(QueryString::parse("&&"), Some(QueryString::default()));
        assert_eq!(QueryString::parse("COMP=acl").unwrap().get_ignoring_case("comp"), Some("acl"));
    }
}
