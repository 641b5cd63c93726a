//! What a caller may do with queues, by permission letters and by roles.

use std::fmt;

use common::{AccountGrant, Refusal as Shared};
use queue_model::Refusal;

/// What an operation asks of a caller. A token of a queue is for the queue that is addressed, because it signs its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    ReadService,
    WriteService,
    ListQueues,
    CreateQueue,
    DeleteQueue,
    ReadMetadata,
    WriteMetadata,
    /// Stored access policies are the owner's alone, except that later versions show them to bearer tokens too.
    Policies {
        for_bearers: bool,
    },
    /// A key that signs tokens on behalf of a user. This server gives out none.
    DelegationKey,
    Messages(Access),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Put,
    Peek,
    Get,
    Update,
    Delete,
    Clear,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Signed with an account key: everything.
    Owner,
    Queue(QueueGrant),
    Account(AccountGrant),
    Role(RoleGrant),
}

/// By a queue's shared access signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueGrant {
    /// Letters of `raup`.
    pub permissions: String,
    /// Tokens of old versions are told that there is nothing, rather than that they may not see it.
    pub hides: bool,
}

/// By a bearer token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleGrant {
    pub roles: Vec<Role>,
    /// Whether one of the roles is for managing the account, which gives no access to its data.
    pub manages: bool,
    /// The roles as the token names them, known here or not: for the log.
    pub named: Vec<String>,
}

/// The service's built-in roles for queues' data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Reader,
    Contributor,
    MessageProcessor,
    MessageSender,
}

impl Grant {
    /// The service's order: what kind of resource, then what permission.
    pub fn permits(&self, need: Need) -> Result<(), Refusal> {
        if need == Need::DelegationKey {
            return Err(Shared::AuthorizationFailure.into());
        }
        match self {
            Self::Owner => Ok(()),
            Self::Queue(grant) => grant.permits(need).map_err(|refusal| match grant.hides {
                true => Shared::ResourceNotFound.into(),
                false => refusal.into(),
            }),
            Self::Account(grant) => Ok(account_permits(grant, need)?),
            Self::Role(grant) => Ok(grant.permits(need)?),
        }
    }
}

impl QueueGrant {
    fn permits(&self, need: Need) -> Result<(), Shared> {
        let letter = match need {
            Need::ReadMetadata | Need::Messages(Access::Peek) => 'r',
            Need::Messages(Access::Put) => 'a',
            Need::Messages(Access::Update) => 'u',
            Need::Messages(Access::Get | Access::Delete) => 'p',
            Need::ReadService
            | Need::WriteService
            | Need::ListQueues
            | Need::CreateQueue
            | Need::DeleteQueue
            | Need::WriteMetadata
            | Need::Policies { .. }
            | Need::DelegationKey
            | Need::Messages(Access::Clear) => return Err(Shared::AuthorizationFailure),
        };
        if self.permissions.contains(letter) { Ok(()) } else { Err(Shared::AuthorizationPermissionMismatch) }
    }
}

fn account_permits(grant: &AccountGrant, need: Need) -> Result<(), Shared> {
    let (resource_type, permissions): (char, &[char]) = match need {
        Need::ReadService => ('s', &['r']),
        Need::WriteService => ('s', &['w']),
        Need::ListQueues => ('s', &['l']),
        Need::CreateQueue => ('c', &['c', 'w']),
        Need::DeleteQueue => ('c', &['d']),
        Need::ReadMetadata => ('c', &['r']),
        Need::WriteMetadata => ('c', &['w']),
        Need::Messages(Access::Put) => ('o', &['a']),
        Need::Messages(Access::Peek) => ('o', &['r']),
        Need::Messages(Access::Get | Access::Delete) => ('o', &['p']),
        Need::Messages(Access::Update) => ('o', &['u']),
        Need::Messages(Access::Clear) => ('o', &['d']),
        Need::Policies { .. } | Need::DelegationKey => return Err(Shared::AuthorizationFailure),
    };
    grant.permits(resource_type, permissions)
}

