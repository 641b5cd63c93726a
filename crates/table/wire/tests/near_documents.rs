//! XML that is nearly a document of the service: what is accepted keeps to the limits, and reads back the same from the
//! store.

use model::{DateTime, ServiceKind, limits, utf16_units};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use testing::{Reading, check_near, text_near};
use wire::access_policies::{self, AccessPolicy};
use wire::service_properties::{CorsRule, Logging, Metrics, ServiceProperties, Update};

const PIECES: [&str; 16] = [
    "<Id>",
    "</Id>",
    "<Start>",
    "</Start>",
    "<AccessPolicy/>",
    "<SignedIdentifier>",
    "</SignedIdentifier>",
    "&#x",
    "&lt;",
    ";",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "true",
    "<a/>",
];

fn time() -> impl Strategy<Value = DateTime> {
    (DateTime::MIN_STORED.ticks()..DateTime::MAX.ticks())
        .prop_map(|ticks| DateTime::from_ticks(ticks).unwrap())
}

fn policies() -> impl Strategy<Value = Vec<AccessPolicy>> {
    let policy = ("[a-z é&]{0,50}", option::of(time()), option::of(time()), option::of("r?a?u?d?"));
    vec(policy, 0..=limits::STORED_POLICIES_MAX).prop_map(|policies| {
        let policy = |(number, (id, start, expiry, permissions)): (usize, (String, _, _, Option<String>))| {
            let permissions = permissions.filter(|permissions| !permissions.is_empty());
            AccessPolicy { id: format!("{number}<{id}>"), start, expiry, permissions }
        };
        policies.into_iter().enumerate().map(policy).collect()
    })
}

#[test]
fn what_is_nearly_a_list_of_policies_keeps_to_the_limits_and_reads_back_or_is_refused() {
    let document = policies().prop_map(|list| String::from_utf8(access_policies::write(&list)).unwrap());
    check_near(text_near(document, &PIECES), 8..=85, |text| {
        let read = access_policies::read(text.as_bytes());
        if let Ok(policies) = &read {
            prop_assert!(policies.len() <= limits::STORED_POLICIES_MAX);
            for (at, policy) in policies.iter().enumerate() {
                prop_assert!(utf16_units(&policy.id) <= limits::POLICY_ID_UNITS_MAX, "{}", text);
                prop_assert!(policies[..at].iter().all(|other| other.id != policy.id), "{}", text);
            }
            let stored = access_policies::write(policies);
            prop_assert_eq!(&access_policies::read(&stored), &read, "{}", String::from_utf8_lossy(&stored));
        }
        Ok(Reading::of(&read))
    });
}

fn cors() -> impl Strategy<Value = Vec<CorsRule>> {
    let rule = ("http://[a-z]{20,90}", "x-ms-[a-z]{20,90}\\*?", 0..1000_u64);
    let rule = rule.prop_map(|(origin, header, max_age_seconds)| CorsRule {
        allowed_methods: vec!["GET".to_owned(), "PUT".to_owned()],
        allowed_origins: vec![origin],
        allowed_headers: vec![header.clone()],
        exposed_headers: vec![header],
        max_age_seconds,
    });
    vec(rule, 1..4)
}

fn properties() -> impl Strategy<Value = ServiceProperties> {
    (any::<[bool; 4]>(), option::of(1..=365_u16), cors()).prop_map(
        |([read, write, enabled, apis], days, cors)| {
            let metrics = Metrics { enabled, include_apis: enabled && apis, retention_days: days };
            ServiceProperties {
                logging: Logging { read, write, delete: read, retention_days: days },
                hour_metrics: metrics.clone(),
                minute_metrics: metrics,
                cors,
            }
        },
    )
}

#[test]
fn what_are_nearly_service_properties_keep_to_the_limits_and_read_back_or_are_refused() {
    let document = properties().prop_map(|properties| String::from_utf8(properties.write()).unwrap());
    check_near(text_near(document, &PIECES), 8..=85, |text| {
        let read = Update::read(text.as_bytes());
        if let Ok(update) = &read {
            prop_assert!(update.cors.as_ref().is_none_or(|cors| cors.len() <= limits::CORS_RULES_MAX));
            let mut properties = ServiceProperties::default();
            properties.apply(update.clone());
            let stored = properties.write();
            let shown = String::from_utf8_lossy(&stored).into_owned();
            let again = ServiceProperties::read(ServiceKind::Table, &stored);
            let again = again.ok_or_else(|| TestCaseError::fail(format!("can't be read again: {shown}")))?;
            // Compared as text: metrics that are off do not show whether they would include APIs.
            prop_assert_eq!(String::from_utf8(again.write()).unwrap(), shown);
            prop_assert_eq!(again.cors, properties.cors);
        }
        Ok(Reading::of(&read))
    });
}
