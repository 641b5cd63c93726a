//! Tokens of each kind: those of the specifications, and mistakes in them.

use super::*;
use protocol::signing::AccountKey;
use protocol::signing::sas::{BlobTarget, Overrides, Terms};

const NOW: &str = "2025-01-01T12:00:00Z";
const QUEUES: &str = "http://127.0.0.1:10001/devstoreaccount1";
const BLOBS: &str = "http://127.0.0.1:10000/devstoreaccount1";
const TABLES: &str = "http://127.0.0.1:10002/devstoreaccount1";

fn told(url: &str) -> String {
    let now = DateTime::parse(NOW).unwrap();
    explain(url, &Account::development(), now).unwrap_or_else(|error| error.to_string())
}

/// Each part must be in the explanation.
fn check(url: &str, parts: &[&str]) {
    let told = told(url);
    for part in parts {
        assert!(told.contains(part), "{part:?} of {url}:\n{told}");
    }
}

/// The token, signed with the key of the development account.
fn signed(sas: &Sas) -> String {
    let account = Account::development();
    sas.to_query(&sas.sign(account.name.as_str(), &account.keys[0]))
}

fn table(token: &str) -> Sas {
    Sas::read(&QueryString::parse(&format!("sv=2019-02-02&tn=Books&{token}&sig=")).unwrap())
        .unwrap()
        .unwrap()
        .0
}

#[test]
fn a_queues_token_is_explained_whole() {
    let token = "sv=2021-02-12&sp=raup&se=2099-01-01T00%3A00%3A00Z&sig=2TE2Igx6DYCaDF9uspjSYcJwPtRb2QxYcp0H%2FE98QxM%3D";
    let expected = "\
token        for a queue, version 2021-02-12
grants       read, add, update, process on messages of queue myqueue
valid        from any time until 2099-01-01T00:00:00Z
callers      from any address by https,http
signature    right, by key 1 of account devstoreaccount1
from here    it would be accepted now";
    for address in [
        "http://127.0.0.1:10001/devstoreaccount1/myqueue",
        "http://127.0.0.1:10001/devstoreaccount1/myqueue/messages",
        "https://devstoreaccount1.queue.core.windows.net/myqueue/messages/5",
        "http://storage.example.com/devstoreaccount1/myqueue",
    ] {
        assert_eq!(told(&format!("{address}?{token}")), expected, "{address}");
    }
}

#[test]
fn the_name_of_a_blob_can_neither_be_taken_for_two_nor_add_a_line() {
    let of = |path: &str, blob: &str| {
        let sas = Sas::Blob(BlobSas {
            terms: Terms {
                version: "2019-12-12".to_owned(),
                permissions: "r".to_owned(),
                expiry: "2099-01-01T00:00:00Z".to_owned(),
                ..Terms::default()
            },
            container: "box".to_owned(),
            resource: SignedResource::Blob(blob.to_owned()),
            identifier: String::new(),
            encryption_scope: String::new(),
            overrides: Overrides::default(),
            delegation: None,
        });
        format!("{BLOBS}/{path}?{}", signed(&sas))
    };
    let accepted = "it would be accepted now";
    check(&of("box/a/b", "a/b"), &["read on blob a/b of container box\n", accepted]);
    // An encoded slash is a slash, also the first one.
    check(&of("box%2F..%2Fb", "../b"), &["read on blob ../b of container box\n", accepted]);
    let forged = of("box/x%0Afrom%20here%20%20%20%20REFUSED", "x\nfrom here    REFUSED");
    check(&forged, &["blob \"x\\nfrom here    REFUSED\" of", accepted]);
    assert_eq!(told(&forged).matches("\nfrom here").count(), 1);
    check(&of("box/%E2%80%AEtxt.exe", "\u{202e}txt.exe"), &["blob \"\\u{202e}txt.exe\" of", accepted]);
}

