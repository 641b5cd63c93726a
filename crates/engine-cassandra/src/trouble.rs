//! Why the cluster did not answer a request with a result, and whether the request may have been done.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use scylla::statement::Consistency;
use store::{Error, Fault};

/// The driver's error, or our own text.
pub type Cause = Arc<dyn StdError + Send + Sync>;

#[derive(Clone, Debug)]
pub enum Trouble {
    /// It was not done and never will be.
    Refused(Cause),
    /// It may have been done or may still be done: a coordinator continues after its client has given up.
    Unknown(Cause),
    /// A read met, or may have met, more tombstones than a node allows. A narrower read meets fewer (`narrow`).
    Tombstones(Cause),
    /// Trying again would not help.
    Fault(Fault),
}

/// The reason that nodes give for it.
const TOMBSTONES: &str = "TOO_MANY_TOMBSTONES";

/// Whether a read failed because of tombstones. For a SERIAL read the nodes do not say why: the coordinator's own part
/// fails for an unknown reason. Such a read asks all replicas, so it fails only if most of them do.
pub fn met_tombstones(error: &DbError, why: &str) -> bool {
    match error {
        DbError::ReadFailure { consistency: Consistency::Serial | Consistency::LocalSerial, .. } => true,
        DbError::ReadFailure { .. } => why.contains(TOMBSTONES),
        _ => false,
    }
}

impl Trouble {
    pub fn refused(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Refused(why.into().into())
    }

    pub fn unknown(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Unknown(why.into().into())
    }

    pub fn tombstones(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Tombstones(why.into().into())
    }

    /// The keyspace has something that this release does not write.
    pub fn damaged(what: impl Into<String>) -> Self {
        Self::Fault(damaged(what))
    }

    fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Refused(why) | Self::Unknown(why) | Self::Tombstones(why) => Some(why),
            Self::Fault(_) => None,
        }
    }
}

fn damaged(what: impl Into<String>) -> Fault {
    Fault::damaged(what.into())
        .advising("check the keyspace: another program or another release may have changed it")
}

/// For an answer with unexpected columns or values.
pub fn undecodable<E: StdError + Send + Sync + 'static>(what: &'static str) -> impl Fn(E) -> Trouble {
    move |error| Trouble::Fault(damaged(format!("could not decode {what}")).because(error))
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(_) => f.write_str("the cluster refused")?,
            Self::Unknown(_) => f.write_str("the outcome of the request is unknown")?,
            Self::Tombstones(_) => f.write_str("too many tombstones for one read")?,
            Self::Fault(fault) => return fault.fmt(f),
        }
        self.cause().map_or(Ok(()), |why| write!(f, ": {}", store::with_causes(&**why)))
    }
}

impl StdError for Trouble {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Fault(fault) => Some(fault),
            _ => self.cause().map(|why| &**why as &(dyn StdError + 'static)),
        }
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// For reads, where an unknown outcome is harmless: the caller can try again.
impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Fault(fault) => Self::Fault(fault),
            Trouble::Refused(_) | Trouble::Unknown(_) | Trouble::Tombstones(_) => {
                tracing::debug!(%trouble, "the cluster did not answer");
                Self::Busy
            }
        }
    }
}

impl From<PrepareError> for Trouble {
    fn from(error: PrepareError) -> Self {
        Self::refused(error)
    }
}

impl From<ExecutionError> for Trouble {
    fn from(error: ExecutionError) -> Self {
        match Meaning::of(&error) {
            Meaning::Refused => Self::refused(error),
            Meaning::Unknown => Self::unknown(error),
            Meaning::Tombstones => Self::tombstones(error),
            Meaning::Denied => {
                let fault = Fault::cluster("the cluster denies what this server needs").because(error);
                Self::Fault(
                    fault.advising("check the keyspace's tables and the rights of this server's role"),
                )
            }
            Meaning::Bug => Self::Fault(Fault::bug("a request to the cluster was malformed").because(error)),
        }
    }
}

/// What an error of the driver means for the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Refused,
    Unknown,
    Tombstones,
    /// By the cluster's schema, rights or settings.
    Denied,
    /// The request itself is wrong.
    Bug,
}

impl Meaning {
    fn of(error: &ExecutionError) -> Self {
        use ExecutionError as E;
        match error {
            E::BadQuery(_) => Self::Bug,
            // The request was not sent to any node.
            E::EmptyPlan | E::PrepareError(_) | E::ConnectionPoolError(_) => Self::Refused,
            E::LastAttemptError(attempt) => Self::of_attempt(attempt),
            _ => Self::Unknown,
        }
    }

    fn of_attempt(error: &RequestAttemptError) -> Self {
        use RequestAttemptError as A;
        match error {
            A::SerializationError(_) | A::CqlRequestSerialization(_) => Self::Bug,
            A::UnableToAllocStreamId => Self::Refused,
            A::DbError(error, reason) if met_tombstones(error, reason) => Self::Tombstones,
            A::DbError(error, _) => Self::of_answer(error),
            _ => Self::Unknown,
        }
    }

    fn of_answer(error: &DbError) -> Self {
        match error {
            DbError::SyntaxError => Self::Bug,
            DbError::Invalid
            | DbError::Unauthorized
            | DbError::AuthenticationError
            | DbError::ConfigError
            | DbError::ProtocolError => Self::Denied,
            // Counted before anything is sent to a replica. With another level it is the commit that found too few
            // nodes, and by then the change is decided.
            DbError::Unavailable { consistency: Consistency::Serial | Consistency::LocalSerial, .. } => {
                Self::Refused
            }
            DbError::IsBootstrapping | DbError::Unprepared { .. } | DbError::RateLimitReached { .. } => {
                Self::Refused
            }
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use store::FaultKind;

    fn answer(error: DbError) -> ExecutionError {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, String::new()))
    }

    #[test]
    fn only_a_request_that_was_certainly_not_done_is_refused() {
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
    }

    #[test]
    fn an_error_that_a_retry_does_not_fix_is_a_fault_of_the_right_kind() {
        for (error, kind) in [
            (answer(DbError::Invalid), FaultKind::Cluster),
            (answer(DbError::Unauthorized), FaultKind::Cluster),
            (answer(DbError::SyntaxError), FaultKind::Bug),
        ] {
            let Trouble::Fault(fault) = Trouble::from(error.clone()) else { panic!("{error}") };
            assert_eq!(fault.kind(), kind, "{error}");
            assert!(fault.chain().any(|cause| cause.is::<ExecutionError>()), "{fault:?}");
        }
    }

    #[test]
    fn the_drivers_error_can_be_reached_from_every_trouble() {
        for error in [
            ExecutionError::EmptyPlan,
            ExecutionError::RequestTimeout(Duration::from_secs(1)),
            answer(DbError::Invalid),
        ] {
            let trouble = Trouble::from(error.clone());
            let mut causes = std::iter::successors(trouble.source(), |error| (*error).source());
            assert!(causes.any(|cause| cause.is::<ExecutionError>()), "{trouble:?}");
            assert!(trouble.to_string().contains(&error.to_string()), "{trouble}");
        }
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
