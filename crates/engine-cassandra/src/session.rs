//! Opens one session with the whole cluster, and explains in words why that failed.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{
    ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError, MetadataError,
    NewSessionError,
};
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::statement::{Consistency, SerialConsistency};
use store::with_causes;
use thiserror::Error;

use crate::cluster::REQUEST_TIMEOUT;
use crate::engine::CassandraEngine;
use crate::options::{Options, Password};
use crate::safety::{self, Findings};
use crate::tls::{self, TlsError};
use crate::trouble::Trouble;

const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the cluster can't be used.
#[derive(Debug, Error)]
pub enum ConnectError {
    #[error("no node of the cluster can be used; tried {tried}: {why}")]
    Unreachable { tried: String, why: String, source: Box<NewSessionError> },
    #[error("the cluster does not accept the password of user {user}: {why}; correct it in the address")]
    WrongPassword { user: String, why: String, source: Box<NewSessionError> },
    #[error("the cluster asks for a user and a password; add user=NAME&password-file=FILE to its address")]
    PasswordMissing { source: Box<NewSessionError> },
    #[error("can't set up TLS with the cluster: {0}")]
    Tls(#[from] TlsError),
    #[error("the TLS handshake with the cluster failed: {why}")]
    Handshake { why: String, source: Box<NewSessionError> },
    #[error("can't read password-file {}: {source}; check its path and its permissions", .path.display())]
    PasswordFile { path: PathBuf, source: io::Error },
    #[error("the cluster has no keyspace {0}; make it with `partita store init`")]
    KeyspaceMissing(String),
    #[error(
        "this cluster's settings do not guarantee durability; `unsafe=true` in its address accepts that, for \
         tests:\n{0}"
    )]
    Unsafe(Findings),
    #[error("this cluster can't be used:\n{0}")]
    Wrong(Findings),
    #[error(transparent)]
    Trouble(#[from] Trouble),
}

impl ConnectError {
    /// Whether waiting may help: nodes may still be starting.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Trouble(trouble) => !matches!(trouble, Trouble::Fault(_)),
            _ => false,
        }
    }
}

impl CassandraEngine {
    /// Connects to a keyspace that `init` made. Refuses a cluster with unsafe settings, unless the options accept them.
    ///
    /// Boxed, like everything public here, so that the driver's futures are compiled in this crate and not again in
    /// every crate that awaits them.
    pub fn connect(options: Options) -> BoxFuture<'static, Result<Self, ConnectError>> {
        Box::pin(async move {
            let session = open(&options).await?;
            safety::find(&session, &options).await?.judge(options.accept_unsafe)?;
            Ok(Self::open(session, &options).await?)
        })
    }
}

/// Everything that is wrong with a cluster. Does not refuse it.
pub fn check(options: &Options) -> BoxFuture<'_, Result<Findings, ConnectError>> {
    Box::pin(async move { safety::find(&open(options).await?, options).await })
}

/// A session that sends all requests for a partition to one node, the same from every server, and never retries by
/// itself.
pub fn open(options: &Options) -> BoxFuture<'_, Result<Session, ConnectError>> {
    Box::pin(open_session(options))
}

async fn open_session(options: &Options) -> Result<Session, ConnectError> {
    // One coordinator per partition: two would invalidate each other's ballots.
    let mut policy = DefaultPolicy::builder().token_aware(true).enable_shuffling_replicas(false);
    if let Some(datacenter) = &options.datacenter {
        policy = policy.prefer_datacenter(datacenter.clone()).permit_dc_failover(true);
    }
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::Quorum)
        .serial_consistency(Some(SerialConsistency::Serial))
        .request_timeout(Some(REQUEST_TIMEOUT))
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .speculative_execution_policy(None)
        .load_balancing_policy(policy.build())
        .build();
    let mut builder = SessionBuilder::new()
        .known_nodes(&options.nodes)
        .default_execution_profile_handle(profile.into_handle())
        .connection_timeout(CONNECTION_TIMEOUT)
        .keepalive_interval(Duration::from_secs(2))
        .keepalive_timeout(Duration::from_secs(4));
    if let Some(login) = &options.login {
        builder = builder.user(&login.user, read_password(&login.password)?);
    }
    if let Some(tls) = &options.tls {
        builder = builder.tls_context(Some(tls::configure(tls)?));
    }
    driver::connect(builder).await.map_err(|error| explain(error, options))
}

