//! Addresses, tokens and signatures with small changes.

use model::{Key, TableName};
use proptest::prelude::*;
use testing::{Reading, check_near, text_near};
use wire::signing::AccountKey;
use wire::signing::sas::{AccountSas, Sas, TableSas, Terms};
use wire::token;
use wire::url::{QueryString, Resource, entity_link, table_link};

const PIECES: [&str; 18] = [
    "'",
    "''",
    "%27",
    "%",
    "%2F",
    "/",
    "(",
    ")",
    "()",
    ",",
    "=",
    "PartitionKey='a'",
    ",RowKey='b'",
    "&",
    "+",
    "%00",
    "é",
    "\\",
];

#[test]
fn what_is_nearly_the_link_to_an_entity_leads_to_what_its_own_link_leads_to() {
    let link = ("[A-Za-z]{3,5}", "[a-z' %é+]{0,20}", "[a-z'=,()]{0,20}");
    let link = link.prop_map(|(table, partition, row)| entity_link(&table, &partition, &row));
    check_near(text_near(link, &PIECES), 12..=85, |path| {
        let resource = match Resource::parse(&path) {
            Ok(resource) => resource,
            Err(refusal) => {
                prop_assert!((400..500).contains(&refusal.status()), "{:?}", refusal);
                return Ok(Reading::Refused);
            }
        };
        let is_name = |table: &str| TableName::parse(table).is_ok();
        let link = match &resource {
            Resource::Entity { table, partition, row }
                if is_name(table)
                    && Key::parse(partition.as_str()).is_ok()
                    && Key::parse(row.as_str()).is_ok() =>
            {
                entity_link(table, partition, row)
            }
            Resource::Table(table) if is_name(table) => table_link(table),
            _ => return Ok(Reading::Refused),
        };
        prop_assert_eq!(Resource::parse(&link), Ok(resource), "{} of {}", link, path);
        Ok(Reading::Accepted)
    });
}

#[test]
fn what_is_nearly_a_token_carries_one_text_or_none() {
    let token = "[ -~é𝄞]{0,12}".prop_map(|text| token::encode(&text));
    check_near(text_near(token, &["1!", "!", "-", "*", "_", "=", "+", "8", "U21p"]), 2..=60, |text| {
        let Some(carried) = token::decode(&text) else { return Ok(Reading::Refused) };
        prop_assert_eq!(token::decode(&token::encode(&carried)), Some(carried), "{}", text);
        Ok(Reading::Accepted)
    });
}

fn terms() -> impl Strategy<Value = Terms> {
    ("r?a?u?d?", "(2026-01-0[1-9]T00:00:00Z)?", "(10\\.0\\.0\\.[1-9])?").prop_map(
        |(permissions, start, ip)| Terms {
            version: "2019-02-02".to_owned(),
            permissions,
            start,
            expiry: "2027-01-01T00:00:00Z".to_owned(),
            ip,
            protocol: "https".to_owned(),
        },
    )
}

fn sas() -> impl Strategy<Value = Sas> {
    let table = (terms(), "[A-Za-z]{3,5}", "([a-zé]{1,3})?").prop_map(|(terms, table, start_partition)| {
        Sas::Table(TableSas { terms, table, start_partition, ..TableSas::default() })
    });
    let account = terms().prop_map(|terms| {
        let (services, resource_types) = ("bt".to_owned(), "sco".to_owned());
        Sas::Account(AccountSas { terms, services, resource_types, encryption_scope: String::new() })
    });
    prop_oneof![table, account]
}

const SAS_PIECES: [&str; 14] = [
    "&sp=raud",
    "&sp=",
    "&se=2099-01-01",
    "&tn=Other",
    "&spk=",
    "&epk=z",
    "&si=p",
    "&ss=t",
    "&srt=sco",
    "&x=y",
    "&",
    "%26",
    "=",
    "+",
];

/// The signed text, whichever fields it leaves out.
#[test]
fn a_signature_that_was_changed_verifies_nothing_but_what_was_signed() {
    let key = AccountKey::parse("c2VjcmV0").unwrap();
    let signed = {
        let key = key.clone();
        sas().prop_map(move |sas| sas.to_query(&sas.sign("shop", &key)))
    };
    // The signature may have been changed, so it is computed again from the terms of the token.
    check_near(text_near(signed, &SAS_PIECES), 20..=95, |text| {
        let read = QueryString::parse(&text).map(|query| Sas::read(&query));
        let Some(Ok(Some((sas, signature)))) = read else { return Ok(Reading::Refused) };
        let right = sas.sign("shop", &key);
        let string = sas.string_to_sign("shop");
        prop_assert!(key.verifies(&string, &right));
        prop_assert_eq!(key.verifies(&string, &signature), signature == right, "{}", text);
        prop_assert!(
            !key.verifies(&sas.string_to_sign("other"), &right),
            "one account's token serves another"
        );
        // An empty field is not written at all, and a token without these fields is a different token.
        let is_whole = match &sas {
            Sas::Table(_) => true,
            Sas::Queue(_) | Sas::Blob(_) => false,
            Sas::Account(account) => !account.services.is_empty() && !account.resource_types.is_empty(),
        };
        if is_whole {
            let again = sas.to_query(&right);
            let query = QueryString::parse(&again).ok_or_else(|| TestCaseError::fail(again.clone()))?;
            prop_assert_eq!(Sas::read(&query), Ok(Some((sas, right))), "{}", again);
        }
        Ok(Reading::Accepted)
    });
}
