//! `partita check`: verifies a store; with `--salvage`, writes everything readable to a new store.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::config;
use blob_service::content::ContentNaming;
use clap::Args;
use engine_embedded::{
    Damage, DamageEdge, ObjectCounts, OpenError, Report, SalvageError, SalvageReport, TableCount,
};
use serde_json::{Value, json};
use thiserror::Error;

use super::progress::{ProgressLine, size};

#[derive(Args, Debug)]
pub struct CheckFlags {
    /// The store to check: a data directory that no server has open, or a backup
    #[arg(long, value_name = "DIRECTORY", env = "PARTITA_DATA", default_value = config::DATA)]
    data: PathBuf,
    /// Save everything that is readable into a new store in this directory
    #[arg(long, value_name = "NEWDIRECTORY")]
    salvage: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub const HELP: &str = "\
Reads every byte of the store and changes nothing. Exit status: 0 sound, 1 damaged, 2 could not be checked.";

const SOUND: u8 = 0;
const DAMAGED: u8 = 1;
/// The exit status for a `CheckError`.
pub const UNCHECKED: u8 = 2;

/// Why a store was not checked.
#[derive(Debug, Error)]
pub enum CheckError {
    #[error(
        "the data directory {} is in use by a running server; stop it, or check a backup of it: `partita \
         backup` makes one and checks it",
        .directory.display()
    )]
    InUse { directory: PathBuf },
    #[error(transparent)]
    Open(OpenError),
    #[error(transparent)]
    Salvage(SalvageError),
}

impl From<OpenError> for CheckError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::InUse { directory } => Self::InUse { directory },
            other => Self::Open(other),
        }
    }
}

impl From<SalvageError> for CheckError {
    fn from(error: SalvageError) -> Self {
        match error {
            SalvageError::Source(error) => error.into(),
            other => Self::Salvage(other),
        }
    }
}

impl CheckFlags {
    /// Whether to print JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }
}

pub fn run(flags: &CheckFlags) -> Result<ExitCode, CheckError> {
    let (report, salvaged) = match &flags.salvage {
        None => (check(&flags.data, "checking")?, None),
        Some(target) => {
            let salvaged = salvage(&flags.data, target)?;
            (salvaged.report.clone(), Some(salvaged))
        }
    };
    if flags.json {
        println!("{:#}", as_json(&report, salvaged.as_ref()));
    } else {
        print!("{}", as_text(&report));
        if let (Some(salvaged), Some(target)) = (&salvaged, &flags.salvage) {
            print!("{}", salvaged_text(salvaged, target));
        } else if !report.is_sound() {
            println!("Restore a backup, or save what is readable: partita check --salvage NEWDIRECTORY");
        }
    }
    Ok(if report.is_sound() { SOUND } else { DAMAGED }.into())
}

/// Prints its progress.
pub fn check(directory: &Path, what: &'static str) -> Result<Report, CheckError> {
    let mut progress = ProgressLine::new(what);
    Ok(engine_embedded::check(directory, &ContentNaming, &mut shown(&mut progress))?)
}

fn salvage(directory: &Path, target: &Path) -> Result<SalvageReport, CheckError> {
    let mut progress = ProgressLine::new("salvaging");
    Ok(engine_embedded::salvage(directory, target, &ContentNaming, &mut shown(&mut progress))?)
}

fn shown(progress: &mut ProgressLine) -> impl FnMut(engine_embedded::Progress) {
    |at| progress.show(at.bytes, at.bytes_total, &format!(", {} entities", at.rows))
}

fn as_text(report: &Report) -> String {
    let mut text = String::new();
    let names: Vec<String> = report.tables.iter().map(TableCount::place).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    for (name, table) in names.iter().zip(&report.tables) {
        let entities = format!("{} entities", table.entities);
        // Writing to a String can't fail.
        let _ = writeln!(text, "{name:width$}  {entities:>20}  {:>10}", size(table.bytes));
    }
    let _ = writeln!(
        text,
        "{} entities in {} tables, {} in {} files, {} commits",
        report.entities(),
        report.tables.len(),
        size(report.file_bytes),
        report.files,
        report.commits,
    );
    if report.objects.objects > 0 {
        let _ = writeln!(text, "{}", objects_text(&report.objects));
    }
    if report.dropped_rows > 0 {
        let _ = writeln!(text, "{} rows of dropped tables still take space", report.dropped_rows);
    }
    text.push_str(&damage_text(report));
    text
}

