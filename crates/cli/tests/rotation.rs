//! Rotation of keys while the server runs.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support::{self, Client, Partita};

const OLD: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const NEW: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

fn status(server: &Partita, key: &str) -> u16 {
    let accept = [("Accept", "application/json")];
    Client::new(server.address, "shop", key).send("GET", "/Tables", &accept, b"").status
}

fn hang_up(server: &Partita) {
    testing::signal(server.process_id(), "HUP");
}

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    testing::wait_until(what, || holds().then_some(()));
}

#[test]
fn sighup_rotates_keys_from_files_and_a_bad_file_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let [config, key, key2, log] = ["c.toml", "k1", "k2", "log"].map(|name| directory.path().join(name));
    std::fs::write(&key, format!("{OLD}\n")).unwrap();
    std::fs::write(&key2, NEW).unwrap();
    let text = |lines: &str| format!("in-memory = true\n[[account]]\nname = 'shop'\n{lines}");
    std::fs::write(&config, text(&format!("key-file = {key:?}\n"))).unwrap();
    let server = Partita::logging_to(&log, "error", &["--config", &config.display().to_string()]);
    assert_eq!((status(&server, OLD), status(&server, NEW)), (200, 403));

    std::fs::write(&config, text(&format!("key-file = {key:?}\nkey2-file = {key2:?}\n"))).unwrap();
    hang_up(&server);
    wait_for("both keys sign", || status(&server, NEW) == 200);
    assert_eq!(status(&server, OLD), 200);

    std::fs::write(&key, NEW).unwrap();
    hang_up(&server);
    wait_for("the old key is out", || status(&server, OLD) == 403);

    std::fs::write(&config, "nonsense = 1").unwrap();
    hang_up(&server);
    let said = || std::fs::read_to_string(&log).unwrap();
    wait_for("the bad file is noticed", || said().contains("accounts and keys are unchanged"));
    assert_eq!(
        (status(&server, OLD), status(&server, NEW)),
        (403, 200),
        "a bad file leaves the keys as they were"
    );
}

#[test]
fn reload_prints_its_outcome() {
    let directory = tempfile::tempdir().unwrap();
    let (config, data) = (directory.path().join("c.toml"), directory.path().join("data"));
    let text = |key: &str| format!("data = {data:?}\n[[account]]\nname = 'shop'\nkey = '{key}'\n");
    std::fs::write(&config, text(OLD)).unwrap();
    let server = Partita::start(&["--config", &config.display().to_string()]);
    let reload = || {
        let output = support::binary().args(["reload", "--data"]).arg(&data).output().unwrap();
        let shown = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(shown).unwrap())
    };

    std::fs::write(&config, text(NEW)).unwrap();
    assert_eq!(reload(), (true, "reloaded accounts and keys: shop\n".to_owned()));
    // The answer comes after the reload, so the test need not wait.
    assert_eq!((status(&server, OLD), status(&server, NEW)), (403, 200));

    std::fs::write(&config, "nonsense = 1").unwrap();
    let (done, shown) = reload();
    assert!(!done && shown.contains("are unchanged") && shown.contains("nonsense"), "{shown}");
    assert_eq!(status(&server, NEW), 200);

    assert!(server.stop().success());
    assert!(!data.join("control").exists(), "the socket goes with its server");
    let (done, shown) = reload();
    assert!(!done && shown.contains("no server listens at") && shown.contains("--data"), "{shown}");
}

#[test]
fn the_control_socket_of_a_killed_server_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    Partita::in_directory(directory.path()).kill();
    assert!(directory.path().join("control").exists());
    let server = Partita::in_directory(directory.path());
    let output = support::binary().args(["reload", "--data"]).arg(directory.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(server.stop().success());
}

/// A file without accounts is a mistake. It must not make the server accept the public key.
#[test]
fn a_reload_without_accounts_keeps_the_old_ones() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("c.toml");
    let socket = directory.path().join("s").display().to_string();
    let accounts = format!("[[account]]\nname = 'shop'\nkey = '{OLD}'\n");
    std::fs::write(&config, format!("in-memory = true\n{accounts}")).unwrap();
    let server = Partita::start(&["--config", &config.display().to_string(), "--control", &socket]);
    let reload = || {
        let output = support::binary().args(["reload", "--control", &socket]).output().unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    std::fs::write(&config, "in-memory = true\n").unwrap();
    let (done, said) = reload();
    assert!(!done && said.contains("no account is configured any more"), "{said}");
    let development = server.client().send("GET", "/Tables", &[("Accept", "application/json")], b"");
    assert_eq!((status(&server, OLD), development.status), (200, 404));
    std::fs::write(&config, format!("in-memory = true\n{}", accounts.replace(OLD, NEW))).unwrap();
    assert!(reload().0);
    assert_eq!((status(&server, OLD), status(&server, NEW)), (403, 200));
}
