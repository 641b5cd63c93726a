//! Whether a store is sound.

use std::path::Path;

use store::{Fault, RowView};

use crate::layout::TableId;
use crate::open::OpenError;
use crate::records::Records;
use crate::report::Report;
use crate::survey::{self, Finder, Progress, SurveyError};

/// Reads all of a store that nobody has open, and changes nothing in it.
///
/// Memory is bounded: of each level of table files a block and an index, and about twice what the logs hold, which are
/// bounded by the write buffers of the server that wrote them.
pub fn check(directory: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Report, OpenError> {
    survey::survey(directory, &mut Nobody, progress).map_err(|error| match error {
        SurveyError::Open(error) => error,
        SurveyError::Finder(source) => OpenError::Interrupted { directory: directory.to_owned(), source },
    })
}

/// Wants nothing but the report.
struct Nobody;

impl Finder for Nobody {
    fn records(&mut self, _: &Records) -> Result<(), Fault> {
        Ok(())
    }

    fn row(&mut self, _: TableId, _: &[u8], _: RowView<'_>) -> Result<(), Fault> {
        Ok(())
    }
}
