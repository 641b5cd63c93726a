//! Where the console, the metrics and the administration are served, and who may see them.

use std::path::PathBuf;

use admin::{AdminToken, HostName};

use super::{OFF, SettingsError, is_loopback};

const LISTEN: &str = "127.0.0.1:10004";
const FREE_PORT: &str = "127.0.0.1:0";

#[derive(Debug)]
pub struct AdminConfig {
    pub listen: String,
    /// A setting names the address, so it must bind; the default one is best-effort.
    pub asked_for: bool,
    /// With the server's certificate. Only a loopback address is plain HTTP, and without `--no-http`.
    pub https: bool,
    pub token: Option<AdminToken>,
    pub hosts: Vec<HostName>,
}

/// As flags, variables and the file name them.
#[derive(Debug)]
pub(super) struct AdminSettings {
    pub address: Option<String>,
    pub token_file: Option<PathBuf>,
    pub token: Option<String>,
    pub hosts: Vec<String>,
}

impl AdminSettings {
    /// `of_tables`: where tables are served. A server of tables that takes any free port takes one here too. With
    /// `https_only`, a loopback address is HTTPS as well.
    pub fn choose(
        self,
        of_tables: &str,
        has_certificate: bool,
        https_only: bool,
    ) -> Result<Option<AdminConfig>, SettingsError> {
        let (listen, asked_for) = match self.address {
            Some(address) if address == OFF => return Ok(None),
            Some(address) => (address, true),
            None if of_tables.ends_with(":0") => (FREE_PORT.to_owned(), false),
            None => (LISTEN.to_owned(), false),
        };
        let token = match (self.token_file, self.token) {
            (Some(path), _) => Some(AdminToken::read(&path)?),
            (None, Some(text)) => Some(AdminToken::new(&text)?),
            (None, None) => None,
        };
        let hosts = self.hosts.iter().filter(|name| !name.trim().is_empty());
        let hosts = hosts.map(|name| HostName::parse(name.trim())).collect::<Result<_, _>>()?;
        let is_for_others = !is_loopback(&listen);
        if is_for_others && (!has_certificate || token.is_none()) {
            return Err(SettingsError::AdminForOthers { address: listen });
        }
        let https = is_for_others || https_only;
        Ok(Some(AdminConfig { listen, asked_for, https, token, hosts }))
    }
}