#[test]
fn no_field_of_a_token_can_add_a_line_or_change_the_terminal() {
    let forged = "x%0Afrom%20here%20%20%20%20it%20would%20be%20accepted%20now%1B%5B2J%E2%80%AE";
    for (url, fields) in [
        (TABLES, "sv=2019-02-02&tn=Books&spk=a&sig=x&sp=r&se=2099-01-01&sip="),
        (TABLES, "sv=2019-02-02&tn=Books&sp=r&se=2099-01-01&sig=x&spr="),
        (TABLES, "sv=2019-02-02&tn=Books&sp=r&sig=x&se="),
        (TABLES, "sv=2019-02-02&tn=Books&sp=r&se=2099-01-01&sig=x&st="),
        (TABLES, "sv=2019-02-02&sp=r&se=2099-01-01&sig=x&tn="),
        (TABLES, "sv=2019-02-02&ss=t&srt=o&se=2099-01-01&sig=x&sp="),
        (BLOBS, "sv=2021-08-06&sr=c&sp=r&se=2099-01-01&sig=x&rsct="),
    ] {
        let told = told(&format!("{url}/box?{fields}{forged}"));
        assert_eq!(told.matches("\nfrom here").count(), 1, "{fields}:\n{told}");
        assert!(!told.contains(['\x1b', '\u{202e}']), "{fields}:\n{told}");
        assert!(told.lines().last().unwrap().contains("REFUSED"), "{fields}:\n{told}");
    }
}

#[test]
fn a_blobs_token_is_explained_whole() {
    let token = "sv=2021-08-06&sr=b&sp=r&se=2030-01-01T00%3A00%3A00Z&rscc=no-cache&rscd=attachment%3B%20filename%3D%22x%22&rsce=gzip&rscl=en&rsct=text%2Fplain&sig=GBUspgE3XHrunPyFbEI6ICKBH2wcg63if43LkfsEFI4%3D";
    let expected = "\
token        for blobs, version 2021-08-06
grants       read on blob a b.txt of container c1
answers with Cache-Control: no-cache
answers with Content-Disposition: attachment; filename=\"x\"
answers with Content-Encoding: gzip
answers with Content-Language: en
answers with Content-Type: text/plain
valid        from any time until 2030-01-01T00:00:00Z
callers      from any address by https,http
signature    right, by key 1 of account devstoreaccount1
from here    it would be accepted now";
    assert_eq!(told(&format!("{BLOBS}/c1/a%20b.txt?{token}")), expected);
    assert_eq!(
        told(&format!("https://devstoreaccount1.blob.core.windows.net/c1/a%20b.txt?{token}")),
        expected
    );
}

#[test]
fn each_resource_of_blobs_is_named() {
    let check = |path: &str, token: &str, granted: &str| {
        check(
            &format!("{BLOBS}/{path}?sv=2021-08-06&sp=r&se=2030-01-01&{token}&sig=x"),
            &[&format!("grants       read on {granted}\n")],
        );
    };
    check("c1", "sr=c", "all blobs of container c1");
    check("c1/a/b", "sr=c", "all blobs of container c1");
    check("c1/a/b", "sr=b", "blob a/b of container c1");
    check("a.txt", "sr=b", "blob a.txt of container $root");
    check("c1/b", "sr=bs&snapshot=2024", "snapshot 2024 of blob b of container c1");
    check("c1/b", "sr=bv&versionid=2024", "version 2024 of blob b of container c1");
    check("c1/a/b/x", "sr=d&sdd=2", "all blobs in directory \"a/b\" of container c1");
}

#[test]
fn a_tables_token_is_explained_with_and_without_its_url() {
    let token = signed(&table("sp=ra&se=2025-01-02&spk=A&epk=B&erk=7"));
    for url in [format!("{TABLES}/Books?{token}"), format!("http://10.0.0.1:10001/shop/Books?{token}"), token]
    {
        check(
            &url,
            &[
                "token        for a table, version 2019-02-02",
                "read, add on entities of table Books",
                "from partition \"A\" to partition \"B\", row \"7\"",
                "right, by key 1 of account devstoreaccount1",
                "it would be accepted now",
            ],
        );
    }
}

