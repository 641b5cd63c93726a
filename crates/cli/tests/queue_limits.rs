//! Every limit and every refusal of the Queue service that a client can cause, one line each: the value at the limit works,
//! the next one is refused. The bytes of refusals are in `conformance/wire/queue_*.http`.
//!
//! Specification: queue-operations 1 to 5, and the table of errors in 8.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use crate::support::{ACCOUNT, Client, Partita};

const TEXT: &str = "<QueueMessage><MessageText>a</MessageText></QueueMessage>";
const ID: &str = "0a1b2c3d-0000-4000-8000-0123456789ab";
const RECEIPT: &str = "AgAAAAMAAAAAAAAAkP0RP0Fx2QE%3D";

struct Ground {
    _server: Partita,
    client: Client,
}

impl Ground {
    /// With the queue `jobs`.
    fn new() -> Self {
        let server = Partita::in_memory();
        let mut client = server.queue_client();
        assert_eq!(client.send("PUT", "/jobs", &[], b"").status, 201);
        Self { _server: server, client }
    }

    /// `expected` is a status, and a code if it is a refusal: `204`, `400 InvalidMetadata`.
    fn check(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str, expected: &str) {
        let answer = self.client.send(method, path, headers, body.as_bytes());
        let code = answer.header("x-ms-error-code").unwrap_or_default();
        let told = format!("{} {code}", answer.status);
        assert_eq!(
            told.trim_end(),
            expected,
            "{method} {path:.100} {headers:.100?} {body:.100}: {}",
            answer.text()
        );
    }

    fn get(&mut self, path: &str, expected: &str) {
        self.check("GET", path, &[], "", expected);
    }

    fn put_message(&mut self, options: &str, body: &str, expected: &str) {
        self.check("POST", &format!("/jobs/messages{options}"), &[], body, expected);
    }
}

const INVALID: &str = "400 InvalidQueryParameterValue";
const OUT_OF_RANGE: &str = "400 OutOfRangeQueryParameterValue";
const MISSING: &str = "400 MissingRequiredQueryParameter";
const XML: &str = "400 InvalidXmlDocument";

/// Every operation that names a queue, but the one that creates it, and its body.
const ON_QUEUES: [(&str, &str, &str); 14] = [
    ("DELETE", "", ""),
    ("GET", "?comp=metadata", ""),
    ("HEAD", "?comp=metadata", ""),
    ("PUT", "?comp=metadata", ""),
    ("GET", "?comp=acl", ""),
    ("HEAD", "?comp=acl", ""),
    ("PUT", "?comp=acl", ""),
    ("POST", "/messages", TEXT),
    ("GET", "/messages", ""),
    ("GET", "/messages?peekonly=true", ""),
    ("DELETE", "/messages", ""),
    ("PUT", "/messages/ID?popreceipt=RECEIPT&visibilitytimeout=0", ""),
    ("PUT", "/messages/ID?popreceipt=RECEIPT&visibilitytimeout=0", TEXT),
    ("DELETE", "/messages/ID?popreceipt=RECEIPT", ""),
];

fn on_queue(name: &str, rest: &str) -> String {
    format!("/{name}{}", rest.replace("ID", ID).replace("RECEIPT", RECEIPT))
}

#[test]
fn names_have_limits_in_every_operation() {
    let mut ground = Ground::new();
    let (shortest, longest) = ("abc", "a".repeat(63));
    for good in [shortest, &longest, "a-b-c", "123", "0-9"] {
        ground.check("PUT", &format!("/{good}"), &[], "", "201");
    }
    let (length, letters) = ("400 OutOfRangeInput", "400 InvalidResourceName");
    let too_long = "a".repeat(64);
    for (bad, expected) in [
        ("a", length),
        ("ab", length),
        (too_long.as_str(), length),
        ("a_b", letters),
        ("-ab", letters),
        ("ab-", letters),
        ("a--b", letters),
        ("Abc", letters),
        ("a.b", letters),
        ("%7BqueueName%7D", letters),
        ("%E5%95%8A%E5%95%8A%E5%95%8A", letters),
        ("%24logs", letters),
        ("ab%00", letters),
    ] {
        ground.check("PUT", &format!("/{bad}"), &[], "", expected);
        for (method, rest, body) in ON_QUEUES {
            ground.check(method, &on_queue(bad, rest), &[], body, expected);
        }
    }
}

#[test]
fn a_missing_queue_is_told_by_every_operation() {
    let mut ground = Ground::new();
    for (method, rest, body) in ON_QUEUES {
        ground.check(method, &on_queue("gone", rest), &[], body, "404 QueueNotFound");
    }
}