fn objects_text(counts: &ObjectCounts) -> String {
    let mut text = format!("{} objects with {} of blobs' content", counts.objects, size(counts.bytes));
    if counts.unnamed > 0 {
        text.push_str(&format!(
            "; {} of them, {}, belong to no blob, and the server will remove them",
            counts.unnamed,
            size(counts.unnamed_bytes)
        ));
    }
    text
}

/// One line for each damaged place, or "Sound.".
pub fn damage_text(report: &Report) -> String {
    if report.is_sound() {
        return "Sound.\n".to_owned();
    }
    let count = report.damage.len() as u64 + report.damage_unlisted;
    let places = if count == 1 { "place" } else { "places" };
    let mut text = format!("Damaged, in {count} {places}:\n");
    for damage in &report.damage {
        let _ = writeln!(text, "  {damage}");
    }
    if report.damage_unlisted > 0 {
        let _ = writeln!(text, "  and {} more", report.damage_unlisted);
    }
    if report.doubtful_rows > 0 {
        let _ = writeln!(
            text,
            "{} entities at these places were read from other files, and may be older than the lost versions",
            report.doubtful_rows
        );
    }
    text
}

fn salvaged_text(salvaged: &SalvageReport, target: &Path) -> String {
    let mut text = format!("{} entities saved to {}\n", salvaged.entities, target.display());
    for table in &salvaged.named {
        let _ = writeln!(
            text,
            "  {} of them are in {}: the name of their table is lost, or the table was dropped",
            table.entities,
            table.place()
        );
    }
    let _ = writeln!(text, "Serve it with: partita serve --data {}", target.display());
    text
}

fn as_json(report: &Report, salvaged: Option<&SalvageReport>) -> Value {
    let tables = report.tables.iter().map(|table| {
        json!({
            "account": table.account,
            "service": table.service.name(),
            "table": table.table,
            "entities": table.entities,
            "bytes": table.bytes,
        })
    });
    let mut value = json!({
        "sound": report.is_sound(),
        "entities": report.entities(),
        "bytes": report.bytes(),
        "files": report.files,
        "fileBytes": report.file_bytes,
        "commits": report.commits,
        "objects": {
            "count": report.objects.objects,
            "bytes": report.objects.bytes,
            "unnamed": report.objects.unnamed,
            "unnamedBytes": report.objects.unnamed_bytes,
        },
        "droppedRows": report.dropped_rows,
        "doubtfulEntities": report.doubtful_rows,
        "tables": tables.collect::<Vec<_>>(),
        "damage": report.damage.iter().map(damage_json).collect::<Vec<_>>(),
        "damageUnlisted": report.damage_unlisted,
    });
    if let Some(salvaged) = salvaged {
        let named = salvaged.named.iter().map(
            |table| json!({ "account": table.account, "table": table.table, "entities": table.entities }),
        );
        value["salvaged"] =
            json!({ "entities": salvaged.entities, "namedTables": named.collect::<Vec<_>>() });
    }
    value
}

fn damage_json(damage: &Damage) -> Value {
    let place = |place: &Option<DamageEdge>| {
        place.as_ref().map(|place| {
            let row = place.row();
            json!({
                "account": row.account,
                "table": row.table,
                "partitionKey": row.partition_key,
                "rowKey": row.row_key,
                "lost": matches!(place, DamageEdge::Lost(_)),
            })
        })
    };
    json!({
        "file": damage.file,
        "detail": damage.detail,
        "losesEntities": damage.loses_rows,
        "after": place(&damage.after),
        "before": place(&damage.before),
    })
}