#[test]
fn an_accounts_token_is_explained_for_each_of_its_services() {
    let all = "sv=2023-11-03&ss=bfqt&srt=sco&sp=rwdlacup&se=2030-01-01T00%3A00%3A00Z&spr=https%2Chttp&sig=0isK%2BwBGxvwwOHCwu%2FzBmvLyb%2Bvb74dKA2FjjQzlvIY%3D";
    for url in [BLOBS, QUEUES, TABLES] {
        check(
            &format!("{url}?{all}"),
            &[
                "token        for an account, version 2023-11-03",
                "read, write, delete, list, add, create, update, process on the blob service, containers, blobs, the queue \
             service, queues, messages, the table service, tables, entities of account devstoreaccount1",
                "services     blobs, files, queues, tables",
                "right, by key 1",
                "it would be accepted now",
            ],
        );
    }
    let queues = "sv=2021-02-12&ss=q&srt=sco&sp=rwdlacup&se=2099-01-01T00%3A00%3A00Z&spr=https%2Chttp&sig=LJ7ys9LS12cnHQvvjl9r3rbB2lsSPPZwjg2T01mXrTU%3D";
    check(queues, &["it would be accepted now"]);
    check(
        &format!("{TABLES}?{queues}"),
        &["REFUSED with AuthorizationServiceMismatch: the token is for services \"q\"; tables need t in ss"],
    );
}

#[test]
fn what_is_wrong_with_a_token_is_said() {
    let queue = |token: &str| format!("{QUEUES}/q?sv=2021-02-12&{token}&sig=x");
    let blob = |token: &str| format!("{BLOBS}/c/b?sv=2021-08-06&sr=b&{token}&sig=x");
    for (url, part) in [
        (queue("sp=r&se=2030-01-01"), "WRONG for account devstoreaccount1; it should sign \"r\\n\\n2030-01-01\\n/queue/"),
        (queue("sp=r&se=2030-01-01"), "REFUSED with AuthenticationFailed: the signature is wrong"),
        (queue("sp=r&se=2024-12-31"), "REFUSED with AuthenticationFailed: the token expired at 2024-12-31"),
        (queue("sp=r"), "until no time: it has no expiry"),
        (queue("sp=pr&se=2030-01-01"), "sp is \"pr\"; it may hold letters of raup in this order"),
        (queue("sp=rz&se=2030-01-01"), "read, 'z' (UNKNOWN) on messages"),
        (queue("se=2030-01-01"), "no permissions of its own on messages of queue q"),
        (blob("sp=r&se=2030-01-01&sip=10.0.0.1"), "REFUSED with AuthorizationSourceIPMismatch"),
        (blob("sp=r&se=2030-01-01&spr=https"), "REFUSED with AuthorizationProtocolMismatch"),
        (blob("sp=rr&se=2030-01-01"), "sp is \"rr\"; it may hold letters of racwdxyltfmeopi, each once"),
        (blob("sp=r&se=2030-01-01&st=2026-01-01"), "the token is valid from 2026-01-01"),
        (
            "https://devstoreaccount1.queue.core.windows.net/Books?sv=2019-02-02&tn=Books&sp=r&se=2030-01-01&sig=x".to_owned(),
            "REFUSED: this is a token for the table service, and the URL is of the queue service",
        ),
    ] {
        check(&url, &[part]);
    }
}

#[test]
fn a_policy_is_left_to_the_server() {
    let queue =
        "sv=2021-02-12&spr=https%2Chttp&si=policy1&sig=Cm4nmrUKwAmRoeB6zIkdXRe2jljV5HmSjvBLwW56g%2FA%3D";
    check(
        &format!("{QUEUES}/myqueue?{queue}"),
        &[
            "grants       no permissions of its own on messages of queue myqueue",
            "policy       \"policy1\" provides the terms that the token does not have",
            "right, by key 1",
            "only the server can tell: it knows the terms of policy \"policy1\"",
        ],
    );
    let blob = "sv=2021-08-06&sr=c&si=policy-1&sig=mS6N%2FgwdPuBjnsRlRXc7LQT%2BS9bx7K%2FKOTiINC15xP8%3D";
    check(&format!("{BLOBS}/c1?{blob}"), &["right, by key 1", "it knows the terms of policy \"policy-1\""]);
}