#[test]
fn metadata_has_limits() {
    let mut ground = Ground::new();
    // Names and values together have 8 KiB.
    let most = "v".repeat(8 * 1024 - 1);
    let many: Vec<(String, String)> =
        (0..64).map(|n| (format!("x-ms-meta-n{n:03}"), "v".repeat(124))).collect();
    let mut many: Vec<(&str, &str)> =
        many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    for (method, path) in [("PUT", "/jobs?comp=metadata"), ("PUT", "/other")] {
        let done = if path == "/other" { "201" } else { "204" };
        let mut check = |headers: &[(&str, &str)], expected: &str| {
            ground.client.send("DELETE", "/other", &[], b"");
            let expected = if expected.is_empty() { done } else { expected };
            ground.check(method, path, headers, "", expected);
        };
        check(&[("x-ms-meta-a", &most)], "");
        check(&[("x-ms-meta-ab", &most)], "400 MetadataTooLarge");
        check(&many, "");
        many.push(("x-ms-meta-a", ""));
        check(&many, "400 MetadataTooLarge");
        many.pop();
        for good in ["a", "_", "_1", "a1_b"] {
            check(&[(&format!("x-ms-meta-{good}"), "")], "");
        }
        for bad in ["1", "12345", "invalid-meta", "metadata!", "a.b", "a~"] {
            check(&[(&format!("x-ms-meta-{bad}"), "x")], "400 InvalidMetadata");
        }
        check(&[("x-ms-meta-", "value")], "400 EmptyMetadataKey");
        check(&[("x-ms-meta-a", "1"), ("x-ms-meta-a", "2")], "400 InvalidMetadata");
        check(&[("x-ms-meta-a", "1"), ("x-ms-meta-A", "1")], "400 InvalidMetadata");
    }
    // Where it means nothing, it is not looked at.
    ground.check("GET", "/jobs?comp=metadata", &[("x-ms-meta-1", "x")], "", "200");
}

#[test]
fn times_of_a_put_have_limits() {
    let mut ground = Ground::new();
    for (options, expected) in [
        ("?visibilitytimeout=0", "201"),
        ("?visibilitytimeout=604799", "201"),
        ("?visibilitytimeout=604800&messagettl=604801", "201"),
        ("?visibilitytimeout=604800&messagettl=-1", "201"),
        ("?visibilitytimeout=604801&messagettl=-1", OUT_OF_RANGE),
        ("?visibilitytimeout=-1", OUT_OF_RANGE),
        ("?visibilitytimeout=99999999999999999999", OUT_OF_RANGE),
        ("?visibilitytimeout=x", INVALID),
        ("?visibilitytimeout=1.5", INVALID),
        ("?visibilitytimeout=%2B1x", INVALID),
        // As long as it lives by default, and as it says.
        ("?visibilitytimeout=604800", INVALID),
        ("?visibilitytimeout=30&messagettl=30", INVALID),
        ("?visibilitytimeout=31&messagettl=30", INVALID),
        ("?visibilitytimeout=29&messagettl=30", "201"),
        ("?messagettl=1", "201"),
        ("?messagettl=-1", "201"),
        ("?messagettl=1073741824", "201"),
        ("?messagettl=9223372036854775807", "201"),
        ("?messagettl=0", INVALID),
        ("?messagettl=-2", INVALID),
        ("?messagettl=-9223372036854775808", INVALID),
        ("?messagettl=9223372036854775808", OUT_OF_RANGE),
        ("?messagettl=x", INVALID),
        ("?messagettl=", "201"),
        ("?timeout=30", "201"),
        ("?timeout=31", "201"),
        ("?timeout=x", INVALID),
    ] {
        ground.put_message(options, TEXT, expected);
    }
    let old = [("x-ms-version", "2017-04-17")];
    for (seconds, expected) in [("604800", "201"), ("604801", "400"), ("-1", "400"), ("0", "400")] {
        let path = format!("/jobs/messages?messagettl={seconds}");
        ground.check("POST", &path, &old, TEXT, expected);
    }
}

