//! The settings in force, for the console: each flag's value, and where it was set. What is secret is not shown.

use admin::{Setting, SettingSource};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args as _};

use super::{Config, Flags, Storage};

const HIDDEN: &str = "(hidden)";

/// What flags and variables gave, by the names of the flags.
#[derive(Clone, Debug, Default)]
pub struct GivenSettings(Vec<Setting>);

impl GivenSettings {
    pub fn of(matches: &ArgMatches) -> Self {
        let given = arguments().into_iter().filter_map(|argument| {
            let id = argument.get_id().as_str();
            let from = match matches.value_source(id)? {
                ValueSource::CommandLine => SettingSource::Flag,
                ValueSource::EnvVariable => SettingSource::Variable,
                _ => return None,
            };
            let texts =
                matches.get_raw(id).into_iter().flatten().map(|text| text.to_string_lossy().into_owned());
            Some(shown(&argument, from, texts.collect()))
        });
        Self(given.collect())
    }
}

/// Every setting, in the order of the flags.
pub fn settings(config: &Config, flags: &Flags) -> Vec<Setting> {
    let file = flags.config.as_deref().and_then(|path| std::fs::read_to_string(path).ok());
    // `Config` was made of the same file, so that it can be read.
    let file: toml::Table = file.and_then(|text| text.parse().ok()).unwrap_or_default();
    let all = arguments().into_iter().map(|argument| {
        let name = name(&argument);
        let mut setting = match flags.given.0.iter().find(|given| given.name == name) {
            Some(given) => given.clone(),
            None => match file.get(&name) {
                Some(value) => shown(&argument, SettingSource::File, texts(value)),
                None => Setting {
                    value: default_value(config, &name),
                    name: name.clone(),
                    from: SettingSource::Default,
                },
            },
        };
        match (name.as_str(), &config.storage) {
            // Flags and variables that name another place win over the file.
            ("store", Storage::Memory | Storage::Directory { .. })
            | ("data", Storage::Memory | Storage::Cluster { .. }) => setting.value = None,
            // Keys are hidden; names are not.
            ("account", _) => {
                let names = config.accounts.iter().map(|account| account.name.as_str());
                setting.value = Some(names.collect::<Vec<_>>().join(", "));
            }
            _ => {}
        }
        setting
    });
    all.collect()
}

fn arguments() -> Vec<Arg> {
    let command = Flags::augment_args(clap::Command::new("serve"));
    command.get_arguments().cloned().collect()
}

fn name(argument: &Arg) -> String {
    argument.get_long().unwrap_or_else(|| argument.get_id().as_str()).to_owned()
}

/// A flag whose variable the help does not show is secret.
fn shown(argument: &Arg, from: SettingSource, texts: Vec<String>) -> Setting {
    let value = match argument.is_hide_env_values_set() {
        true => HIDDEN.to_owned(),
        false if texts.is_empty() => "true".to_owned(),
        false => texts.iter().map(|text| without_password(text)).collect::<Vec<_>>().join(", "),
    };
    Setting { name: name(argument), value: Some(value), from }
}

/// A URL may hold a name and a password before its host.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{HIDDEN}{}", &rest[at..]),
        None => text.to_owned(),
    }
}

fn texts(value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::String(text) => vec![text.clone()],
        toml::Value::Array(values) => values.iter().flat_map(texts).collect(),
        other => vec![other.to_string()],
    }
}

