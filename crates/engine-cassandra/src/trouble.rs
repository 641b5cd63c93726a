//! What became of a request that the cluster did not answer with a result.

use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use scylla::statement::Consistency;
use store::{Error, Fault};
use thiserror::Error;

#[derive(Clone, Debug, Error)]
pub enum Trouble {
    /// Certainly not done, and never will be.
    #[error("the cluster refused: {0}")]
    Refused(String),
    /// May have been done, or may yet be: a coordinator goes on by itself after its client gave up.
    #[error("the cluster did not say what became of it: {0}")]
    Unknown(String),
    /// A read met more tombstones than a node steps over in one, or may have. A narrower one meets fewer (`narrow`).
    #[error("too many tombstones for one read: {0}")]
    Tombstones(String),
    /// Nothing that trying again would change.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The reason that nodes give for it.
const TOMBSTONES: &str = "TOO_MANY_TOMBSTONES";

/// Whether the nodes gave a read up because of tombstones. Of a SERIAL one they do not say why: the coordinator's own part
/// of it fails for an unknown reason. It asks all replicas, so that it fails only if most of them do.
pub fn met_tombstones(error: &DbError, why: &str) -> bool {
    match error {
        DbError::ReadFailure { consistency: Consistency::Serial | Consistency::LocalSerial, .. } => true,
        DbError::ReadFailure { .. } => why.contains(TOMBSTONES),
        _ => false,
    }
}

impl Trouble {
    pub fn fault(message: impl Into<String>) -> Self {
        Self::Fault(Fault::new(message))
    }
}

/// For reads, where not knowing does no harm: come back later.
impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Fault(fault) => Self::Fault(fault),
            Trouble::Refused(why) | Trouble::Unknown(why) | Trouble::Tombstones(why) => {
                tracing::debug!(why, "the cluster did not answer");
                Self::Busy
            }
        }
    }
}

impl From<PrepareError> for Trouble {
    fn from(error: PrepareError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<ExecutionError> for Trouble {
    fn from(error: ExecutionError) -> Self {
        use ExecutionError as E;
        let why = error.to_string();
        match error {
            E::BadQuery(_) => Self::fault(why),
            // No node was asked.
            E::EmptyPlan | E::PrepareError(_) | E::ConnectionPoolError(_) => Self::Refused(why),
            E::LastAttemptError(attempt) => of_attempt(&attempt, why),
            _ => Self::Unknown(why),
        }
    }
}

fn of_attempt(error: &RequestAttemptError, why: String) -> Trouble {
    use RequestAttemptError as A;
    match error {
        A::SerializationError(_) | A::CqlRequestSerialization(_) => Trouble::fault(why),
        A::UnableToAllocStreamId => Trouble::Refused(why),
        A::DbError(error, reason) if met_tombstones(error, reason) => Trouble::Tombstones(why),
        A::DbError(error, _) => of_answer(error, why),
        _ => Trouble::Unknown(why),
    }
}

fn of_answer(error: &DbError, why: String) -> Trouble {
    match error {
        DbError::SyntaxError
        | DbError::Invalid
        | DbError::Unauthorized
        | DbError::AuthenticationError
        | DbError::ConfigError
        | DbError::ProtocolError => Trouble::fault(why),
        // Counted before anything is sent to a replica. With another level it is the commit that found too few
        // nodes, and by then the change is decided.
        DbError::Unavailable { consistency: Consistency::Serial | Consistency::LocalSerial, .. } => {
            Trouble::Refused(why)
        }
        DbError::IsBootstrapping | DbError::Unprepared { .. } | DbError::RateLimitReached { .. } => {
            Trouble::Refused(why)
        }
        _ => Trouble::Unknown(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn answer(error: DbError) -> ExecutionError {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, String::new()))
    }

    #[test]
    fn only_what_surely_was_not_done_is_refused() {
        let timeout = DbError::WriteTimeout {
            consistency: Consistency::Serial,
            received: 0,
            required: 2,
            write_type: scylla::errors::WriteType::Cas,
        };
        let unavailable = |consistency| DbError::Unavailable { consistency, required: 2, alive: 1 };
        for (error, refused) in [
            (answer(unavailable(Consistency::Serial)), true),
            (answer(unavailable(Consistency::Quorum)), false),
            (answer(DbError::IsBootstrapping), true),
            (answer(DbError::Overloaded), false),
            (answer(DbError::ServerError), false),
            (answer(timeout), false),
            (ExecutionError::EmptyPlan, true),
            (ExecutionError::RequestTimeout(Duration::from_secs(1)), false),
        ] {
            let trouble = Trouble::from(error.clone());
            assert_eq!(matches!(trouble, Trouble::Refused(_)), refused, "{error}");
            assert_eq!(matches!(trouble, Trouble::Unknown(_)), !refused, "{error}");
        }
        assert!(matches!(Trouble::from(answer(DbError::Invalid)), Trouble::Fault(_)));
    }

    #[test]
    fn a_read_that_met_too_many_tombstones_is_known_by_its_reason() {
        let failure = |consistency, why: &str| {
            let failure = DbError::ReadFailure {
                consistency,
                received: 0,
                required: 2,
                numfailures: 1,
                data_present: false,
            };
            Trouble::from(ExecutionError::LastAttemptError(RequestAttemptError::DbError(
                failure,
                why.to_owned(),
            )))
        };
        let tombstones = "Operation failed - received 0 responses and 1 failures: READ_TOO_MANY_TOMBSTONES from /10.0.0.1:7000";
        assert!(matches!(failure(Consistency::Quorum, tombstones), Trouble::Tombstones(_)));
        assert!(matches!(failure(Consistency::Quorum, "UNKNOWN from /10.0.0.1:7000"), Trouble::Unknown(_)));
        assert!(matches!(
            failure(Consistency::Serial, "UNKNOWN from /10.0.0.1:7000"),
            Trouble::Tombstones(_)
        ));
    }
}
