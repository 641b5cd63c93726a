//! `$select`: which properties to show.

use model::{Refusal, ValueRef, is_property_name, limits, ordinal_cmp, utf16_units};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// The text of the request, for `odata.metadata`.
    raw: String,
    /// In ordinal order, each once. `None`: all of them (`*`, or nothing named).
    names: Option<Vec<String>>,
}

impl Select {
    /// Names separated by commas. Spaces around them and a trailing comma are allowed.
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
                // No entity has a longer name.
                name if utf16_units(name) > limits::PROPERTY_NAME_UNITS_MAX => {
                    return Err(common::Refusal::InputNotValid.into());
                }
                name if is_property_name(name) => names.push(name),
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
            return Err(common::Refusal::InputNotValid.into());
        }
        let names = names.into_iter().map(str::to_owned).collect();
        Ok(Self { raw: raw.to_owned(), names: (!all).then_some(names) })
    }

    /// The chosen names in ordinal order, or `None` for all.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// Whether this property is shown.
    pub fn shows(&self, name: &str) -> bool {
        self.names().is_none_or(|names| place_of(names, name).is_some())
    }

    /// The values of the chosen properties, each at the index of its name. One pass over the properties, which reads only
    /// the chosen values.
    pub fn pick<'a, V: Into<Option<ValueRef<'a>>>>(
        names: &[String],
        properties: impl Iterator<Item = (&'a str, V)>,
    ) -> Vec<Option<ValueRef<'a>>> {
        let mut found = vec![None; names.len()];
        for (name, value) in properties {
            // If a name occurs twice, the first one counts.
            if let Some(place) =
                place_of(names, name).map(|at| &mut found[at]).filter(|found| found.is_none())
            {
                *place = value.into();
            }
        }
        found
    }

    /// The end of `odata.metadata`.
    pub fn metadata_suffix(&self) -> String {
        format!("&$select={}", self.raw.replace(' ', "%20"))
    }
}

fn place_of(names: &[String], name: &str) -> Option<usize> {
    names.binary_search_by(|known| ordinal_cmp(known, name)).ok()
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
        check(&"é".repeat(255), &"é".repeat(255));
        check(&"a".repeat(256), "One of the request inputs is not valid.");
    }

    #[test]
    fn values_not_chosen_are_not_read() {
        use std::cell::RefCell;
        let read = RefCell::new(Vec::new());
        struct Counted<'a>(i32, &'a RefCell<Vec<i32>>);
        impl<'a> From<Counted<'a>> for Option<ValueRef<'a>> {
            fn from(counted: Counted<'a>) -> Self {
                counted.1.borrow_mut().push(counted.0);
                Some(ValueRef::Int32(counted.0))
            }
        }
        let names = ["A", "c", "é"].map(str::to_owned);
        let row = [("b", 1), ("é", 2), ("A", 3), ("é", 4), ("d", 5)];
        let picked = Select::pick(&names, row.iter().map(|(name, n)| (*name, Counted(*n, &read))));
        assert_eq!(picked, [Some(ValueRef::Int32(3)), None, Some(ValueRef::Int32(2))]);
        assert_eq!(*read.borrow(), [2, 3]);
    }

    #[test]
    fn the_metadata_repeats_what_was_asked() {
        assert_eq!(Select::parse("a, b").unwrap().metadata_suffix(), "&$select=a,%20b");
        assert_eq!(Select::parse("").unwrap().metadata_suffix(), "&$select=");
    }
}
