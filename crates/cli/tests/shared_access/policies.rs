//! Stored access policies that tokens refer to.

use super::kit::{
    FAILED, FAILED_TEXT, FAILURE, FAILURE_TEXT, FUTURE, OPERATIONS, PAST, PERMISSION, create, expect, get,
    outcome, owner, send, sign, with,
};
use crate::support::Client;
use crate::support::Partita;

/// The XML of a stored policy, without the terms that are empty.
fn policy(id: &str, start: &str, expiry: &str, permissions: &str) -> String {
    let terms: String = [("Start", start), ("Expiry", expiry), ("Permission", permissions)]
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| format!("<{name}>{text}</{name}>"))
        .collect();
    format!("<SignedIdentifier><Id>{id}</Id><AccessPolicy>{terms}</AccessPolicy></SignedIdentifier>")
}

fn set_policies(client: &mut Client, table: &str, policies: &str) {
    let body = format!("<SignedIdentifiers>{policies}</SignedIdentifiers>");
    let answer = owner(client, "PUT", &format!("/{table}?comp=acl"), &body);
    assert_eq!(answer.status, 204, "{}", answer.text());
}

/// A token that refers to the policy `p` for everything that is not given here.
fn policy_token(changes: &[(&str, &str)]) -> String {
    sign(&with(&[("sv", "2019-02-02"), ("tn", "Rows"), ("si", "p")], changes))
}

#[test]
fn each_term_is_in_the_policy_or_in_the_token_but_not_in_both() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    // Start, expiry and permissions of the policy and of the token, and the outcome of a query.
    for (stored, own, expected) in [
        (["", FUTURE, "r"], ["", "", ""], "ok"),
        ([PAST, FUTURE, "r"], ["", "", ""], "ok"),
        (["", FUTURE, ""], ["", "", "r"], "ok"),
        (["", "", "r"], ["", FUTURE, ""], "ok"),
        (["", "", ""], [PAST, FUTURE, "r"], "ok"),
        ([PAST, "", ""], ["", FUTURE, "r"], "ok"),
        (["", FUTURE, "a"], ["", "", ""], "403 AuthorizationPermissionMismatch"),
        (["", FUTURE, ""], ["", "", "a"], "403 AuthorizationPermissionMismatch"),
        ([PAST, FUTURE, "r"], [PAST, "", ""], "403 AuthenticationFailed"),
        (["", FUTURE, "r"], ["", FUTURE, ""], "403 AuthenticationFailed"),
        (["", FUTURE, "r"], ["", "", "r"], "403 AuthenticationFailed"),
        (["", FUTURE, ""], ["", "", ""], "403 AuthenticationFailed"),
        (["", "", "r"], ["", "", ""], "403 AuthenticationFailed"),
        ([FUTURE, FUTURE, "r"], ["", "", ""], "403 AuthenticationFailed"),
        (["", PAST, "r"], ["", "", ""], "403 AuthenticationFailed"),
        (["", FUTURE, "r"], [FUTURE, "", ""], "403 AuthenticationFailed"),
        (["", "", "r"], ["", PAST, ""], "403 AuthenticationFailed"),
    ] {
        set_policies(&mut client, "Rows", &policy("p", stored[0], stored[1], stored[2]));
        let token = policy_token(&[("st", own[0]), ("se", own[1]), ("sp", own[2])]);
        let found = outcome(&send(&mut client, &token, &get("/Rows()")));
        assert_eq!(found, expected, "policy {stored:?}, token {own:?}");
    }
    // Only the token has a range; it can be combined with a policy.
    set_policies(&mut client, "Rows", &policy("p", "", FUTURE, "raud"));
    let token = policy_token(&[("spk", "B"), ("epk", "B")]);
    let insert = OPERATIONS[2];
    assert_eq!(outcome(&send(&mut client, &token, &insert.at("B", "1"))), "ok");
    expect(&send(&mut client, &token, &insert.at("C", "1")), 403, FAILURE, FAILURE_TEXT);
    // The names of policies are case-sensitive.
    let other = policy_token(&[("si", "P")]);
    expect(&send(&mut client, &other, &get("/Rows()")), 403, FAILED, FAILED_TEXT);
}

#[test]
fn tokens_are_invalid_as_soon_as_their_policy_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    for server in [Partita::in_memory(), Partita::in_directory(directory.path())] {
        let mut client = server.client();
        create(&mut client, "Rows");
        create(&mut client, "Others");
        let token = policy_token(&[]);
        let check = |client: &mut Client, expected: &str| {
            assert_eq!(outcome(&send(client, &token, &get("/Rows()"))), expected);
            assert_eq!(outcome(&send(client, &token, &OPERATIONS[6].at("p", "r"))), expected);
        };
        let refused = format!("403 {FAILED}");
        let good = policy("p", "", FUTURE, "raud");
        check(&mut client, &refused);
        for gone in ["", &policy("q", "", FUTURE, "raud"), &policy("p", "", PAST, "raud")] {
            set_policies(&mut client, "Rows", &good);
            check(&mut client, "ok");
            set_policies(&mut client, "Rows", gone);
            check(&mut client, &refused);
        }
        set_policies(&mut client, "Rows", &good);
        check(&mut client, "ok");
        set_policies(&mut client, "Rows", &policy("p", "", FUTURE, "d"));
        check(&mut client, &format!("403 {PERMISSION}"));
        // Another table's policy of the same name is another policy.
        set_policies(&mut client, "Rows", "");
        set_policies(&mut client, "Others", &good);
        check(&mut client, &refused);
        // The policies are dropped with their table.
        set_policies(&mut client, "Rows", &good);
        check(&mut client, "ok");
        assert_eq!(owner(&mut client, "DELETE", "/Tables('Rows')", "").status, 204);
        check(&mut client, &refused);
        create(&mut client, "Rows");
        check(&mut client, &refused);
        let policies = owner(&mut client, "GET", "/Rows?comp=acl", "").text();
        assert!(policies.ends_with("<SignedIdentifiers />"), "{policies}");
        // If a policy is created again, its tokens are valid again.
        set_policies(&mut client, "Rows", &good);
        check(&mut client, "ok");
    }
}

#[test]
fn policies_and_properties_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let mut client = server.client();
    create(&mut client, "Rows");
    set_policies(&mut client, "Rows", &policy("p", "", FUTURE, "raud"));
    let properties = "/?restype=service&comp=properties";
    let body = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging></StorageServiceProperties>";
    assert_eq!(owner(&mut client, "PUT", properties, body).status, 202);
    let before = ["/Rows?comp=acl", properties].map(|path| owner(&mut client, "GET", path, "").text());
    server.kill();
    let server = Partita::in_directory(directory.path());
    let mut client = server.client();
    let after = ["/Rows?comp=acl", properties].map(|path| owner(&mut client, "GET", path, "").text());
    assert_eq!(after, before);
    assert!(before[1].contains("<Days>5</Days>"), "{}", before[1]);
    assert_eq!(outcome(&send(&mut client, &policy_token(&[]), &get("/Rows()"))), "ok");
}
