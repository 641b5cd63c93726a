use super::*;

fn asked(program: &str, arguments: &str, accounts: Option<&str>) -> Result<String, AzuriteError> {
    let service = service_of(OsStr::new(program)).expect("one of Azurite's names");
    let flags = read(arguments).expect("Azurite's flags");
    let variable = |name: &str| accounts.filter(|_| name == ACCOUNTS).map(str::to_owned);
    let arguments = translate(service, flags, variable)?.arguments;
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    Ok(words.join(" "))
}

fn read(arguments: &str) -> Result<AzuriteFlags, clap::Error> {
    AzuriteFlags::read(std::iter::once("azurite").chain(arguments.split_whitespace()).map(OsString::from))
}

#[test]
fn only_azurites_names_are_azurite() {
    for (name, is_azurite) in [
        ("azurite", true),
        ("/usr/bin/azurite", true),
        ("./azurite-blob", true),
        ("azurite.exe", true),
        ("partita", false),
        ("azurite-file", false),
        ("", false),
    ] {
        assert_eq!(service_of(OsStr::new(name)).is_some(), is_azurite, "{name}");
    }
}

#[test]
fn flags_of_azurite_become_flags_of_serve() {
    let all = "--listen 127.0.0.1:10002 --queue-listen 127.0.0.1:10001 --blob-listen 127.0.0.1:10000";
    let open = "--listen 0.0.0.0:10002 --queue-listen 0.0.0.0:10001 --blob-listen 0.0.0.0:10000";
    let cases = [
        ("azurite", "", None, format!("{all} --development --blob-public-access on --data partita-data")),
        (
            "azurite",
            "-l /data --blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0",
            None,
            format!("{open} --development --blob-public-access on --data /data/partita-data"),
        ),
        ("azurite", "--inMemoryPersistence --loose", None, format!("{all} --development --blob-public-access on --in-memory")),
        (
            "azurite",
            "--silent --skipApiVersionCheck --disableProductStyleUrl --disableTelemetry",
            None,
            format!("{all} --log-level warn --development --blob-public-access on --data partita-data"),
        ),
        (
            "azurite",
            "-s -d debug.log --blobKeepAliveTimeout 7 --tableKeepAliveTimeout 9",
            Some("shop:a2V5;other:a2V5"),
            format!(
                "{all} --log-file debug.log --log-level debug --idle-seconds 9 --account shop:a2V5;other:a2V5 \
                 --blob-public-access on --data partita-data"
            ),
        ),
        (
            "azurite",
            "--cert c.pem --key k.pem --tableHost ::1",
            None,
            "--tls-listen [::1]:10002 --queue-tls-listen 127.0.0.1:10001 --blob-tls-listen 127.0.0.1:10000 \
             --tls-cert c.pem --tls-key k.pem --development --no-http --blob-public-access on --data partita-data"
                .to_owned(),
        ),
        (
            "azurite-blob",
            "--blobHost 0.0.0.0 --blobPort 0",
            None,
            "--listen 127.0.0.1:0 --queue-listen off --blob-listen 0.0.0.0:0 --development --blob-public-access on --data partita-data"
                .to_owned(),
        ),
        (
            "azurite-queue",
            "",
            None,
            "--listen 127.0.0.1:0 --queue-listen 127.0.0.1:10001 --blob-listen off --development \
             --blob-public-access on --data partita-data"
                .to_owned(),
        ),
        (
            "azurite-table",
            "",
            None,
            "--listen 127.0.0.1:10002 --queue-listen off --blob-listen off --development --blob-public-access on --data partita-data"
                .to_owned(),
        ),
    ];
    for (program, arguments, accounts, expected) in cases {
        let expected = format!("partita serve --azurite-lines {expected}");
        assert_eq!(asked(program, arguments, accounts), Ok(expected), "{program} {arguments}");
    }
}

#[test]
fn what_can_not_be_kept_is_refused() {
    assert_eq!(asked("azurite", "--cert c.pfx --pwd x", None), Err(AzuriteError::Pfx));
    assert_eq!(asked("azurite", "--cert c.pem", None), Err(AzuriteError::NoKey));
    for empty in ["", " ; "] {
        assert_eq!(asked("azurite", "", Some(empty)), Err(AzuriteError::NoAccounts));
    }
    let flags = read("").expect("no flags");
    let database = |name: &str| (name == DATABASE).then(|| "mysql://host".to_owned());
    assert_eq!(translate(None, flags, database), Err(AzuriteError::Database));
    assert!(read("--inMemoryPersistence -l x").is_err());
}

#[test]
fn unsigned_tokens_are_not_accepted_silently() {
    let flags = read("--oauth basic").expect("Azurite's flags");
    let translated = translate(None, flags, |_| None).expect("translated");
    assert_eq!(translated.remarks.len(), 1);
}

#[test]
fn the_first_of_repeated_flags_counts() {
    let flags =
        read("--blobPort 1 --blobPort 2 -s --silent --blobHost a --blobHost b --loose -L").expect("flags");
    assert_eq!((flags.blob_port, flags.blob_host.as_str(), flags.silent, flags.loose), (1, "a", true, true));
}

#[test]
fn a_switch_may_have_a_value() {
    let flags = read("--silent=false --inMemoryPersistence=true --loose true").expect("flags");
    assert!(!flags.silent && flags.in_memory_persistence && flags.loose && !flags.disable_telemetry);
    assert_eq!(flags.words, ["true"]);
}

#[test]
fn the_version_and_the_help_are_asked_for_as_azurites() {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    for (arguments, expected) in [
        ("-v", DisplayVersion),
        ("-V", DisplayVersion),
        ("--version", DisplayVersion),
        ("version", DisplayVersion),
        ("-h", DisplayHelp),
        ("help", DisplayHelp),
    ] {
        assert_eq!(read(arguments).expect_err(arguments).kind(), expected, "{arguments}");
    }
}

#[test]
fn a_password_is_only_for_a_certificate_without_a_key() {
    let pem = asked("azurite", "--cert c.pem --key k.pem --pwd x", None).expect("PEM");
    assert!(pem.contains("--tls-cert c.pem --tls-key k.pem"), "{pem}");
    assert!(!asked("azurite", "--key k.pem --pwd x", None).expect("HTTP").contains("tls"));
}

#[test]
fn a_variable_decides_whether_containers_can_be_public() {
    let flags = read("").expect("no flags");
    let variable = |name: &str| (name == PUBLIC_ACCESS).then(|| "off".to_owned());
    let translated = translate(None, flags, variable).expect("translated");
    assert!(!translated.arguments.contains(&"--blob-public-access".into()));
}