#[test]
fn reads_of_messages_have_limits() {
    let mut ground = Ground::new();
    for (option, expected) in [
        ("numofmessages=1", "200"),
        ("numofmessages=32", "200"),
        ("numofmessages=33", OUT_OF_RANGE),
        ("numofmessages=0", OUT_OF_RANGE),
        ("numofmessages=-1", OUT_OF_RANGE),
        ("numofmessages=99999999999999999999", OUT_OF_RANGE),
        ("numofmessages=x", INVALID),
        ("numofmessages=", "200"),
        ("timeout=x", INVALID),
    ] {
        ground.get(&format!("/jobs/messages?{option}"), expected);
        ground.get(&format!("/jobs/messages?peekonly=true&{option}"), expected);
    }
    for (seconds, expected) in [
        ("1", "200"),
        ("604800", "200"),
        ("604801", OUT_OF_RANGE),
        ("0", OUT_OF_RANGE),
        ("-1", OUT_OF_RANGE),
        ("x", INVALID),
        ("", "200"),
    ] {
        ground.get(&format!("/jobs/messages?visibilitytimeout={seconds}"), expected);
        // It means nothing to a Peek.
        ground.get(&format!("/jobs/messages?peekonly=true&visibilitytimeout={seconds}"), "200");
    }
}

#[test]
fn updates_and_deletes_have_limits() {
    let mut ground = Ground::new();
    let message = |options: &str| format!("/jobs/messages/{ID}?{options}");
    let with = |options: &str| message(&format!("popreceipt={RECEIPT}{options}"));
    let unknown = "404 MessageNotFound";
    for (seconds, expected) in [
        ("0", unknown),
        ("604800", unknown),
        ("604801", OUT_OF_RANGE),
        ("-1", OUT_OF_RANGE),
        ("x", INVALID),
        ("", MISSING),
    ] {
        ground.check("PUT", &with(&format!("&visibilitytimeout={seconds}")), &[], "", expected);
    }
    ground.check("PUT", &with(""), &[], "", MISSING);
    for (receipt, expected) in [
        ("invalid", INVALID),
        ("exist", INVALID),
        ("A", INVALID),
        ("AgAAAAMAAAAAAAAAkP0RP0Fx2QE%3DRandom", INVALID),
        ("", MISSING),
        // Base64, but none that this server gives.
        ("QUJDREVGR0hJSktMTU5P", unknown),
        ("AAAA", unknown),
        ("AgAAAAMAAAAAAAAA%2F%2F%2F%2F%2F%2F%2F%2Ffw%3D%3D", unknown),
    ] {
        ground.check("DELETE", &message(&format!("popreceipt={receipt}")), &[], "", expected);
        let update = message(&format!("popreceipt={receipt}&visibilitytimeout=0"));
        ground.check("PUT", &update, &[], TEXT, expected);
    }
    ground.check("DELETE", &message(""), &[], "", MISSING);
    for id in [
        "x",
        "test-message-0a1b2c3d-0000-4000-8000-0123456789ab",
        "%20",
        "0a1b2c3d-0000-4000-8000-0123456789abRandom",
    ] {
        ground.check("DELETE", &format!("/jobs/messages/{id}?popreceipt={RECEIPT}"), &[], "", unknown);
    }
    // What is wrong with the text is told before the message is looked for.
    let update = with("&visibilitytimeout=0");
    ground.check("PUT", &update, &[], "nonsense", XML);
    let long =
        |letters| format!("<QueueMessage><MessageText>{}</MessageText></QueueMessage>", "a".repeat(letters));
    ground.check("PUT", &update, &[], &long(65_536), unknown);
    ground.check("PUT", &update, &[], &long(65_537), "413 RequestBodyTooLarge");
}

