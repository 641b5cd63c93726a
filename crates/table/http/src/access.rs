//! What a caller with a proof may do with tables.

use front::access::{Denial, Proof, ResourceToken, Roles};
use front::sas::SPECIFIC_REFUSALS;
use model::{Cut, KeyRange, TableName};
use service::{Grant, Role, RoleGrant, TableGrant};
use wire::signing::sas::{Sas, TableSas};

/// The built-in roles for the data of tables, by name and by id.
const READER: [&str; 2] = ["Storage Table Data Reader", "76199698-9eea-4c19-bc75-cec21354c6b6"];
const CONTRIBUTOR: [&str; 2] = ["Storage Table Data Contributor", "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3"];

pub fn grant(proof: Proof) -> Result<Grant, Denial> {
    match proof {
        // Nothing here is public.
        Proof::Anyone => Err(Denial::new(common::Refusal::AuthorizationFailure, "no credentials were sent")),
        Proof::Owner => Ok(Grant::Owner),
        Proof::Account(grant) => Ok(Grant::Account(grant)),
        Proof::Resource(ResourceToken { sas, permissions }) => match *sas {
            Sas::Table(token) => of_table(&token, permissions).map(Grant::Table),
            Sas::Account(_) | Sas::Queue(_) | Sas::Blob(_) => {
                Err(Denial::failed("the token is not a table's"))
            }
        },
        Proof::Roles(roles, _) => Ok(Grant::Role(of_roles(roles))),
    }
}

fn of_table(token: &TableSas, permissions: String) -> Result<TableGrant, Denial> {
    let table = TableName::parse(&token.table)
        .map_err(|_| Denial::failed(format!("tn is {:?}, no table's name", token.table)))?;
    let hides = token.terms.version.as_str() < SPECIFIC_REFUSALS;
    Ok(TableGrant { table, permissions, range: range(token)?, hides })
}

fn of_roles(roles: Roles) -> RoleGrant {
    let role = if roles.has(CONTRIBUTOR) {
        Some(Role::Contributor)
    } else if roles.has(READER) {
        Some(Role::Reader)
    } else {
        None
    };
    RoleGrant { role, manages: roles.manages, named: roles.named }
}

/// The keys between the bounds, both included. A row key needs its partition key.
fn range(token: &TableSas) -> Result<KeyRange, Denial> {
    let TableSas { start_partition, start_row, end_partition, end_row, .. } = token;
    let bad = |row: &str, partition: &str| Denial::failed(format!("{row} is given without {partition}"));
    let start = match (start_partition.as_str(), start_row.as_str()) {
        ("", "") => Cut::start(),
        ("", _) => return Err(bad("srk", "spk")),
        (partition, row) => Cut::before(partition, row),
    };
    let end = match (end_partition.as_str(), end_row.as_str()) {
        ("", "") => Cut::End,
        ("", _) => return Err(bad("erk", "epk")),
        (partition, "") => Cut::after_partition(partition),
        (partition, row) => Cut::after(partition, row),
    };
    Ok(KeyRange { start, end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::url::QueryString;

    #[test]
    fn roles_are_known_by_name_and_id() {
        let check = |named: &[&str], expected| {
            let named = named.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(of_roles(Roles { named, manages: false }).role, expected);
        };
        check(&["Storage Table Data Reader"], Some(Role::Reader));
        check(&["76199698-9EEA-4c19-bc75-cec21354c6b6"], Some(Role::Reader));
        check(&["Storage Table Data Contributor"], Some(Role::Contributor));
        check(&["0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3"], Some(Role::Contributor));
        check(&["Storage Table Data Reader", "Storage Table Data Contributor"], Some(Role::Contributor));
        check(&["Owner", "Storage Blob Data Reader"], None);
        check(&[], None);
    }

    fn check_range(bounds: &str, inside: &[(&str, &str)], outside: &[(&str, &str)]) {
        let query =
            QueryString::parse(&format!("sv=2019-02-02&tn=Books&sp=r&se=2026-01-01&sig=x{bounds}")).unwrap();
        let (Sas::Table(token), _) = Sas::read(&query).unwrap().unwrap() else { unreachable!() };
        let range = range(&token).unwrap();
        for (partition, row) in inside {
            assert!(range.contains(partition, row), "{bounds}: {partition} {row} is inside");
        }
        for (partition, row) in outside {
            assert!(!range.contains(partition, row), "{bounds}: {partition} {row} is outside");
        }
    }

    #[test]
    fn ranges_are_bounds_on_both_keys_together() {
        check_range("", &[("", ""), ("z", "z")], &[]);
        check_range("&spk=B", &[("B", ""), ("C", "0")], &[("A", "z")]);
        check_range("&epk=B", &[("A", "z"), ("B", "\u{ffff}")], &[("B ", ""), ("C", "0")]);
        check_range(
            "&spk=A&srk=5&epk=C&erk=7",
            &[("A", "5"), ("A", "9"), ("B", "1"), ("C", "7"), ("C", "")],
            &[("A", "4"), ("C", "70"), ("D", "")],
        );
        check_range("&spk=A&epk=A", &[("A", ""), ("A", "z")], &[("", "z"), ("A ", "")]);
        check_range("&spk=C&epk=A", &[], &[("A", ""), ("B", ""), ("C", "")]);
        let query = QueryString::parse("sv=2019-02-02&tn=Books&sp=r&se=2026-01-01&sig=x&srk=5").unwrap();
        let (Sas::Table(token), _) = Sas::read(&query).unwrap().unwrap() else { unreachable!() };
        assert!(range(&token).is_err());
    }
}
