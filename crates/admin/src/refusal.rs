//! Every "no" of the administration, with its status, code and words.

use common::ServiceKind;
use http::StatusCode;

use crate::command::CommandError;
use crate::sas::SasError;

#[derive(Debug)]
pub(crate) enum Refusal {
    /// The request's `Host` may be that of a stranger's page whose name was pointed here.
    WrongHost,
    CrossSite,
    NoSession,
    NotAdmin,
    /// Another user of this machine, who has no token.
    OtherUser,
    /// The administrator's session, which has no account.
    NoAccount,
    WrongToken,
    WrongCsrf,
    TooManyFailures,
    NotFound,
    MethodNotAllowed,
    NotJson(String),
    BodyTooLarge,
    BodyBroken,
    SignInIncomplete,
    ConnectionString(String),
    WrongKey,
    WrongSas(String),
    DevelopmentElsewhere,
    NotServed(ServiceKind),
    HeaderUnreadable(String),
    BadTarget,
    Sas(SasError),
    Command(CommandError),
    /// A token can't make tokens.
    NotOwner,
    TableName(String),
    /// What a service answered to a request that was made for a session.
    Service {
        status: StatusCode,
        code: String,
    },
    ServiceBroken,
    TooManyStreams,
}

impl Refusal {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::WrongHost => StatusCode::MISDIRECTED_REQUEST,
            Self::NoSession | Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::CrossSite
            | Self::NotAdmin
            | Self::OtherUser
            | Self::NoAccount
            | Self::WrongCsrf
            | Self::WrongKey
            | Self::WrongSas(_)
            | Self::DevelopmentElsewhere
            | Self::NotOwner => StatusCode::FORBIDDEN,
            Self::Service { status, .. } => *status,
            Self::ServiceBroken => StatusCode::INTERNAL_SERVER_ERROR,
            Self::TooManyFailures | Self::TooManyStreams => StatusCode::TOO_MANY_REQUESTS,
            Self::NotFound | Self::NotServed(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Command(CommandError::Busy(_)) => StatusCode::CONFLICT,
            Self::Command(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson(_)
            | Self::BodyBroken
            | Self::SignInIncomplete
            | Self::ConnectionString(_)
            | Self::HeaderUnreadable(_)
            | Self::BadTarget
            | Self::TableName(_)
            | Self::Sas(_) => StatusCode::BAD_REQUEST,
        }
    }

    pub fn code(&self) -> &str {
        match self {
            Self::WrongHost => "WrongHost",
            Self::CrossSite => "CrossSite",
            Self::NoSession => "NoSession",
            Self::NotAdmin => "NotAdmin",
            Self::OtherUser => "OtherUser",
            Self::NoAccount => "NoAccount",
            Self::WrongToken => "WrongToken",
            Self::WrongCsrf => "WrongCsrf",
            Self::TooManyFailures => "TooManyFailures",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotJson(_) => "NotJson",
            Self::BodyTooLarge => "BodyTooLarge",
            Self::BodyBroken => "BodyBroken",
            Self::SignInIncomplete => "SignInIncomplete",
            Self::ConnectionString(_) => "ConnectionStringInvalid",
            Self::WrongKey => "WrongKey",
            Self::WrongSas(_) => "WrongSas",
            Self::DevelopmentElsewhere => "DevelopmentElsewhere",
            Self::NotServed(_) => "NotServed",
            Self::HeaderUnreadable(_) => "HeaderUnreadable",
            Self::BadTarget => "BadTarget",
            Self::Sas(_) => "SasInvalid",
            Self::Command(CommandError::Busy(_)) => "CommandRunning",
            Self::Command(_) => "CommandFailed",
            Self::NotOwner => "NotOwner",
            Self::TableName(_) => "TableNameInvalid",
            Self::Service { code, .. } => code,
            Self::ServiceBroken => "ServiceBroken",
            Self::TooManyStreams => "TooManyStreams",
        }
    }

    pub fn message(&self) -> String {
        match self {
            Self::WrongHost => {
                "this address is not one of the administration's; use its IP address, localhost, or a \
                                name given by --admin-host"
                    .to_owned()
            }
            Self::CrossSite => "requests from other sites are refused".to_owned(),
            Self::NoSession => "sign in first: POST /api/session".to_owned(),
            Self::NotAdmin => "this needs the administration's token, or its loopback address".to_owned(),
            Self::OtherUser => "this is for the user that runs the server, and for who has the token of \
                                --admin-token-file"
                .to_owned(),
            Self::NoAccount => "this session has no account; sign in with one".to_owned(),
            Self::WrongToken => "the administration's token is wrong".to_owned(),
            Self::WrongCsrf => {
                "the header x-partita-csrf is missing or wrong; GET /api/session has its value".to_owned()
            }
            Self::TooManyFailures => "too many failed attempts; wait a second".to_owned(),
            Self::NotFound => "there is nothing here".to_owned(),
            Self::MethodNotAllowed => "this method is not allowed here".to_owned(),
            Self::NotJson(why) => format!("the body is not what this takes: {why}"),
            Self::BodyTooLarge => "the body is too large".to_owned(),
            Self::BodyBroken => "the body did not arrive".to_owned(),
            Self::SignInIncomplete => "sign in with connection_string, with account and key, with sas, with \
                                       admin_token, or with development"
                .to_owned(),
            Self::ConnectionString(why) => why.clone(),
            Self::WrongKey => "the account is not served here, or the key is not one of its keys".to_owned(),
            Self::WrongSas(why) => why.clone(),
            Self::DevelopmentElsewhere => {
                "the development account is open on a loopback address only, and only if \
                                           this server serves it"
                    .to_owned()
            }
            Self::NotServed(service) => format!("this server does not serve {service}s"),
            Self::HeaderUnreadable(name) => format!("the header {name} is not ASCII text"),
            Self::BadTarget => "the request's target is not a path of this listener".to_owned(),
            Self::Sas(error) => error.to_string(),
            Self::Command(error) => error.to_string(),
            Self::NotOwner => "only a session with an account key can make tokens".to_owned(),
            Self::TableName(name) => format!("{name:?} can't be the name of a table"),
            Self::Service { code, .. } => format!("the service refused it: {code}"),
            Self::ServiceBroken => "the service's answer could not be read".to_owned(),
            Self::TooManyStreams => "too many consoles follow the events already".to_owned(),
        }
    }
}

impl From<SasError> for Refusal {
    fn from(error: SasError) -> Self {
        Self::Sas(error)
    }
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}
