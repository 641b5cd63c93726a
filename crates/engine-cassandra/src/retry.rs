//! If a node fails, requests that may be sent twice are sent to another node: reads, and writes that have their own
//! timestamp. A conditional write is never sent again (`unknown`).

use std::sync::Arc;

use scylla::errors::{DbError, RequestAttemptError};
use scylla::policies::retry::{RequestInfo, RetryDecision, RetryPolicy, RetrySession};

use crate::counters::Counts;
use crate::trouble::met_tombstones;

/// Nodes that are tried after the first. With three copies, no other node has the row.
const OTHER_NODES_MAX: usize = 2;

#[derive(Debug)]
pub struct OtherNode(pub Arc<Counts>);

#[derive(Debug)]
struct OtherNodeSession {
    others: usize,
    counts: Arc<Counts>,
}

impl RetryPolicy for OtherNode {
    fn new_session(&self) -> Box<dyn RetrySession> {
        Box::new(OtherNodeSession { others: 0, counts: self.0.clone() })
    }
}

impl RetrySession for OtherNodeSession {
    fn decide_should_retry(&mut self, request: RequestInfo<'_>) -> RetryDecision {
        if !request.is_idempotent || self.others == OTHER_NODES_MAX || !is_of_the_node(request.error) {
            return RetryDecision::DontRetry;
        }
        self.others += 1;
        self.counts.retries.add(1);
        RetryDecision::RetryNextTarget(None)
    }

    fn reset(&mut self) {
        self.others = 0;
    }
}

/// Whether another node may answer. After a timeout it is not tried: it would wait for the same replicas, and the
/// caller has waited long already.
fn is_of_the_node(error: &RequestAttemptError) -> bool {
    match error {
        RequestAttemptError::BrokenConnectionError(_) | RequestAttemptError::UnableToAllocStreamId => true,
        // Another node would ask the same replicas, which have the same tombstones.
        RequestAttemptError::DbError(error, why) if met_tombstones(error, why) => false,
        RequestAttemptError::DbError(error, _) => matches!(
            error,
            DbError::Overloaded
                | DbError::ServerError
                | DbError::IsBootstrapping
                | DbError::Unavailable { .. }
                | DbError::ReadFailure { .. }
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scylla::statement::Consistency;

    #[test]
    fn a_failure_of_one_node_is_retried_on_another() {
        let serial = Consistency::Serial;
        let failure = |consistency| DbError::ReadFailure {
            consistency,
            received: 1,
            required: 2,
            numfailures: 1,
            data_present: true,
        };
        for (error, again) in [
            (DbError::Overloaded, true),
            (DbError::ServerError, true),
            (DbError::IsBootstrapping, true),
            (DbError::Unavailable { consistency: serial, required: 2, alive: 1 }, true),
            (failure(Consistency::Quorum), true),
            (failure(serial), false),
            (
                DbError::ReadTimeout { consistency: serial, received: 1, required: 2, data_present: false },
                false,
            ),
            (DbError::Invalid, false),
            (DbError::Unauthorized, false),
        ] {
            let attempt = RequestAttemptError::DbError(error, String::new());
            assert_eq!(is_of_the_node(&attempt), again, "{attempt}");
        }
        assert!(is_of_the_node(&RequestAttemptError::UnableToAllocStreamId));
        assert!(!is_of_the_node(&RequestAttemptError::NonfinishedPagingState));
    }
}
