//! Partita's own requests and headers, which Azure does not have: addresses below `$partita`, and headers `x-partita-…`.
//!
//! Every answer to a request without them is Azure's. With `--extensions off` they are refused, or ignored, as Azure does.

mod document;
mod explained;

use http::Method;
use model::{Refusal, TableName};
use wire::url;

use crate::operation::Operation;

pub use document::{advice, discover, hot, hot_document};
pub use explained::{Run, explain, header};

/// The first segment of a path that Azure refuses: no table can have this name.
const SEGMENT: &str = "$partita";

/// Which extensions this server has.
#[derive(Clone, Debug)]
pub struct Extensions {
    pub are_on: bool,
    /// The most entities that a page may examine, whoever asks for it.
    pub examined_max: Option<u64>,
    /// The kind of store, for discovery.
    pub store: &'static str,
}

impl Default for Extensions {
    fn default() -> Self {
        Self { are_on: true, examined_max: None, store: "memory" }
    }
}

/// The operation of an address below `$partita`; `None` for every other address.
pub fn resolve(method: &Method, path: &str) -> Option<Result<Operation, Refusal>> {
    // Nearly every path is that of a table, which is told by its first letter.
    let named = path.strip_prefix('/').unwrap_or(path);
    if !named.starts_with(['$', '%']) {
        return None;
    }
    let decoded = url::decode(named)?;
    let mut segments = decoded.strip_suffix('/').unwrap_or(&decoded).split('/');
    if segments.next() != Some(SEGMENT) {
        return None;
    }
    let operation = match (segments.next(), segments.next(), segments.next()) {
        (None, None, None) => Ok(Operation::Discover),
        (Some("explain"), Some(table), None) => {
            TableName::parse(table.strip_suffix("()").unwrap_or(table)).map(Operation::Explain)
        }
        (Some("advice"), None, None) => Ok(Operation::Advice),
        (Some("hot"), None, None) => Ok(Operation::HotPartitions),
        _ => Err(common::Refusal::ResourceNotFound.into()),
    };
    Some(if *method == Method::GET { operation } else { Err(Refusal::MethodNotAllowed) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_below_the_segment_are_ours_and_no_others() {
        let check = |method: Method, path: &str, expected: &str| {
            let shown = match resolve(&method, path) {
                None => "Azure's".to_owned(),
                Some(Ok(Operation::Explain(table))) => format!("Explain {table}"),
                Some(Ok(operation)) => format!("{operation:?}"),
                Some(Err(refusal)) => refusal.code().to_owned(),
            };
            assert_eq!(shown, expected, "{method} {path}");
        };
        for path in ["/$partita", "$partita", "/%24partita", "/$partita/"] {
            check(Method::GET, path, "Discover");
        }
        check(Method::GET, "/$partita/explain/Books", "Explain Books");
        check(Method::GET, "/$partita/explain/Books()", "Explain Books");
        check(Method::GET, "/$partita/explain/a-b", "InvalidResourceName");
        check(Method::GET, "/$partita/explain", "ResourceNotFound");
        check(Method::GET, "/$partita/explain/Books/x", "ResourceNotFound");
        check(Method::GET, "/$partita/advice", "Advice");
        check(Method::GET, "/$partita/hot", "HotPartitions");
        check(Method::GET, "/$partita/other", "ResourceNotFound");
        check(Method::POST, "/$partita/hot", "MethodNotAllowed");
        check(Method::HEAD, "/$partita", "MethodNotAllowed");
        for path in [
            "/",
            "/Tables",
            "/$batch",
            "/$partitas",
            "/$Partita",
            "/partita",
            "/Books()",
            "/%ff",
            "/$partita()",
        ] {
            check(Method::GET, path, "Azure's");
        }
    }
}
