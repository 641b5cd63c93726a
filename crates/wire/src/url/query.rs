//! The query string: options by name, decoded once, `+` as space.

use percent_encoding::percent_decode;

/// Query options in their order. Names are case-sensitive; the first of a name counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// `None` if an option is not UTF-8 once decoded.
    pub fn parse(text: &str) -> Option<Self> {
        let decode = |piece: &str| {
            let spaced = piece.replace('+', " ");
            percent_decode(spaced.as_bytes()).decode_utf8().ok().map(|text| text.into_owned())
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        });
        pairs.collect::<Option<Vec<_>>>().map(Self)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// For the few options whose names the service matches without case, `comp` foremost.
    pub fn get_ignoring_case(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn options_are_decoded_once() {
        let query =
            Query::parse("$filter=PartitionKey+eq+'a%2Bb'&%24top=5&x&NextRowKey=&timeout=1%2525").unwrap();
        assert_eq!(query.get("$filter"), Some("PartitionKey eq 'a+b'"));
        assert_eq!(query.get("$top"), Some("5"));
        assert_eq!(query.get("x"), Some(""));
        assert_eq!(query.get("NextRowKey"), Some(""));
        assert_eq!(query.get("timeout"), Some("1%25"));
        assert_eq!(query.get("$Top"), None);
        assert_eq!(Query::parse("a=%ff"), None);
        assert_eq!(Query::parse("COMP=acl").unwrap().get_ignoring_case("comp"), Some("acl"));
    }
}
