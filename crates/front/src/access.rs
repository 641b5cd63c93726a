//! What a caller has proved, the same for all services. Each service decides what that allows.

use common::{AccountGrant, Refusal};
use protocol::signing::sas::Sas;

use crate::bearer::Identity;

/// A refusal, and its reason for the log.
#[derive(Debug, PartialEq, Eq)]
pub struct Denial {
    pub refusal: Refusal,
    pub why: String,
    /// What queues and blobs tell the caller beside the refusal, in the service's words.
    pub detail: Option<String>,
}

impl Denial {
    pub fn new(refusal: Refusal, why: impl Into<String>) -> Self {
        Self { refusal, why: why.into(), detail: None }
    }

    pub fn failed(why: impl Into<String>) -> Self {
        Self::new(Refusal::AuthenticationFailed, why)
    }

    /// The same, with what the caller is told.
    pub fn telling(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }
}

/// Who a caller has proved to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Proof {
    /// Nothing: what is asked for is public.
    Anyone,
    /// Signed with an account key: the owner, who may do everything.
    Owner,
    /// An account SAS that is valid now, for this caller and this service.
    Account(AccountGrant),
    /// A SAS for one resource of the service that is valid now, for this caller.
    Resource(ResourceToken),
    /// A bearer token with these roles.
    Roles(Roles, Box<Identity>),
}

#[derive(Debug, PartialEq, Eq)]
pub struct ResourceToken {
    pub sas: Box<Sas>,
    /// Those of the token, or of the stored access policy that it names.
    pub permissions: String,
}

/// The roles of a bearer token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// As the token names them; they may be unknown here.
    pub named: Vec<String>,
    /// One of them manages the account: it allows the service's properties and statistics, but no data.
    pub manages: bool,
}

impl Roles {
    /// Whether the token has a role, by its name or by its id.
    pub fn has(&self, role: [&str; 2]) -> bool {
        self.named.iter().any(|name| role.iter().any(|spelling| spelling.eq_ignore_ascii_case(name)))
    }
}
