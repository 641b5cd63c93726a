//! `$select`: which properties to show.

use crate::names;
use model::{Refusal, UnreadName, is_property_name, limits, ordinal_cmp, utf16_units};

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

    /// The chosen names without those of the service's own properties, or `None` for all.
    pub fn custom_names(&self) -> Option<Vec<&str>> {
        let is_custom =
            |name: &&str| !matches!(*name, names::PARTITION_KEY | names::ROW_KEY | names::TIMESTAMP);
        self.names().map(|names| names.iter().map(String::as_str).filter(is_custom).collect())
    }

    /// Whether this property is shown.
    pub fn shows(&self, name: &str) -> bool {
        self.names().is_none_or(|names| place_of(names, name).is_some())
    }

    /// Stores the values of the chosen properties in `found`, each at the index of its name; `None` there is a property that is
    /// missing. One pass over the properties, up to the last of them. The names are in ordinal order.
    pub fn pick<'a, S: AsRef<str>, N: UnreadName<'a>, V>(
        names: &[S],
        properties: impl Iterator<Item = (N, V)>,
        found: &mut [Option<V>],
    ) {
        let mut missing = names.len();
        if missing == 0 {
            return;
        }
        for (name, value) in properties {
            let place = if names.len() <= FEW {
                names.iter().position(|known| known.as_ref().as_bytes() == name.bytes())
            } else {
                name.text().and_then(|name| place_of(names, name))
            };
            // If a name occurs twice, the first one counts.
            if let Some(place) = place.map(|at| &mut found[at]).filter(|found| found.is_none()) {
                *place = Some(value);
                missing -= 1;
                if missing == 0 {
                    return;
                }
            }
        }
    }

    /// The end of `odata.metadata`.
    pub fn metadata_suffix(&self) -> String {
        format!("&$select={}", self.raw.replace(' ', "%20"))
    }
}

/// Up to this many names are compared one by one, as bytes, which is faster than a binary search.
const FEW: usize = 8;

fn place_of<S: AsRef<str>>(names: &[S], name: &str) -> Option<usize> {
    names.binary_search_by(|known| ordinal_cmp(known.as_ref(), name)).ok()
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
    fn the_first_property_of_each_chosen_name_is_picked() {
        let row = [("b", 1), ("é", 2), ("A", 3), ("é", 4), ("d", 5), ("z", 6)];
        for more in [0, 10] {
            let mut names = vec!["A".to_owned(), "c".to_owned()];
            names.extend((0..more).map(|n| format!("d{n}")));
            names.push("é".to_owned());
            let mut found = vec![None; names.len()];
            Select::pick(&names, row.into_iter(), &mut found);
            assert_eq!((found[0], found[1], found.last()), (Some(3), None, Some(&Some(2))), "{names:?}");
            assert_eq!(found.iter().flatten().count(), 2);
        }
    }

    #[test]
    fn properties_behind_the_last_chosen_one_are_not_read() {
        let mut row = [("A", 1), ("b", 2), ("c", 3)].into_iter();
        let mut found = [None; 2];
        Select::pick(&["A", "b"], row.by_ref(), &mut found);
        assert_eq!((found, row.next()), ([Some(1), Some(2)], Some(("c", 3))));
    }

    #[test]
    fn the_metadata_repeats_what_was_asked() {
        assert_eq!(Select::parse("a, b").unwrap().metadata_suffix(), "&$select=a,%20b");
        assert_eq!(Select::parse("").unwrap().metadata_suffix(), "&$select=");
    }
}