impl RoleGrant {
    fn permits(&self, need: Need) -> Result<(), Shared> {
        use Role::{Contributor, MessageProcessor, MessageSender, Reader};
        let roles: &[Role] = match need {
            Need::ReadService | Need::WriteService => {
                return if self.manages { Ok(()) } else { Err(Shared::AuthorizationPermissionMismatch) };
            }
            Need::Policies { for_bearers: false } | Need::DelegationKey => {
                return Err(Shared::AuthorizationFailure);
            }
            Need::ListQueues | Need::ReadMetadata => &[Reader, Contributor],
            Need::CreateQueue
            | Need::DeleteQueue
            | Need::WriteMetadata
            | Need::Policies { for_bearers: true }
            | Need::Messages(Access::Update | Access::Clear) => &[Contributor],
            Need::Messages(Access::Put) => &[Contributor, MessageSender],
            Need::Messages(Access::Peek) => &[Reader, Contributor, MessageProcessor],
            Need::Messages(Access::Get | Access::Delete) => &[Contributor, MessageProcessor],
        };
        if roles.iter().any(|role| self.roles.contains(role)) {
            Ok(())
        } else {
            Err(Shared::AuthorizationPermissionMismatch)
        }
    }
}

/// For the log.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("an account key"),
            Self::Queue(grant) => {
                write!(f, "a token for the queue with permissions {:?}", grant.permissions)
            }
            Self::Account(grant) => write!(f, "{grant}"),
            Self::Role(grant) if grant.named.is_empty() => f.write_str("a bearer token without roles"),
            Self::Role(grant) => write!(f, "a bearer token with the roles {:?}", grant.named),
        }
    }
}