#[test]
fn texts_have_limits() {
    let mut ground = Ground::new();
    let body = |text: &str| format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    for (text, expected) in [
        ("a".repeat(65_536), "201"),
        ("a".repeat(65_537), "413 RequestBodyTooLarge"),
        ("é".repeat(32_768), "201"),
        (format!("{}a", "é".repeat(32_768)), "413 RequestBodyTooLarge"),
        ("𝄞".repeat(16_384), "201"),
        ("&quot;".repeat(65_536), "201"),
        ("&quot;".repeat(65_537), "413 RequestBodyTooLarge"),
        ("&#x41;".repeat(65_536), "201"),
        ("<![CDATA[<&>]]>".to_owned(), "201"),
        (String::new(), "201"),
        ("\t\n\r\u{85}\u{fffd}".to_owned(), "201"),
        ("\u{1}".to_owned(), XML),
        ("\u{8}".to_owned(), XML),
        ("\u{fffe}".to_owned(), XML),
        ("\u{ffff}".to_owned(), XML),
        ("&#1;".to_owned(), XML),
        ("&#0;".to_owned(), XML),
        ("&#xD800;".to_owned(), XML),
        ("&#xFFFF;".to_owned(), XML),
        ("&#x110000;".to_owned(), XML),
        ("&#99999999999999999999;".to_owned(), XML),
        ("&nbsp;".to_owned(), XML),
        ("&".to_owned(), XML),
        ("<".to_owned(), XML),
        ("<a></b>".to_owned(), XML),
    ] {
        ground.put_message("", &body(&text), expected);
    }
    for (whole, expected) in [
        ("", XML),
        ("nonsense", XML),
        ("<QueueMessage/>", XML),
        ("<QueueMessage></QueueMessage>", XML),
        ("<Message><MessageText>a</MessageText></Message>", XML),
        ("<QueueMessage><Text>a</Text></QueueMessage>", XML),
        ("<QueueMessage><MessageText>a</MessageText>", XML),
        ("<QueueMessage><MessageText>a</MessageText></QueueMessage>x", XML),
        ("<QueueMessage><MessageText>a</MessageText></QueueMessage><QueueMessage/>", XML),
        ("<!DOCTYPE a><QueueMessage><MessageText>a</MessageText></QueueMessage>", XML),
        ("\u{feff}<QueueMessage><MessageText>a</MessageText></QueueMessage>", "201"),
        ("<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage><MessageText/></QueueMessage>\n", "201"),
        (
            "<?xml version=\"1.0\" standalone=\"yes\"?><QueueMessage> <MessageText>a</MessageText> </QueueMessage>",
            "201",
        ),
    ] {
        ground.put_message("", whole, expected);
    }
    // Lone surrogates and other bytes that are no UTF-8.
    for bytes in [&b"\xed\xa0\x80"[..], b"\xff", b"\xc3"] {
        let body = [&b"<QueueMessage><MessageText>"[..], bytes, b"</MessageText></QueueMessage>"].concat();
        let answer = ground.client.send("POST", "/jobs/messages", &[], &body);
        assert_eq!((answer.status, answer.header("x-ms-error-code")), (400, Some("InvalidXmlDocument")));
    }
    ground.check("POST", "/jobs/messages", &[("!Content-Length", "")], "", "411 MissingContentLengthHeader");
}

#[test]
fn lists_have_limits() {
    let mut ground = Ground::new();
    let marker = "400 OutOfRangeInput";
    for (options, expected) in [
        ("", "200"),
        ("&maxresults=1", "200"),
        ("&maxresults=5000", "200"),
        ("&maxresults=5001", "200"),
        ("&maxresults=2147483647", "200"),
        ("&maxresults=2147483648", OUT_OF_RANGE),
        ("&maxresults=0", OUT_OF_RANGE),
        ("&maxresults=-1", OUT_OF_RANGE),
        ("&maxresults=x", INVALID),
        ("&maxresults=", "200"),
        ("&include=", "200"),
        ("&include=metadata", "200"),
        ("&include=other", INVALID),
        ("&marker=", "200"),
        ("&marker=%2Fdevstoreaccount1%2Fjobs", "200"),
        ("&marker=%2Fdevstoreaccount1%2Fnot-there", "200"),
        ("&marker=garbage", marker),
        ("&marker=jobs", marker),
        ("&marker=%2Fother%2Fjobs", marker),
        ("&prefix=", "200"),
        ("&prefix=%00", "200"),
        ("&timeout=x", INVALID),
        ("&_=1700000000000&unknown=1", "200"),
    ] {
        ground.get(&format!("/?comp=list{options}"), expected);
    }
}

