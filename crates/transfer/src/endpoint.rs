//! The endpoint that tables are copied from or to: how it is reached, how long it is waited for, and how its refusals are
//! told to a person.

use std::sync::Arc;
use std::time::Duration;

use model::TableName;
use partita_client::{Error, RetryPolicy, Table, TableService};

use crate::command::Common;
use crate::progress::Progress;

/// With the pauses below, about two minutes in all.
const ATTEMPTS_MAX: u32 = 12;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(20);
/// The service itself gives up after 30 s; an answer of a page takes a while to come.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(90);
/// Shorter pauses are not worth a word.
const TOLD_FROM: Duration = Duration::from_secs(1);

pub fn connect(common: &Common, progress: &Arc<Progress>) -> Result<TableService, String> {
    let progress = progress.clone();
    let retry = RetryPolicy::default()
        .attempts(ATTEMPTS_MAX)
        .pauses(FIRST_PAUSE, PAUSE_MAX)
        .answer_within(ANSWER_TIME_MAX)
        .needs_contact(true)
        .on_pause(move |why, pause| {
            if pause >= TOLD_FROM {
                progress.notice(&format!("{why}; trying again in {:.1} s", pause.as_secs_f64()));
            }
        });
    let fault = |error: Error| error.to_string();
    let mut builder = TableService::builder(&common.connection_string).map_err(fault)?.retry(retry);
    if let Some(path) = &common.ca {
        let pem =
            std::fs::read(path).map_err(|error| format!("can't read --ca {}: {error}", path.display()))?;
        builder = builder.trust(pem);
    }
    builder.build().map_err(fault)
}

/// A table by its name, or what the service would have against the name.
pub fn table(service: &TableService, name: &str) -> Result<Table, String> {
    if let Err(refusal) = TableName::parse(name) {
        return Err(format!("{} {}: {refusal}", refusal.status(), refusal.code()));
    }
    service.table(name).map_err(|error| error.to_string())
}

/// What went wrong, and what to do if nobody has answered.
pub fn explain(service: &TableService, error: &Error) -> String {
    let Error::Unanswered(why) = error else { return error.to_string() };
    let url = service.url();
    let authority =
        if url.starts_with("https:") { " --ca names an authority to trust besides the system's" } else { "" };
    format!("no answer from {url}: {why}; is the server running there?{authority}")
}