#[test]
fn a_user_delegation_key_is_named_and_checked() {
    let key = "skoid=O&sktid=T&skt=2020-01-01T00:00:00Z&ske=2099-01-01T00:00:00Z&sks=b&skv=V";
    let named = "by a user delegation key of O in tenant T, valid from 2020-01-01T00:00:00Z until 2099-01-01T00:00:00Z";
    let blob = |more: &str, signature: &str| {
        format!("{BLOBS}/c/b?sv=2021-08-06&sr=b&sp=r&se=2099-01-01T00:00:00Z&{key}{more}&sig={signature}")
    };
    let signed = |more: &str, rights: Rights| {
        let account = Account::development();
        let query = QueryString::parse(blob(more, "x").split_once('?').unwrap().1).unwrap();
        let target = BlobTarget { container: "c", blob: Some("b") };
        let (sas, _) = Sas::read_blob(&query, target).unwrap().unwrap();
        let user = sas.delegation().unwrap();
        let value = delegation::value(&account.keys[0], &account.name, user.key(), rights);
        let signature = AccountKey::parse(&value).unwrap().sign(&sas.string_to_sign(account.name.as_str()));
        blob(more, &signature.replace('+', "%2B"))
    };
    check(&signed("", Rights::Read), &[&format!("signature    right; {named}"), "it would be accepted now"]);
    check(
        &blob("", "x"),
        &[
            &format!("signature    WRONG, unless the key is Azure's; {named}"),
            "REFUSED with AuthenticationFailed: the signature is wrong",
        ],
    );
    check(&signed("&saoid=U", Rights::Read), &["not checked;", "REFUSED with AuthenticationFailed: saoid"]);
    let old = signed("", Rights::Read).replace("ske=2099", "ske=2021");
    check(&old, &["WRONG"]);
    // Some SDKs write `sr=q`, others nothing.
    for sr in ["&sr=q", ""] {
        check(
            &format!("{QUEUES}/q?sv=2026-02-06{sr}&sp=r&se=2030-01-01&{key}&sig=x"),
            &[named, "REFUSED by Partita, which gives out user delegation keys for blobs only"],
        );
    }
}

#[test]
fn what_can_not_be_explained_is_refused() {
    for (url, expected) in [
        ("https://h/t?$top=5", "there is no token here: a token has a sig"),
        (
            "sv=2019-02-02&sp=r&sig=x",
            "a token for a queue or for blobs does not name them; give the whole URL",
        ),
        (
            "sv=2019-02-02&sp=r&sr=b&sig=x",
            "a token for a queue or for blobs does not name them; give the whole URL",
        ),
        (
            "https://shop.queue.core.windows.net/q?sv=2019-02-02&sp=r&sig=x",
            "the URL is not one of account devstoreaccount1; name its account with --account",
        ),
        (
            "https://devstoreaccount1.table.core.windows.net/Books?sv=2019-02-02&sp=r&sig=x",
            "this is not a valid token: tn is missing",
        ),
        (
            "https://devstoreaccount1.blob.core.windows.net/c/b?sv=2019-02-02&sp=r&sig=x",
            "this is not a valid token: sr is missing",
        ),
        (
            "https://devstoreaccount1.file.core.windows.net/s/f?sv=2019-02-02&sr=f&sp=r&sig=x",
            "this is not a valid token: sr is \"f\", not a kind of resource",
        ),
    ] {
        let told = told(url);
        assert!(told.starts_with(expected), "{url}:\n{told}");
    }
}
