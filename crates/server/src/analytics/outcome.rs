//! How requests are told apart in logs and metrics: who asked, and how it ended.

use model::Refusal;

/// What a request showed for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Credential {
    #[default]
    Anonymous,
    /// An account key or a bearer token.
    Authenticated,
    Sas,
}

impl Credential {
    pub const ALL: [Self; 3] = [Self::Authenticated, Self::Anonymous, Self::Sas];

    /// Before the name of a status.
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

    /// Of a request refused so, or of one that was answered. `own_deadline`: the client asked for less time
    /// than it could have had.
    pub fn of(refusal: Option<&Refusal>, own_deadline: impl Fn() -> bool) -> Self {
        let Some(refusal) = refusal else { return Self::Success };
        match refusal {
            &Refusal::TimedOut if own_deadline() => Self::ClientTimeoutError,
            &Refusal::TimedOut => Self::ServerTimeoutError,
            refusal => match refusal.status() {
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

    /// Whether the service would ask money for it.
    pub fn is_billable(self, credential: Credential) -> bool {
        match self {
            Self::ThrottlingError | Self::ServerTimeoutError | Self::ServerOtherError => false,
            Self::AuthorizationError => credential != Credential::Anonymous,
            Self::Success | Self::ClientTimeoutError | Self::ClientOtherError | Self::NetworkError => true,
        }
    }

    /// Whether it says anything of the service's availability.
    pub fn is_applicable(self, credential: Credential) -> bool {
        self != Self::ThrottlingError
            && !(self == Self::AuthorizationError && credential == Credential::Anonymous)
    }

    /// Whether such a request of that class of caller is logged: strangers only where they got something, or
    /// where the service is to blame.
    pub fn is_logged(self, credential: Credential) -> bool {
        credential != Credential::Anonymous
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
        let check = |refusal: Option<Refusal>, own_deadline, expected| {
            assert_eq!(Status::of(refusal.as_ref(), || own_deadline), expected, "{refusal:?}");
        };
        check(None, false, Status::Success);
        check(Some(Refusal::Busy), false, Status::ThrottlingError);
        check(Some(Refusal::TimedOut), false, Status::ServerTimeoutError);
        check(Some(Refusal::TimedOut), true, Status::ClientTimeoutError);
        check(Some(Refusal::Internal), false, Status::ServerOtherError);
        check(Some(Refusal::AuthenticationFailed), false, Status::AuthorizationError);
        check(Some(Refusal::NoAuthenticationInformation), false, Status::AuthorizationError);
        check(Some(Refusal::EntityAlreadyExists), false, Status::ClientOtherError);
        check(Some(Refusal::ResourceNotFound), false, Status::ClientOtherError);
    }

    #[test]
    fn strangers_are_logged_only_where_they_got_something() {
        let logged = |status: Status| status.is_logged(Credential::Anonymous);
        assert!(logged(Status::Success) && logged(Status::ServerOtherError));
        assert!(!logged(Status::AuthorizationError) && !logged(Status::ClientOtherError));
        assert!(Status::ALL.iter().all(|status| status.is_logged(Credential::Sas)));
    }
}
