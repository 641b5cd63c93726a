//! The two formats of a file of entities.

use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    /// One entity per line, in the service's own JSON
    Jsonl,
    /// Columns, as Azure Storage Explorer writes them
    Csv,
}

impl FileFormat {
    /// By the file's extension; JSON lines for an unknown one.
    pub fn of_path(path: &Path) -> Self {
        Self::of_ending(path).unwrap_or(Self::Jsonl)
    }

    /// `None` if the extension is unknown.
    pub fn of_ending(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?;
        [Self::Jsonl, Self::Csv].into_iter().find(|format| ending.eq_ignore_ascii_case(format.ending()))
    }

    pub fn ending(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
        }
    }
}