/// What holds if nothing is set. `None` if that is nothing.
fn default_value(config: &Config, name: &str) -> Option<String> {
    let path = |path: &std::path::Path| path.display().to_string();
    let mib = |bytes: usize| (bytes / 1024 / 1024).to_string();
    let off = || Some(super::OFF.to_owned());
    match name {
        "listen" => config.listen.clone(),
        "queue-listen" => config.queue_listen.clone().or_else(off),
        "blob-listen" => config.blob_listen.clone().or_else(off),
        "blob-public-access" => Some(if config.blob_public_access { "on" } else { super::OFF }.to_owned()),
        "tls-listen" => config.tls.as_ref().map(|tls| tls.listen.clone()),
        "queue-tls-listen" => config.tls.as_ref().and_then(|tls| tls.queue_listen.clone()),
        "blob-tls-listen" => config.tls.as_ref().and_then(|tls| tls.blob_listen.clone()),
        "admin" => config.admin.as_ref().map(|admin| admin.listen.clone()).or_else(off),
        "data" => match &config.storage {
            Storage::Directory { path: data, .. } => Some(path(data)),
            Storage::Memory | Storage::Cluster { .. } => None,
        },
        "cache-mib" => match &config.storage {
            Storage::Directory { cache_bytes, .. } => Some(mib(*cache_bytes)),
            Storage::Memory | Storage::Cluster { .. } => None,
        },
        "store-wait-seconds" => match &config.storage {
            Storage::Cluster { wait, .. } => Some(wait.as_secs().to_string()),
            Storage::Memory | Storage::Directory { .. } => None,
        },
        "control" => config.control.as_ref().map(|(socket, _)| path(socket)),
        "bearer-tenant" => Some(config.bearer.tenant.clone()),
        "throttle" => off(),
        "extensions" => Some(if config.extensions { "on" } else { super::OFF }.to_owned()),
        "request-mib" => Some(mib(config.bounds.memory_bytes)),
        "max-connections" => Some(config.bounds.connections.to_string()),
        "idle-seconds" => Some(config.bounds.idle.as_secs().to_string()),
        "shutdown-seconds" => Some(config.bounds.shutdown.as_secs().to_string()),
        "log-level" => Some(config.log_level.clone()),
        "log-file" => config.log_file.as_ref().map(|path| path.display().to_string()),
        "log-format" => Some(format!("{:?}", config.log_format).to_lowercase()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches as _};

    fn shown_with(file: &str, arguments: &[&str]) -> Vec<Setting> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("partita.toml");
        std::fs::write(&path, file).unwrap();
        let path = path.display().to_string();
        let command = Flags::augment_args(Command::new("serve"));
        let all = ["serve", "--config", &path].into_iter().chain(arguments.iter().copied());
        let matches = command.try_get_matches_from(all).unwrap();
        let mut flags = Flags::from_arg_matches(&matches).unwrap();
        flags.given = GivenSettings::of(&matches);
        settings(&Config::from_flags(flags.clone()).unwrap(), &flags)
    }

    fn check(all: &[Setting], name: &str, value: Option<&str>, from: SettingSource) {
        let setting = all.iter().find(|setting| setting.name == name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!((setting.value.as_deref(), setting.from), (value, from), "{name}");
    }

    #[test]
    fn each_setting_is_shown_with_its_source() {
        let all = shown_with(
            "request-mib = 64\nlisten = '127.0.0.1:7'\n[[account]]\nname = 'shop'\nkey = 'AAAAAAAAAAAAAAAAAAAAAA=='",
            &["--max-connections", "5", "--listen", "127.0.0.1:8", "--in-memory"],
        );
        check(&all, "max-connections", Some("5"), SettingSource::Flag);
        check(&all, "listen", Some("127.0.0.1:8"), SettingSource::Flag);
        check(&all, "in-memory", Some("true"), SettingSource::Flag);
        check(&all, "request-mib", Some("64"), SettingSource::File);
        check(&all, "idle-seconds", Some("120"), SettingSource::Default);
        check(&all, "admin", Some("127.0.0.1:10004"), SettingSource::Default);
        check(&all, "account", Some("shop"), SettingSource::File);
        check(&all, "data", None, SettingSource::Default);
        assert_eq!(all.len(), arguments().len(), "none is left out");
    }

    #[test]
    fn secrets_are_not_shown() {
        let all = shown_with(
            "",
            &[
                "--store",
                "cassandra://u:s3cr3t@a/k",
                "--admin-token",
                "s3cr3ts3cr3ts3cr3t",
                "--account",
                "shop:s3cr3ts3cr3tAAAAAAAAAA==",
            ],
        );
        assert!(!format!("{all:?}").contains("s3cr3t"), "{all:?}");
        check(&all, "store", Some(HIDDEN), SettingSource::Flag);
        check(&all, "admin-token", Some(HIDDEN), SettingSource::Flag);
        check(&all, "account", Some("shop"), SettingSource::Flag);
        let all = shown_with(
            "store = 'cassandra://u:s3cr3t@a/k'\n\
             [[account]]\nname = 'shop'\nkey = 's3cr3ts3cr3tAAAAAAAAAA=='",
            &[],
        );
        assert!(!format!("{all:?}").contains("s3cr3t"), "{all:?}");
        check(&all, "store", Some(HIDDEN), SettingSource::File);
        assert_eq!(without_password("http://u:s3cr3t@h:1/x"), "http://(hidden)@h:1/x");
        assert_eq!(without_password("https://h/a@b"), "https://h/a@b");
    }
}
