use std::path::Path;

use super::*;

/// The settings, or the error's text.
fn config(file: &str, flags: Flags) -> Result<Config, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("partita.toml");
    std::fs::write(&path, file).unwrap();
    Config::from_flags(Flags { config: Some(path), ..flags }).map_err(|error| error.to_string())
}

#[test]
fn defaults_serve_the_development_account() {
    let config = Config::from_flags(Flags::default()).unwrap();
    assert!(config.development && config.check_clock);
    assert_eq!(config.listen.as_deref(), Some("127.0.0.1:10002"));
    assert_eq!(config.queue_listen.as_deref(), Some("127.0.0.1:10001"));
    assert_eq!(config.tls, None);
    assert_eq!(config.control, Some(("./partita-data/control".into(), false)));
    assert_eq!(config.accounts[0].name.as_str(), "devstoreaccount1");
    assert!(matches!(config.storage, Storage::Directory { path, .. } if path == Path::new("./partita-data")));
}

#[test]
fn every_key_of_the_file_is_read_and_flags_win() {
    let file = "listen = '0.0.0.0:1'\ndata = '/d'\ncontrol = '/s'\nskip-clock-check = true\ncache-mib = 7\nmax-connections = 8\n\
                idle-seconds = 9\nshutdown-seconds = 10\nlog-level = 'debug'\nlog-format = 'json'\n\
                [[account]]\nname = 'one'\nkey = 'AAAAAAAAAAAAAAAAAAAAAA=='\nkey2 = 'BBBBBBBBBBBBBBBBBBBBBA=='\n[[account]]\nname = 'two'\nkey = 'CCCCCCCCCCCCCCCCCCCCCA=='\n";
    let from_file = config(file, Flags::default()).unwrap();
    assert_eq!(from_file.listen.as_deref(), Some("0.0.0.0:1"));
    let expected = Storage::Directory {
        path: "/d".into(),
        cache_bytes: 7 << 20,
        accept_loss: false,
        accept_migration: false,
    };
    assert_eq!(from_file.storage, expected);
    assert_eq!(from_file.accounts.iter().map(|a| a.keys.len()).collect::<Vec<_>>(), [2, 1]);
    assert!(!from_file.check_clock);
    assert_eq!(from_file.control, Some(("/s".into(), true)));
    assert_eq!(
        (from_file.bounds.connections, from_file.bounds.idle.as_secs(), from_file.bounds.shutdown.as_secs()),
        (8, 9, 10)
    );
    assert_eq!((from_file.log_level.as_str(), from_file.log_format), ("debug", LogFormat::Json));
    let flags = Flags {
        listen: Some("h:2".into()),
        accounts: vec!["abc:AAAAAAAAAAAAAAAAAAAAAA==".into()],
        in_memory: true,
        ..Flags::default()
    };
    let from_flags = config(file, flags).unwrap();
    assert_eq!((from_flags.listen.as_deref(), from_flags.accounts.len()), (Some("h:2"), 1));
    assert_eq!(from_flags.storage, Storage::Memory);
}

#[test]
fn queues_are_served_beside_tables() {
    let check = |file: &str, expected: [Option<&str>; 2]| {
        let file = format!("dev-cert = '/c'\ndevelopment = true\n{file}");
        let config = config(&file, Flags::default()).unwrap();
        let over_tls = config.tls.and_then(|tls| tls.queue_listen);
        assert_eq!([config.queue_listen.as_deref(), over_tls.as_deref()], expected, "{file}");
    };
    check("", [Some("127.0.0.1:10001"), Some("127.0.0.1:10005")]);
    check("queue-listen = 'h:1'\nqueue-tls-listen = 'h:2'", [Some("h:1"), Some("h:2")]);
    check("listen = 'h:0'\ntls-listen = '[::1]:0'", [Some("h:0"), Some("[::1]:0")]);
    check("listen = 'h:10'", [Some("127.0.0.1:10001"), Some("127.0.0.1:10005")]);
    check("queue-listen = 'off'", [None, None]);
    check("queue-listen = 'off'\nqueue-tls-listen = 'h:2'", [None, Some("h:2")]);
    check("queue-tls-listen = 'off'", [Some("127.0.0.1:10001"), None]);
    check("no-http = true", [None, Some("127.0.0.1:10005")]);
    let flags = Flags { queue_listen: Some("off".to_owned()), ..Flags::default() };
    assert_eq!(config("queue-listen = 'h:1'", flags).unwrap().queue_listen, None);
}