fn read_password(password: &Password) -> Result<String, ConnectError> {
    match password {
        Password::Text(text) => Ok(text.clone()),
        Password::File(path) => match std::fs::read_to_string(path) {
            // Editors and `echo` end a file with a line break.
            Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
            Err(source) => Err(ConnectError::PasswordFile { path: path.clone(), source }),
        },
    }
}

/// Why connecting failed, by what has to be changed in the address, if anything.
enum ConnectFailure {
    Unreachable(String),
    WrongPassword { user: String, why: String },
    PasswordMissing,
    Handshake(String),
}

fn explain(error: NewSessionError, options: &Options) -> ConnectError {
    let reason = reason(&error, options);
    let source = Box::new(error);
    match reason {
        ConnectFailure::Unreachable(why) => {
            ConnectError::Unreachable { tried: options.nodes.join(", "), why, source }
        }
        ConnectFailure::WrongPassword { user, why } => ConnectError::WrongPassword { user, why, source },
        ConnectFailure::PasswordMissing => ConnectError::PasswordMissing { source },
        ConnectFailure::Handshake(why) => ConnectError::Handshake { why, source },
    }
}

fn reason(error: &NewSessionError, options: &Options) -> ConnectFailure {
    let unreachable = ConnectFailure::Unreachable;
    let last = match error {
        NewSessionError::FailedToResolveAnyHostname(_) => {
            return unreachable("no such host is known".to_owned());
        }
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(ConnectionPoolError::Broken {
            last_connection_error,
            ..
        })) => last_connection_error,
        _ => return unreachable(with_causes(error)),
    };
    match last {
        ConnectionError::ConnectTimeout => unreachable(format!("no answer in {CONNECTION_TIMEOUT:?}")),
        ConnectionError::IoError(why) if options.tls.is_some() => match tls_error(why) {
            Some(why) => ConnectFailure::Handshake(why),
            None => unreachable(with_causes(why)),
        },
        ConnectionError::ConnectionSetupRequestError(setup) => match (setup.get_error(), &options.login) {
            (ConnectionSetupRequestErrorKind::DbError(DbError::AuthenticationError, why), Some(login)) => {
                ConnectFailure::WrongPassword { user: login.user.clone(), why: why.clone() }
            }
            (ConnectionSetupRequestErrorKind::MissingAuthentication, _) => ConnectFailure::PasswordMissing,
            (ConnectionSetupRequestErrorKind::BrokenConnection(why), _) if options.tls.is_none() => {
                unreachable(format!(
                    "{}; if the cluster takes TLS only, add tls=true to its address",
                    with_causes(why)
                ))
            }
            (ConnectionSetupRequestErrorKind::BrokenConnection(why), _) => unreachable(format!(
                "{}; if the cluster asks for a certificate, name it with cert=FILE&key=FILE",
                with_causes(why)
            )),
            (why, _) => unreachable(with_causes(why)),
        },
        other => unreachable(with_causes(other)),
    }
}

/// Why the TLS handshake failed, and what to do; `None` for other errors.
fn tls_error(error: &io::Error) -> Option<String> {
    use rustls::{CertificateError, Error, InvalidMessage};
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    let way_out = match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the node does not seem to speak TLS; leave out tls=true, or name the port that does"
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "name the authority that signed the nodes' certificates with ca=FILE"
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => {
            "give the nodes certificates with their IP addresses, or name what they have with server-name=NAME"
        }
        _ => return Some(error.to_string()),
    };
    Some(format!("{error}; {way_out}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[tokio::test]
    async fn nodes_that_do_not_answer_are_named_and_the_drivers_error_is_kept() {
        let options = Options::new(vec!["127.0.0.1:1".to_owned()], "k");
        let error = open(&options).await.expect_err("nobody listens on port 1");
        assert!(error.is_temporary() && error.to_string().contains("tried 127.0.0.1:1"), "{error}");
        let cause = error.source().and_then(|cause| cause.downcast_ref::<Box<NewSessionError>>());
        assert!(cause.is_some(), "{error:?}");
    }

    #[tokio::test]
    async fn a_password_file_that_can_not_be_read_is_named() {
        let mut options = Options::new(vec!["127.0.0.1:1".to_owned()], "k");
        let password = Password::File("/no/such/password".into());
        options.login = Some(crate::options::Login { user: "u".to_owned(), password });
        let error = open(&options).await.expect_err("there is no such file");
        assert!(!error.is_temporary() && error.to_string().contains("/no/such/password"), "{error}");
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::NotFound));
    }
}
