//! `If-Match` and `If-None-Match` (spec: table-operations 4.2).

use http::header::{IF_MATCH, IF_NONE_MATCH};
use model::{IfMatch, Refusal};
use wire::Version;

use super::Call;

/// What an update or merge asks of the present entity; `None` is an upsert.
pub fn of_update(call: &Call<'_>, version: Version, verb: &'static str) -> Result<Option<IfMatch>, Refusal> {
    let condition = read(call, verb)?;
    if condition.is_none() && !version.has_upsert() {
        return Err(Refusal::InputNotValid);
    }
    Ok(condition)
}

/// A delete must say what it deletes.
pub fn of_delete(call: &Call<'_>) -> Result<IfMatch, Refusal> {
    read(call, "DELETE")?.ok_or(Refusal::InputNotValid)
}

fn read(call: &Call<'_>, verb: &'static str) -> Result<Option<IfMatch>, Refusal> {
    let if_match = call.header(&IF_MATCH);
    if call.headers.contains(&IF_NONE_MATCH) {
        let both = if_match.is_some();
        return Err(if both { Refusal::BothMatchHeaders } else { Refusal::IfNoneMatch { verb } });
    }
    if_match.map(IfMatch::parse).transpose()
}
