//! The name under which an engine keeps a table: a table of the Table service by its own name, one of another service with
//! that service in front.
//!
//! No table's name begins with `"`, and it sorts below all of them, so the tables of services never meet. Older programs
//! list the names from `#` on.

use std::borrow::Cow;

use model::ServiceKind;

/// Below all names of the Table service, and above those of the others.
const TABLES_START: &str = "#";
/// Above all names.
const TABLES_END: &str = "\u{7f}";

const fn prefix(service: ServiceKind) -> &'static str {
    match service {
        ServiceKind::Table => "",
        ServiceKind::Queue => "\"queue/",
        ServiceKind::Blob => "\"blob/",
    }
}

pub fn write(service: ServiceKind, folded: &str) -> Cow<'_, str> {
    match service {
        ServiceKind::Table => Cow::Borrowed(folded),
        other => Cow::Owned([prefix(other), folded].concat()),
    }
}

/// `None` for a name of a service that this version does not know.
pub fn read(stored: &str) -> Option<(ServiceKind, &str)> {
    if !stored.starts_with('"') {
        return Some((ServiceKind::Table, stored));
    }
    let others = ServiceKind::ALL.into_iter().filter(|service| *service != ServiceKind::Table);
    others.into_iter().find_map(|service| Some((service, stored.strip_prefix(prefix(service))?)))
}

/// The stored names of a service from a folded name on: from the first up to the second, without it.
pub fn range(service: ServiceKind, from: &str) -> (String, String) {
    match service {
        ServiceKind::Table => (from.max(TABLES_START).to_owned(), TABLES_END.to_owned()),
        other => {
            let prefix = prefix(other);
            (write(other, from).into_owned(), prefix.replace('/', "0"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_read_back_and_never_change() {
        let check = |service, folded: &str, stored: &str| {
            assert_eq!(write(service, folded), stored);
            assert_eq!(read(stored), Some((service, folded)));
        };
        check(ServiceKind::Table, "books", "books");
        check(ServiceKind::Table, "$metricstransactionsblob", "$metricstransactionsblob");
        check(ServiceKind::Queue, "books", "\"queue/books");
        check(ServiceKind::Queue, "0-a", "\"queue/0-a");
        check(ServiceKind::Blob, "$root", "\"blob/$root");
        assert_eq!(read("\"file/share"), None);
    }

    #[test]
    fn a_range_has_all_names_of_its_service_and_no_others() {
        let names = [
            (ServiceKind::Table, "$metricstransactionsblob"),
            (ServiceKind::Table, "abc"),
            (ServiceKind::Table, "zzz"),
            (ServiceKind::Queue, "0-a"),
            (ServiceKind::Queue, "zzz"),
            (ServiceKind::Blob, "$root"),
            (ServiceKind::Blob, "zzz"),
        ];
        for service in ServiceKind::ALL {
            let (start, end) = range(service, "");
            for (owner, name) in names {
                let stored = write(owner, name);
                let is_inside = *start <= *stored && *stored < *end;
                assert_eq!(is_inside, owner == service, "{name} of {owner}, listing {service}");
            }
            let (from_abd, _) = range(service, "abd");
            assert!(*write(service, "abc") < *from_abd && *from_abd < *write(service, "zzz"));
        }
    }
}