#[test]
fn blobs_are_served_beside_tables_and_are_not_public() {
    let check = |file: &str, expected: [Option<&str>; 2]| {
        let file = format!("dev-cert = '/c'\ndevelopment = true\n{file}");
        let config = config(&file, Flags::default()).unwrap();
        assert!(!config.blob_public_access);
        let over_tls = config.tls.and_then(|tls| tls.blob_listen);
        assert_eq!([config.blob_listen.as_deref(), over_tls.as_deref()], expected, "{file}");
    };
    check("", [Some("127.0.0.1:10000"), Some("127.0.0.1:10006")]);
    check("blob-listen = 'h:1'\nblob-tls-listen = 'h:2'", [Some("h:1"), Some("h:2")]);
    check("listen = 'h:0'\ntls-listen = '[::1]:0'", [Some("h:0"), Some("[::1]:0")]);
    check("blob-listen = 'off'", [None, None]);
    check("blob-tls-listen = 'off'", [Some("127.0.0.1:10000"), None]);
    check("no-http = true", [None, Some("127.0.0.1:10006")]);
    let flags = Flags { blob_listen: Some("off".to_owned()), ..Flags::default() };
    assert_eq!(config("blob-listen = 'h:1'", flags).unwrap().blob_listen, None);
    assert!(config("blob-public-access = 'on'", Flags::default()).unwrap().blob_public_access);
    let refused = config("blob-listen = '0.0.0.0:10000'", Flags::default()).unwrap_err();
    assert!(refused.contains("0.0.0.0:10000"), "{refused}");
}

#[test]
fn queues_of_the_development_account_are_for_this_machine_too() {
    let refused = config("queue-listen = '0.0.0.0:10001'", Flags::default()).unwrap_err();
    assert!(refused.contains("0.0.0.0:10001"), "{refused}");
}

#[test]
fn a_loss_is_accepted_by_the_flag_and_not_by_the_file() {
    let refused = config("accept-loss = true\n", Flags::default()).unwrap_err();
    assert!(refused.contains("accept-loss"), "{refused}");
    let accepted = config("", Flags { accept_loss: true, ..Flags::default() }).unwrap();
    assert!(matches!(accepted.storage, Storage::Directory { accept_loss: true, .. }));
}

#[test]
fn a_store_replaces_the_data_directory() {
    let address = |text: &str| StoreAddress::from(text.to_owned());
    let storage =
        |text: &str, seconds| Storage::Cluster { address: address(text), wait: Duration::from_secs(seconds) };
    let from_file = config("store = 'cassandra://a/k'\nstore-wait-seconds = 7", Flags::default()).unwrap();
    assert_eq!(from_file.storage, storage("cassandra://a/k", 7));
    // It has no default, because there is no data directory.
    assert_eq!(from_file.control, None);
    let flag = || Flags { store: Some(address("cassandra://b/k")), ..Flags::default() };
    for file in ["store = 'cassandra://a/k'", "data = '/d'", "in-memory = true", ""] {
        assert_eq!(config(file, flag()).unwrap().storage, storage("cassandra://b/k", 60), "{file}");
    }
    let asked_for = config("store = 'x'\ncontrol = '/s'", Flags::default()).unwrap();
    assert_eq!(asked_for.control, Some(("/s".into(), true)));
    let other = Flags { data: Some("/d".into()), ..Flags::default() };
    let other = config("store = 'cassandra://a/k'", other).unwrap().storage;
    assert!(matches!(other, Storage::Directory { path, .. } if path == Path::new("/d")));
}

#[test]
fn a_store_together_with_data_or_in_memory_is_refused() {
    let store = || Some(StoreAddress::from("cassandra://u:s3cr3t@a/k".to_owned()));
    for flags in [
        Flags { store: store(), data: Some("/d".into()), ..Flags::default() },
        Flags { store: store(), in_memory: true, ..Flags::default() },
    ] {
        let error = Config::from_flags(flags).unwrap_err().to_string();
        assert!(error.contains("leave out one"), "{error}");
    }
    for file in ["store = 'cassandra://u:s3cr3t@a/k'\ndata = '/d'", "store = 's3cr3t'\nin-memory = true"] {
        let error = config(file, Flags::default()).unwrap_err();
        assert!(error.contains("leave out one") && !error.contains("s3cr3t"), "{error}");
    }
    let shown = format!("{:?}", Flags { store: store(), ..Flags::default() });
    assert!(!shown.contains("s3cr3t"), "{shown}");
}

