//! Whether a store is sound.

use std::path::Path;

use store::{Fault, ObjectNaming, RowView};

use crate::layout::TableId;
use crate::open::OpenError;
use crate::records::Records;
use crate::report::Report;
use crate::survey::{self, Finder, Progress, SurveyError};

/// Reads all of a store that no process has open, without changing it.
///
/// Its memory is limited: a block and an index for each level of table files, about twice the size of the logs, and 100
/// bytes for each object. The write buffers of the server that wrote them limit the logs.
pub fn check(
    directory: &Path,
    naming: &dyn ObjectNaming,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, OpenError> {
    survey::survey(directory, naming, &mut Nobody, progress).map_err(|error| match error {
        SurveyError::Open(error) => error,
        SurveyError::Finder(source) => OpenError::Interrupted { directory: directory.to_owned(), source },
    })
}

/// Ignores the rows: only the report is needed.
struct Nobody;

impl Finder for Nobody {
    fn records(&mut self, _: &Records) -> Result<(), Fault> {
        Ok(())
    }

    fn row(&mut self, _: TableId, _: &[u8], _: RowView<'_>) -> Result<(), Fault> {
        Ok(())
    }

    fn object(&mut self, _: &[u8], _: &[u8]) -> Result<(), Fault> {
        Ok(())
    }
}
