//! Shared access signatures out of query strings: what is read can be written, and only its signature verifies it.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use model::{DateTime, TableName};
use wire::access_policies;
use wire::signing::AccountKey;
use wire::signing::sas::{BlobTarget, Sas, SasFormatError};
use wire::url::QueryString;

static KEY: LazyLock<AccountKey> = LazyLock::new(|| AccountKey::parse("c2VjcmV0").expect("a good key"));

type Read = fn(&QueryString) -> Result<Option<(Sas, String)>, SasFormatError>;

fuzz_target!(|text: &str| {
    let Some(query) = QueryString::parse(text) else { return };
    check(&query, Sas::read);
    check(&query, |query| Sas::read_queue(query, "q"));
    check(&query, |query| Sas::read_blob(query, BlobTarget { container: "c", blob: Some("a/b") }));
});

fn check(query: &QueryString, read: Read) {
    let Ok(Some((sas, signature))) = read(query) else { return };
    let terms = sas.terms();
    for time in [&terms.start, &terms.expiry] {
        if let Some(read) = DateTime::parse(time) {
            assert_eq!(DateTime::parse(&read.to_string()), Some(read), "{time}");
        }
    }
    let _ = access_policies::in_order(&terms.permissions);
    let right = sas.sign("shop", &KEY);
    let string = sas.string_to_sign("shop");
    assert!(KEY.verifies(&string, &right));
    assert!(signature == right || !KEY.verifies(&string, &signature), "{signature} is taken for {right}");
    assert!(!KEY.verifies(&sas.string_to_sign("other"), &right), "one account's token serves another");

    // An empty field is not written at all, and a token without these fields is a different token.
    let told = match &sas {
        Sas::Table(table) => {
            let _ = TableName::parse(&table.table);
            true
        }
        Sas::Account(account) => !account.services.is_empty() && !account.resource_types.is_empty(),
        // The address names the snapshot or version.
        Sas::Queue(_) | Sas::Blob(_) => query.get("snapshot").or(query.get("versionid")).is_none(),
    };
    if told {
        let written = sas.to_query(&right);
        let again = QueryString::parse(&written).expect("a written token is UTF-8");
        assert_eq!(read(&again), Ok(Some((sas, right))), "{written}");
    }
}
