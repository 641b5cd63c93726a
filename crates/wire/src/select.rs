//! `$select`: which properties to show.

use model::{Refusal, is_property_name, limits, ordinal_cmp};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// As it was asked, for `odata.metadata`.
    raw: String,
    /// In ordinal order, each once. `None`: all of them (`*`, or nothing named).
    names: Option<Vec<String>>,
}

impl Select {
    /// Names parted by commas; spaces around them and a comma after the last do no harm.
    pub fn parse(raw: &str) -> Result<Self, Refusal> {
        let mut names = Vec::new();
        let mut at = 0; // in UTF-16 units, as the service counts
        let mut all = raw.trim().is_empty();
        let last = raw.matches(',').count();
        for (index, piece) in raw.split(',').enumerate() {
            let name = piece.trim();
            match name {
                "" if all || (index == last && index > 0) => {}
                "*" => all = true,
                name if is_property_name(name) => names.push(name.to_owned()),
                _ => {
                    let leading = piece.len() - piece.trim_start().len();
                    let message = format!("An identifier was expected at position {}.", at + leading);
                    return Err(Refusal::Syntax { message });
                }
            }
            at += piece.encode_utf16().count() + 1;
        }
        names.sort_by(|a, b| ordinal_cmp(a, b));
        names.dedup();
        if names.len() > limits::SELECT_NAMES_MAX {
            return Err(Refusal::InputNotValid);
        }
        Ok(Self { raw: raw.to_owned(), names: (!all).then_some(names) })
    }

    /// The chosen names in ordinal order, or `None` for all.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// What `odata.metadata` ends with.
    pub fn metadata_suffix(&self) -> String {
        format!("&$select={}", self.raw.replace(' ', "%20"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, expected: &str) {
        let shown = match Select::parse(raw) {
            Ok(select) => select.names().map_or("all".to_owned(), |names| names.join(" ")),
            Err(refusal) => refusal.to_string(),
        };
        assert_eq!(shown, expected, "{raw:?}");
    }

    #[test]
    fn lists_are_read_leniently() {
        check("Title,Year", "Title Year");
        check(" Year , Title,", "Title Year");
        check("A,A,_b,a", "A _b a");
        check("", "all");
        check("*", "all");
        check("été", "été");
    }

    #[test]
    fn what_is_no_name_is_refused_where_it_stands() {
        check(",A", "An identifier was expected at position 0.");
        check("A,,B", "An identifier was expected at position 2.");
        check("A, 1b", "An identifier was expected at position 3.");
        let many: Vec<String> = (0..256).map(|i| format!("P{i}")).collect();
        check(&many.join(","), "One of the request inputs is not valid.");
    }

    #[test]
    fn the_metadata_repeats_what_was_asked() {
        assert_eq!(Select::parse("a, b").unwrap().metadata_suffix(), "&$select=a,%20b");
        assert_eq!(Select::parse("").unwrap().metadata_suffix(), "&$select=");
    }
}
