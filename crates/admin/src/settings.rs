//! `GET /api/settings`: what is in force, and where it was set.

use serde::Serialize;

/// Where a setting was set. The first of these that names it wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingSource {
    Flag,
    Variable,
    File,
    Default,
}

/// A setting in force. The program leaves out what is secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub name: String,
    /// `None` if it has no value.
    pub value: Option<String>,
    pub from: SettingSource,
}

#[derive(Debug, Serialize)]
pub(crate) struct SettingsShown<'a> {
    pub settings: &'a [Setting],
}
