//! What a protocol version changes for tables.

use common::Version;

const UPSERT_AND_SELECT: &str = "2011-08-18";
const JSON: &str = "2013-08-15";
const ETAG_IN_MINIMAL: &str = "2015-04-05";
const NO_ATOM: &str = "2015-12-11";

/// The questions that only the Table service asks of a version.
pub trait TableVersion {
    fn has_upsert(self) -> bool;
    fn has_select(self) -> bool;
    fn has_json(self) -> bool;
    fn has_prefer(self) -> bool;
    fn has_atom(self) -> bool;
    /// Indented XML with `standalone="yes"`, as the oldest versions wrote it.
    fn writes_old_xml(self) -> bool;
    /// JSON with minimal metadata shows the ETag of an entity.
    fn has_etag_in_minimal(self) -> bool;
}

// Dates in this notation sort as text.
impl TableVersion for Version {
    fn has_upsert(self) -> bool {
        self.as_bytes() >= UPSERT_AND_SELECT.as_bytes()
    }

    fn has_select(self) -> bool {
        self.as_bytes() >= UPSERT_AND_SELECT.as_bytes()
    }

    fn has_json(self) -> bool {
        self.as_bytes() >= JSON.as_bytes()
    }

    fn has_prefer(self) -> bool {
        self.as_bytes() >= JSON.as_bytes()
    }

    fn has_atom(self) -> bool {
        self.as_bytes() < NO_ATOM.as_bytes()
    }

    fn writes_old_xml(self) -> bool {
        self.as_bytes() < JSON.as_bytes()
    }

    fn has_etag_in_minimal(self) -> bool {
        self.as_bytes() >= ETAG_IN_MINIMAL.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_what_came_before_it() {
        let check = |version: &str, expected: &str| {
            let version = Version::parse(version).unwrap();
            let answers = [
                ("upsert", version.has_upsert()),
                ("select", version.has_select()),
                ("json", version.has_json()),
                ("prefer", version.has_prefer()),
                ("etag", version.has_etag_in_minimal()),
                ("atom", version.has_atom()),
                ("old-xml", version.writes_old_xml()),
            ];
            let yes: Vec<_> = answers.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect();
            assert_eq!(yes.join(" "), expected, "{version}");
        };
        check("2009-09-19", "atom old-xml");
        check("2011-08-18", "upsert select atom old-xml");
        check("2013-08-14", "upsert select atom old-xml");
        check("2013-08-15", "upsert select json prefer atom");
        check("2015-04-05", "upsert select json prefer etag atom");
        check("2015-12-11", "upsert select json prefer etag");
        check("2019-02-02", "upsert select json prefer etag");
    }
}
