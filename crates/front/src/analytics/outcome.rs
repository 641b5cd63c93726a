//! How logs and metrics classify requests: the type of authentication, and the status.

use crate::service::RefusalFacts;

/// Which credential a request has, valid or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthenticationType {
    #[default]
    Anonymous,
    /// An account key or a bearer token.
    Authenticated,
    Sas,
}

impl AuthenticationType {
    pub const ALL: [Self; 3] = [Self::Authenticated, Self::Anonymous, Self::Sas];

    /// Stands before the name of a status.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Authenticated => "",
            Self::Anonymous => "Anonymous",
            Self::Sas => "SAS",
        }
    }

    pub fn log_name(self) -> &'static str {
        match self {
            Self::Authenticated => "authenticated",
            Self::Anonymous => "anonymous",
            Self::Sas => "SAS",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Success,
    ThrottlingError,
    ClientTimeoutError,
    ServerTimeoutError,
    ClientOtherError,
    ServerOtherError,
    AuthorizationError,
    NetworkError,
}

impl Status {
    pub const ALL: [Self; 8] = [
        Self::Success,
        Self::ThrottlingError,
        Self::ClientTimeoutError,
        Self::ServerTimeoutError,
        Self::ClientOtherError,
        Self::ServerOtherError,
        Self::AuthorizationError,
        Self::NetworkError,
    ];

    /// The status of a request; `refusal` is `None` if it succeeded. `own_deadline`: the client set a shorter timeout than
    /// the service's.
    pub fn of(refusal: Option<RefusalFacts>, own_deadline: impl Fn() -> bool) -> Self {
        let Some(refusal) = refusal else { return Self::Success };
        match refusal {
            RefusalFacts { timed_out: true, .. } if own_deadline() => Self::ClientTimeoutError,
            RefusalFacts { timed_out: true, .. } => Self::ServerTimeoutError,
            RefusalFacts { status, .. } => match status {
                503 => Self::ThrottlingError,
                500.. => Self::ServerOtherError,
                401 | 403 => Self::AuthorizationError,
                _ => Self::ClientOtherError,
            },
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::ThrottlingError => "ThrottlingError",
            Self::ClientTimeoutError => "ClientTimeoutError",
            Self::ServerTimeoutError => "ServerTimeoutError",
            Self::ClientOtherError => "ClientOtherError",
            Self::ServerOtherError => "ServerOtherError",
            Self::AuthorizationError => "AuthorizationError",
            Self::NetworkError => "NetworkError",
        }
    }

    /// Whether the service would bill it.
    pub fn is_billable(self, authentication: AuthenticationType) -> bool {
        match self {
            Self::ThrottlingError | Self::ServerTimeoutError | Self::ServerOtherError => false,
            Self::AuthorizationError => authentication != AuthenticationType::Anonymous,
            Self::Success | Self::ClientTimeoutError | Self::ClientOtherError | Self::NetworkError => true,
        }
    }

    /// Whether it counts for the service's availability.
    pub fn is_applicable(self, authentication: AuthenticationType) -> bool {
        self != Self::ThrottlingError
            && !(self == Self::AuthorizationError && authentication == AuthenticationType::Anonymous)
    }

    /// Whether such a request is logged. An anonymous one is logged only if it succeeded or the server failed.
    pub fn is_logged(self, authentication: AuthenticationType) -> bool {
        authentication != AuthenticationType::Anonymous
            || !matches!(
                self,
                Self::ClientOtherError
                    | Self::AuthorizationError
                    | Self::ThrottlingError
                    | Self::NetworkError
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_accounted_as_the_service_does() {
        let check = |status, timed_out, own_deadline, expected| {
            let refusal = RefusalFacts { status, code: "", timed_out };
            assert_eq!(Status::of(Some(refusal), || own_deadline), expected, "{refusal:?}");
        };
        assert_eq!(Status::of(None, || false), Status::Success);
        check(503, false, false, Status::ThrottlingError);
        check(500, true, false, Status::ServerTimeoutError);
        check(500, true, true, Status::ClientTimeoutError);
        check(500, false, true, Status::ServerOtherError);
        check(403, false, false, Status::AuthorizationError);
        check(401, false, false, Status::AuthorizationError);
        check(409, false, false, Status::ClientOtherError);
        check(404, false, false, Status::ClientOtherError);
    }

    #[test]
    fn strangers_are_logged_only_where_they_got_something() {
        let logged = |status: Status| status.is_logged(AuthenticationType::Anonymous);
        assert!(logged(Status::Success) && logged(Status::ServerOtherError));
        assert!(!logged(Status::AuthorizationError) && !logged(Status::ClientOtherError));
        assert!(Status::ALL.iter().all(|status| status.is_logged(AuthenticationType::Sas)));
    }
}