/// For the log: what was to be done.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadService => "reading service properties or statistics",
            Self::WriteService => "changing service properties",
            Self::ListQueues => "listing queues",
            Self::CreateQueue => "creating a queue",
            Self::DeleteQueue => "deleting a queue",
            Self::ReadMetadata => "reading a queue's metadata",
            Self::WriteMetadata => "changing a queue's metadata",
            Self::Policies { .. } => "stored access policies",
            Self::DelegationKey => "a user delegation key",
            Self::Messages(Access::Put) => "putting a message",
            Self::Messages(Access::Peek) => "peeking at messages",
            Self::Messages(Access::Get) => "getting messages",
            Self::Messages(Access::Update) => "updating a message",
            Self::Messages(Access::Delete) => "deleting a message",
            Self::Messages(Access::Clear) => "clearing a queue",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs() -> Vec<(&'static str, Need)> {
        vec![
            ("get properties", Need::ReadService),
            ("set properties", Need::WriteService),
            ("list", Need::ListQueues),
            ("create", Need::CreateQueue),
            ("drop", Need::DeleteQueue),
            ("get metadata", Need::ReadMetadata),
            ("set metadata", Need::WriteMetadata),
            ("acl", Need::Policies { for_bearers: true }),
            ("old acl", Need::Policies { for_bearers: false }),
            ("put", Need::Messages(Access::Put)),
            ("peek", Need::Messages(Access::Peek)),
            ("get", Need::Messages(Access::Get)),
            ("update", Need::Messages(Access::Update)),
            ("delete", Need::Messages(Access::Delete)),
            ("clear", Need::Messages(Access::Clear)),
        ]
    }

    /// These operations, and no others.
    fn check(grant: &Grant, allowed: &[&str]) {
        for (name, need) in needs() {
            assert_eq!(grant.permits(need).is_ok(), allowed.contains(&name), "{name} under {grant:?}");
        }
        assert_eq!(grant.permits(Need::DelegationKey), Err(Shared::AuthorizationFailure.into()));
    }

    fn queue(permissions: &str) -> Grant {
        Grant::Queue(QueueGrant { permissions: permissions.to_owned(), hides: false })
    }

    fn account(resource_types: &str, permissions: &str) -> Grant {
        Grant::Account(AccountGrant {
            permissions: permissions.to_owned(),
            resource_types: resource_types.to_owned(),
        })
    }

    /// Spec: queue-operations 7.3.
    #[test]
    fn a_queues_token_reaches_what_its_letters_name() {
        check(&queue(""), &[]);
        check(&queue("r"), &["peek", "get metadata"]);
        check(&queue("a"), &["put"]);
        check(&queue("u"), &["update"]);
        check(&queue("p"), &["get", "delete"]);
        check(&queue("raup"), &["peek", "get metadata", "put", "update", "get", "delete"]);
    }

    /// Spec: queue-operations 7.4.
    #[test]
    fn an_accounts_token_reaches_what_its_letters_name() {
        check(&account("s", "rwdlacup"), &["get properties", "set properties", "list"]);
        check(&account("c", "rwdlacup"), &["create", "drop", "get metadata", "set metadata"]);
        check(&account("o", "rwdlacup"), &["put", "peek", "get", "update", "delete", "clear"]);
        check(&account("sco", "r"), &["get properties", "get metadata", "peek"]);
        check(&account("sco", "w"), &["set properties", "create", "set metadata"]);
        check(&account("sco", "d"), &["drop", "clear"]);
        check(&account("sco", "l"), &["list"]);
        check(&account("sco", "a"), &["put"]);
        check(&account("sco", "c"), &["create"]);
        check(&account("sco", "u"), &["update"]);
        check(&account("sco", "p"), &["get", "delete"]);
        let all: Vec<&str> = needs().iter().map(|(name, _)| *name).collect();
        check(&Grant::Owner, &all);
    }

    #[test]
    fn a_bearer_token_reaches_what_its_roles_do() {
        let grant = |roles: &[Role], manages| {
            Grant::Role(RoleGrant { roles: roles.to_vec(), manages, named: Vec::new() })
        };
        check(&grant(&[], false), &[]);
        check(&grant(&[], true), &["get properties", "set properties"]);
        check(&grant(&[Role::Reader], false), &["list", "get metadata", "peek"]);
        check(&grant(&[Role::MessageProcessor], false), &["peek", "get", "delete"]);
        check(&grant(&[Role::MessageSender], false), &["put"]);
        check(
            &grant(&[Role::MessageSender, Role::MessageProcessor], false),
            &["put", "peek", "get", "delete"],
        );
        check(
            &grant(&[Role::Contributor], false),
            &[
                "list",
                "create",
                "drop",
                "get metadata",
                "set metadata",
                "acl",
                "put",
                "peek",
                "get",
                "update",
                "delete",
                "clear",
            ],
        );
    }

    #[test]
    fn refusals_name_the_check_that_failed() {
        let update = Need::Messages(Access::Update);
        let check = |grant: &Grant, need, expected: Shared| {
            assert_eq!(grant.permits(need), Err(expected.into()), "{need} under {grant}");
        };
        check(&queue("rap"), update, Shared::AuthorizationPermissionMismatch);
        check(&queue("raup"), Need::DeleteQueue, Shared::AuthorizationFailure);
        check(&queue("raup"), Need::CreateQueue, Shared::AuthorizationFailure);
        check(&account("sc", "u"), update, Shared::AuthorizationResourceTypeMismatch);
        check(&account("co", "r"), Need::ReadService, Shared::AuthorizationResourceTypeMismatch);
        check(&account("sco", "wdlcup"), Need::ReadService, Shared::AuthorizationPermissionMismatch);
        let policies = Need::Policies { for_bearers: false };
        check(&account("sco", "rwdlacup"), policies, Shared::AuthorizationFailure);
        let old = Grant::Queue(QueueGrant { permissions: "r".to_owned(), hides: true });
        check(&old, update, Shared::ResourceNotFound);
    }
}
