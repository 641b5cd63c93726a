//! What a client hears of a fault of the storage, and what the operator reads.

use common::Refusal;
use store::{Fault, FaultKind};

/// Logs the fault: this is the only place where it is told, because the client hears only the refusal.
pub fn refusal_of_fault(fault: &Fault) -> Refusal {
    let refusal = refusal_of(fault.kind());
    if refusal == Refusal::Busy {
        tracing::warn!(kind = %fault.kind(), %fault, "the store is busy and refused a request");
    } else {
        tracing::error!(kind = %fault.kind(), %fault, "the store failed a request");
    }
    refusal
}

fn refusal_of(kind: FaultKind) -> Refusal {
    match kind {
        // Nothing was changed, and the client may retry.
        FaultKind::Busy => Refusal::Busy,
        // A cluster that did not answer in time is not a fault: its engine returns `Error::Busy` or
        // `Error::OutcomeUnknown`.
        FaultKind::Damaged | FaultKind::Disk | FaultKind::Cluster | FaultKind::Bug => Refusal::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServiceKind;

    #[test]
    fn every_kind_of_fault_has_its_answer() {
        for (kind, status, code) in [
            (FaultKind::Damaged, 500, "InternalError"),
            (FaultKind::Disk, 500, "InternalError"),
            (FaultKind::Cluster, 500, "InternalError"),
            (FaultKind::Busy, 503, "ServerBusy"),
            (FaultKind::Bug, 500, "InternalError"),
        ] {
            for service in [ServiceKind::Table, ServiceKind::Queue] {
                assert_eq!(refusal_of(kind).answer(service), (status, code), "{kind}");
            }
        }
    }
}