#[test]
fn bearer_tokens_take_an_issuer_and_its_keys() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let from = |file: String| config(&file, Flags::default()).map(|config| config.bearer);
    let half = "A".repeat(43);
    let key = format!(r#"{{"keys":[{{"kty":"EC","crv":"P-256","kid":"a","x":"{half}","y":"{half}"}}]}}"#);
    let (good, none) = (write("good", &key), write("none", r#"{"keys":[]}"#));
    let on = from(format!(
        "bearer-issuer = 'i'\nbearer-jwks = {good:?}\nbearer-audience = ['x', 'y']\nbearer-tenant = 't'\nbearer-over-http = true"
    ));
    let on = on.unwrap();
    assert!(on.trust.is_some());
    assert!(on.challenge().contains("login.microsoftonline.com/t/oauth2"));
    let off = Config::from_flags(Flags::default()).unwrap().bearer;
    assert!(off.trust.is_none());
    assert!(off.challenge().contains("login.microsoftonline.com/common/oauth2"));
    for (file, expected) in [
        ("bearer-issuer = 'i'".to_owned(), "bearer-issuer and bearer-jwks together"),
        (format!("bearer-jwks = {good:?}"), "bearer-issuer and bearer-jwks together"),
        (format!("bearer-issuer = 'i'\nbearer-jwks = {none:?}"), "holds no key"),
        ("bearer-issuer = 'i'\nbearer-jwks = '/nowhere'".to_owned(), "can't read bearer-jwks /nowhere"),
        ("bearer-tenant = 'a b'".to_owned(), "bearer-tenant is \"a b\""),
    ] {
        let error = from(file).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn throttling_is_off_or_azures_rates_or_given_rates() {
    let of =
        |text: &str| config(&format!("throttle = '{text}'"), Flags::default()).map(|config| config.throttle);
    assert_eq!(Config::from_flags(Flags::default()).unwrap().throttle, None);
    assert_eq!(of("off"), Ok(None));
    assert_eq!(of("azure"), Ok(Some(Targets { account: 20_000, resource: 2_000 })));
    assert_eq!(of("50/7"), Ok(Some(Targets { account: 50, resource: 7 })));
    for text in ["", "fast", "5", "0/1", "1/0", "-1/1", "1/2/3"] {
        assert!(of(text).unwrap_err().contains("20000/2000"), "{text}");
    }
}

#[test]
fn other_machines_reach_the_development_account_only_with_its_flag() {
    let from = |file: &str| config(file, Flags::default());
    for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"] {
        assert!(from(&format!("listen = '{address}'")).unwrap().development, "{address}");
    }
    for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "name:1"] {
        assert!(from(&format!("listen = '{address}'")).unwrap_err().contains("--development"), "{address}");
        let asked = from(&format!("listen = '{address}'\ndevelopment = true")).unwrap();
        assert!(asked.development, "{address}");
    }
    let accounts = "development = true\n[[account]]\nname = 'one'\nkey = 'AAAAAAAAAAAAAAAAAAAAAA=='";
    assert!(from(accounts).unwrap_err().contains("leave out one"));
}

#[test]
fn https_needs_a_certificate() {
    let from = |file: &str| config(file, Flags::default());
    let files = CertificateSource::Files(CertificateFiles { certificate: "/c".into(), key: "/k".into() });
    let both = from("tls-cert = '/c'\ntls-key = '/k'\ntls-listen = 'h:1'\ndevelopment = true").unwrap();
    let tls = |listen: &str, source| Tls {
        listen: listen.to_owned(),
        queue_listen: Some(QUEUE_TLS_LISTEN.to_owned()),
        blob_listen: Some(BLOB_TLS_LISTEN.to_owned()),
        source,
    };
    assert_eq!((both.listen.is_some(), both.tls), (true, Some(tls("h:1", files))));
    let alone = from("dev-cert = '/d'\nno-http = true").unwrap();
    let source = CertificateSource::Development("/d".into());
    assert_eq!((alone.listen, alone.tls), (None, Some(tls(TLS_LISTEN, source))));
    assert!(from("tls-cert = '/c'").unwrap_err().contains("tls-key"));
    assert!(from("no-http = true").unwrap_err().contains("nothing to serve"));
}

#[test]
fn mistakes_are_named_without_showing_secrets() {
    let unknown = config("lisen = 'x'", Flags::default()).unwrap_err();
    assert!(unknown.contains("lisen") && unknown.contains("partita.toml"), "{unknown}");
    let both = config(
        "[[account]]\nname = 'abc'\nkey = 'AAAAAAAAAAAAAAAAAAAAAA=='\nkey-file = '/k'",
        Flags::default(),
    )
    .unwrap_err();
    assert_eq!(both, "account abc has both key and key-file; it takes one of them");
    let bad = config("[[account]]\nname = 'abc'\nkey = 'secret!'", Flags::default()).unwrap_err();
    assert_eq!(bad, "key 1 of account abc is not Base64; copy the whole of it");
    assert_eq!(
        config("cache-mib = 0", Flags::default()).unwrap_err(),
        "cache-mib is 0; it must be at least 1"
    );
}

#[test]
fn a_collector_has_an_address_and_a_sample_is_a_part() {
    let watching = |endpoint: &str, sample| {
        let flags =
            Flags { otlp_endpoint: Some(endpoint.into()), otlp_sample: Some(sample), ..Flags::default() };
        config("", flags).map(|config| config.watching.traces.map(|traces| traces.endpoint.to_string()))
    };
    assert_eq!(watching("http://c:4318", 0.5).unwrap().as_deref(), Some("http://c:4318/v1/traces"));
    assert_eq!(watching("", 1.0).unwrap(), None);
    let refusal = |endpoint, sample| watching(endpoint, sample).expect_err("it is refused");
    assert!(refusal("c:4318", 1.0).contains("otlp-endpoint"));
    for wrong in [-0.1, 1.1, f64::NAN] {
        assert!(refusal("http://c", wrong).contains("otlp-sample"), "{wrong}");
    }
}
