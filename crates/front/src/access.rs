//! What a caller has proved, whichever service it is for. What that lets them do is the service's to say.

use common::Refusal;
use protocol::signing::sas::Sas;

use crate::bearer::Identity;

/// A refusal, and for the log: why.
#[derive(Debug, PartialEq, Eq)]
pub struct Denied {
    pub refusal: Refusal,
    pub why: String,
    /// What queues and blobs tell the caller beside the refusal, in the service's words.
    pub detail: Option<String>,
}

impl Denied {
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
    /// Signed with an account key: the owner, who may do everything.
    Owner,
    /// An account's shared access signature that holds here and now, for this service.
    Account(AccountToken),
    /// A shared access signature of one resource of the service that holds here and now.
    Resource(ResourceToken),
    /// A bearer token with these roles.
    Roles(Roles, Box<Identity>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountToken {
    pub permissions: String,
    /// Letters of `sco`: service, container (table, queue), object (entity, message, blob).
    pub resource_types: String,
}

#[derive(Debug, PartialEq, Eq)]
pub struct ResourceToken {
    pub sas: Box<Sas>,
    /// Its own permissions, or those of the stored policy that it names.
    pub permissions: String,
}

/// The roles of a bearer token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// As the token names them, known here or not.
    pub named: Vec<String>,
    /// One of them is for managing the account. It carries the service's properties and statistics, and no data.
    pub manages: bool,
}

impl Roles {
    /// Whether the token has a role, by its name or by its id.
    pub fn has(&self, role: [&str; 2]) -> bool {
        self.named.iter().any(|name| role.iter().any(|spelling| spelling.eq_ignore_ascii_case(name)))
    }
}