#[test]
fn policies_have_limits() {
    let mut ground = Ground::new();
    let identifiers = |ids: &[&str]| {
        let each = |id: &&str| format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>");
        format!("<SignedIdentifiers>{}</SignedIdentifiers>", ids.iter().map(each).collect::<String>())
    };
    let policy = |inside: &str| {
        format!(
            "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy>{inside}</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        )
    };
    let (longest, too_long) = ("i".repeat(64), "i".repeat(65));
    for (body, expected) in [
        (String::new(), "204"),
        ("<SignedIdentifiers />".to_owned(), "204"),
        (identifiers(&["1", "2", "3", "4", "5"]), "204"),
        (identifiers(&["1", "2", "3", "4", "5", "6"]), XML),
        (identifiers(&[&longest]), "204"),
        (identifiers(&[&too_long]), XML),
        (identifiers(&[""]), XML),
        (policy(""), "204"),
        (
            policy(
                "<Start>2000-01-01</Start><Expiry>2099-01-01T00:00:00Z</Expiry><Permission>raup</Permission>",
            ),
            "204",
        ),
        (policy("<Permission>r</Permission>"), "204"),
        ("<SignedIdentifiers>".to_owned(), XML),
        ("nonsense".to_owned(), XML),
        ("<!DOCTYPE a><SignedIdentifiers />".to_owned(), XML),
    ] {
        ground.check("PUT", "/jobs?comp=acl", &[], &body, expected);
    }
    ground.check("PUT", "/jobs?comp=acl", &[], &" ".repeat(6 * 65_536 + 1025), "413 RequestBodyTooLarge");
    for inside in ["<Start>yesterday</Start>", "<Expiry>2099-13-01</Expiry>", "<Permission>x</Permission>"] {
        let answer = ground.client.send("PUT", "/jobs?comp=acl", &[], policy(inside).as_bytes());
        assert_eq!(answer.status, 400, "{inside}: {}", answer.text());
    }
}

#[test]
fn service_properties_have_limits() {
    let mut ground = Ground::new();
    let properties = |inside: &str| format!("<StorageServiceProperties>{inside}</StorageServiceProperties>");
    let rule = "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>1</MaxAgeInSeconds></CorsRule>";
    let cors = |count| properties(&format!("<Cors>{}</Cors>", rule.repeat(count)));
    let days = |days: u32| {
        properties(&format!(
            "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy></HourMetrics>"
        ))
    };
    let path = "/?restype=service&comp=properties";
    for (body, expected) in [
        (cors(5), "202"),
        (cors(6), XML),
        (cors(0), "202"),
        (days(1), "202"),
        (days(365), "202"),
        (days(366), XML),
        (days(0), XML),
        ("<StorageServiceProperties />".to_owned(), XML),
        (String::new(), XML),
        ("nonsense".to_owned(), XML),
    ] {
        ground.check("PUT", path, &[], &body, expected);
    }
}

#[test]
fn addresses_and_methods_that_there_are_not() {
    let mut ground = Ground::new();
    for (method, path, expected) in [
        ("GET", "/", INVALID),
        ("GET", "/?comp=other", INVALID),
        ("GET", "/?restype=service&comp=stats", INVALID),
        ("GET", "/jobs", INVALID),
        ("PUT", "/jobs?comp=other", INVALID),
        ("GET", "/jobs/other", "400 InvalidUri"),
        ("GET", "/jobs/messages/a/b", "400 InvalidUri"),
        ("POST", "/jobs", "405 UnsupportedHttpVerb"),
        ("PATCH", "/jobs/messages", "405 UnsupportedHttpVerb"),
        ("GET", "/jobs/messages/a", "405 UnsupportedHttpVerb"),
        ("DELETE", "/jobs?comp=acl", "405 UnsupportedHttpVerb"),
        ("PUT", "/jobs", "204"),
    ] {
        ground.check(method, path, &[], "", expected);
    }
    ground.check("PUT", "/jobs", &[("x-ms-meta-a", "1")], "", "409 QueueAlreadyExists");
}

/// Specification: queue-operations 7.1.
#[test]
fn requests_that_nobody_signed() {
    let mut ground = Ground::new();
    let path = format!("/{ACCOUNT}/jobs?comp=metadata");
    let date = ("x-ms-date", "Fri, 15 Nov 2024 12:00:00 GMT");
    for (path, headers, expected) in [
        (path.as_str(), vec![("x-ms-version", "2018-11-09")], (404, "ResourceNotFound")),
        (&path, vec![("x-ms-version", "2021-02-12")], (401, "NoAuthenticationInformation")),
        (
            &path,
            vec![("x-ms-version", "2021-02-12"), date, ("Authorization", "nonsense")],
            (400, "InvalidAuthenticationInfo"),
        ),
        (
            &path,
            vec![("x-ms-version", "2021-02-12"), date, ("Authorization", "SharedKey devstoreaccount1:AAAA")],
            (403, "AuthenticationFailed"),
        ),
    ] {
        let answer = ground.client.send_raw("GET", path, &headers, b"").unwrap();
        let code = answer.header("x-ms-error-code").unwrap_or_default();
        assert_eq!((answer.status, code), expected, "{headers:?}: {}", answer.text());
    }
    let versions = [("x-ms-version", "yesterday")];
    let answer = ground.client.send_raw("GET", &path, &versions, b"").unwrap();
    assert!(answer.status == 400 && answer.text().contains("InvalidHeaderValue"), "{}", answer.text());
}
