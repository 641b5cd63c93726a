//! The two forms a file of entities has.

use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One entity a line, in the service's own JSON
    Jsonl,
    /// Columns, as Azure Storage Explorer writes them
    Csv,
}

impl Format {
    /// By a file's ending; JSON lines if that says nothing.
    pub fn of_path(path: &Path) -> Self {
        Self::of_ending(path).unwrap_or(Self::Jsonl)
    }

    /// `None` if the ending is of neither.
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
