//! Why a command failed. `main` turns it into text and an exit status.

use std::process::ExitCode;

use bench::BenchError;
use serde_json::json;
use thiserror::Error;
use transfer::{BlobError, ExportError, ImportError, QueueError, TableError};

use admin::sas::SasError;

use crate::azurite::AzuriteError;
use crate::control::AskError;
use crate::serve::ServeError;
use crate::upkeep::backup::BackupError;
use crate::upkeep::check::{self, CheckError};
use crate::upkeep::health::HealthError;
use crate::upkeep::manual::ManualError;
use crate::upkeep::marks::MarkError;
use crate::upkeep::migrate::MigrateError;
use crate::upkeep::restore::RestoreError;
use crate::upkeep::status::StatusError;
use crate::upkeep::store::StoreError;

#[derive(Debug, Error)]
pub enum Failure {
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Azurite(#[from] AzuriteError),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Mark(#[from] MarkError),
    #[error("{source}")]
    Check { source: CheckError, as_json: bool },
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Health(#[from] HealthError),
    #[error(transparent)]
    Manual(#[from] ManualError),
    #[error(transparent)]
    Sas(#[from] SasError),
    #[error(transparent)]
    Bench(#[from] BenchError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Blob(#[from] BlobError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Status(#[from] StatusError),
}

impl Failure {
    /// Prints it, and returns the exit status.
    pub fn report(&self) -> ExitCode {
        if let Self::Check { as_json: true, .. } = self {
            println!("{}", json!({ "error": self.to_string() }));
        }
        eprintln!("partita: {self}");
        match self {
            Self::Check { .. } => check::UNCHECKED.into(),
            _ => ExitCode::FAILURE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;
    use std::io;

    use store::{Fault, FaultKind};

    use crate::upkeep::checkpoint::CheckpointError;

    fn chain(failure: &Failure) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let first: &(dyn Error + 'static) = failure;
        std::iter::successors(Some(first), |error| (*error).source())
    }

    #[test]
    fn a_failure_keeps_its_sources() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let of_system: [Failure; 3] = [
            BackupError::Unwritten { backups: "/backups".into(), source: full() }.into(),
            RestoreError::Unwritten { data: "/data".into(), source: full() }.into(),
            MarkError::Unwritable { path: "/data/MOVED".into(), source: full() }.into(),
        ];
        for failure in &of_system {
            let found = chain(failure).find_map(|error| error.downcast_ref::<io::Error>());
            assert_eq!(found.map(io::Error::kind), Some(io::ErrorKind::StorageFull), "{failure}");
            assert!(failure.to_string().contains("/") && failure.to_string().contains(';'), "{failure}");
        }
        let fault = Fault::disk("could not make a checkpoint").because(full());
        let checkpoint: Failure = BackupError::from(CheckpointError::Fault(fault.clone())).into();
        assert_eq!(checkpoint.to_string(), fault.to_string());
        assert!(chain(&checkpoint).any(|error| error.is::<io::Error>()), "{checkpoint:?}");
        let served: Failure = ServeError::Store { source: fault }.into();
        let found = chain(&served).find_map(|error| error.downcast_ref::<Fault>());
        assert_eq!(found.map(Fault::kind), Some(FaultKind::Disk));
        assert!(served.to_string().starts_with("the store failed (disk): could not make a checkpoint"));
    }
}
