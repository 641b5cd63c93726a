//! What a caller may do with blobs, by permission letters and by roles (spec: blob-operations 8.2 to 8.5).

use std::fmt;

use blob_model::Refusal;
use common::{AccountGrant, Refusal as Shared};
use front::delegation::Rights;

/// What an operation asks of a caller. A token of a container or a blob is for the one that is addressed, because it signs
/// its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    ReadService,
    WriteService,
    ListContainers,
    /// What the account is. Whoever is known may ask.
    AccountInformation,
    DelegationKey,
    /// The batch itself; each of its parts has needs of its own.
    Batch,
    /// Find by tags, in the account.
    FindInAccount,
    CreateContainer,
    DeleteContainer,
    ReadContainer,
    WriteContainer,
    LeaseContainer,
    BreakContainerLease,
    Policies,
    List,
    /// Find by tags, in the container.
    Find,
    Blob(Access),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    /// A blob that is not there yet, or one in place of another.
    Create,
    /// A part that only a later request makes visible.
    Stage,
    Snapshot,
    Write,
    Append,
    Delete,
    DeleteVersion,
    DeletePermanently,
    BreakLease,
    Tags,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// What is asked for is public.
    Anyone,
    /// Signed with an account key: everything.
    Owner,
    Resource(ResourceGrant),
    Account(AccountGrant),
    Role(RoleGrant),
}

/// By a shared access signature of a container or a blob: letters of `racwdxyltfmeopi`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceGrant {
    pub permissions: String,
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

/// The service's built-in roles for the data of blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Owner,
    Contributor,
    Reader,
    Delegator,
}

impl Grant {
    /// The service's order: what kind of resource, then what permission.
    pub fn permits(&self, need: Need) -> Result<(), Refusal> {
        match self {
            // A key is a user's, and an account key is nobody's. The answer says how to ask.
            Self::Owner if need == Need::DelegationKey => Err(Shared::AuthenticationFailed.into()),
            Self::Owner => Ok(()),
            Self::Anyone => match need {
                Need::ReadContainer | Need::List | Need::Blob(Access::Read) => Ok(()),
                _ => Err(Shared::AuthorizationFailure.into()),
            },
            _ if need == Need::AccountInformation => Ok(()),
            Self::Resource(grant) => Ok(grant.permits(need)?),
            Self::Account(grant) => Ok(account_permits(grant, need)?),
            Self::Role(grant) => Ok(grant.permits(need)?),
        }
    }

    /// Whether a blob may be written in place of another one. A token that may only create may not.
    pub fn overwrites(&self) -> bool {
        match self {
            Self::Anyone => false,
            Self::Owner | Self::Role(_) => true,
            Self::Resource(grant) => grant.permissions.contains('w'),
            Self::Account(grant) => grant.permissions.contains('w'),
        }
    }
}

impl Access {
    /// One of these letters is enough, in a token of the account and in one of a container or a blob.
    const fn letters(self) -> &'static [char] {
        match self {
            Self::Read => &['r'],
            Self::Create | Self::Stage | Self::Snapshot => &['c', 'w'],
            Self::Write => &['w'],
            Self::Append => &['a', 'w'],
            Self::Delete => &['d'],
            Self::DeleteVersion => &['x'],
            Self::DeletePermanently => &['y'],
            Self::BreakLease => &['w', 'd'],
            Self::Tags => &['t'],
        }
    }
}

impl ResourceGrant {
    fn permits(&self, need: Need) -> Result<(), Shared> {
        let letters: &[char] = match need {
            Need::List => &['l'],
            Need::Find => &['f'],
            Need::Blob(access) => access.letters(),
            Need::Batch | Need::AccountInformation => return Ok(()),
            Need::ReadService
            | Need::WriteService
            | Need::ListContainers
            | Need::DelegationKey
            | Need::FindInAccount
            | Need::CreateContainer
            | Need::DeleteContainer
            | Need::ReadContainer
            | Need::WriteContainer
            | Need::LeaseContainer
            | Need::BreakContainerLease
            | Need::Policies => return Err(Shared::AuthorizationFailure),
        };
        match self.permissions.contains(letters) {
            true => Ok(()),
            false => Err(Shared::AuthorizationPermissionMismatch),
        }
    }
}

fn account_permits(grant: &AccountGrant, need: Need) -> Result<(), Shared> {
    let (resource_type, permissions): (char, &[char]) = match need {
        Need::ReadService => ('s', &['r']),
        Need::WriteService => ('s', &['w']),
        Need::ListContainers => ('s', &['l']),
        Need::FindInAccount => ('s', &['f']),
        Need::CreateContainer => ('c', &['c', 'w']),
        Need::DeleteContainer => ('c', &['d']),
        Need::ReadContainer => ('c', &['r']),
        Need::WriteContainer | Need::LeaseContainer => ('c', &['w']),
        Need::BreakContainerLease => ('c', &['w', 'd']),
        Need::List => ('c', &['l']),
        Need::Find => ('c', &['f']),
        Need::Blob(access) => ('o', access.letters()),
        Need::Batch | Need::AccountInformation => return Ok(()),
        Need::Policies | Need::DelegationKey => return Err(Shared::AuthorizationFailure),
    };
    grant.permits(resource_type, permissions)
}

impl RoleGrant {
    fn permits(&self, need: Need) -> Result<(), Shared> {
        use Role::{Contributor, Delegator, Owner, Reader};
        let roles: &[Role] = match need {
            Need::ReadService | Need::WriteService => {
                return if self.manages { Ok(()) } else { Err(Shared::AuthorizationPermissionMismatch) };
            }
            Need::Policies => return Err(Shared::AuthorizationFailure),
            Need::AccountInformation => return Ok(()),
            Need::DelegationKey => &[Owner, Contributor, Reader, Delegator],
            Need::ListContainers | Need::ReadContainer | Need::List | Need::Blob(Access::Read) => {
                &[Owner, Contributor, Reader]
            }
            Need::CreateContainer
            | Need::DeleteContainer
            | Need::WriteContainer
            | Need::LeaseContainer
            | Need::BreakContainerLease
            | Need::Batch => &[Owner, Contributor],
            // The service lets only owners see and change tags.
            Need::FindInAccount | Need::Find | Need::Blob(Access::Tags | Access::DeletePermanently) => {
                &[Owner]
            }
            Need::Blob(
                Access::Create
                | Access::Stage
                | Access::Snapshot
                | Access::Write
                | Access::Append
                | Access::Delete
                | Access::DeleteVersion
                | Access::BreakLease,
            ) => &[Owner, Contributor],
        };
        match roles.iter().any(|role| self.roles.contains(role)) {
            true => Ok(()),
            false => Err(Shared::AuthorizationPermissionMismatch),
        }
    }

    /// What tokens may allow that are signed with a delegation key of this user.
    pub fn rights(&self) -> Rights {
        let has = |role| self.roles.contains(&role);
        match () {
            () if has(Role::Owner) => Rights::Everything,
            () if has(Role::Contributor) => Rights::Write,
            () if has(Role::Reader) => Rights::Read,
            () => Rights::Nothing,
        }
    }
}

/// For the log.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anyone => f.write_str("no credentials"),
            Self::Owner => f.write_str("an account key"),
            Self::Resource(grant) => write!(f, "a token with permissions {:?}", grant.permissions),
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
            Self::ListContainers => "listing containers",
            Self::AccountInformation => "reading what the account is",
            Self::DelegationKey => "a user delegation key",
            Self::Batch => "a batch",
            Self::FindInAccount => "finding blobs of the account by tags",
            Self::CreateContainer => "creating a container",
            Self::DeleteContainer => "deleting a container",
            Self::ReadContainer => "reading a container's properties",
            Self::WriteContainer => "changing a container's metadata",
            Self::LeaseContainer => "leasing a container",
            Self::BreakContainerLease => "breaking a container's lease",
            Self::Policies => "stored access policies",
            Self::List => "listing blobs",
            Self::Find => "finding blobs by tags",
            Self::Blob(Access::Read) => "reading a blob",
            Self::Blob(Access::Create) => "creating a blob",
            Self::Blob(Access::Stage) => "uploading a block",
            Self::Blob(Access::Snapshot) => "taking a snapshot",
            Self::Blob(Access::Write) => "writing a blob",
            Self::Blob(Access::Append) => "appending to a blob",
            Self::Blob(Access::Delete) => "deleting a blob",
            Self::Blob(Access::DeleteVersion) => "deleting a version",
            Self::Blob(Access::DeletePermanently) => "deleting for good",
            Self::Blob(Access::BreakLease) => "breaking a blob's lease",
            Self::Blob(Access::Tags) => "reading or changing tags",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs() -> Vec<(&'static str, Need)> {
        use Access::*;
        vec![
            ("get service", Need::ReadService),
            ("set service", Need::WriteService),
            ("containers", Need::ListContainers),
            ("information", Need::AccountInformation),
            ("key", Need::DelegationKey),
            ("batch", Need::Batch),
            ("find all", Need::FindInAccount),
            ("create container", Need::CreateContainer),
            ("delete container", Need::DeleteContainer),
            ("get container", Need::ReadContainer),
            ("set container", Need::WriteContainer),
            ("lease container", Need::LeaseContainer),
            ("break container", Need::BreakContainerLease),
            ("acl", Need::Policies),
            ("list", Need::List),
            ("find", Need::Find),
            ("read", Need::Blob(Read)),
            ("create", Need::Blob(Create)),
            ("stage", Need::Blob(Stage)),
            ("snapshot", Need::Blob(Snapshot)),
            ("write", Need::Blob(Write)),
            ("append", Need::Blob(Append)),
            ("delete", Need::Blob(Delete)),
            ("delete version", Need::Blob(DeleteVersion)),
            ("delete for good", Need::Blob(DeletePermanently)),
            ("break", Need::Blob(BreakLease)),
            ("tags", Need::Blob(Tags)),
        ]
    }

    fn permitted(grant: &Grant) -> String {
        let names: Vec<&str> = needs()
            .into_iter()
            .filter(|(_, need)| grant.permits(*need).is_ok())
            .map(|(name, _)| name)
            .collect();
        names.join(", ")
    }

    #[test]
    fn what_is_public_can_only_be_read() {
        for need in [Need::ReadContainer, Need::List, Need::Blob(Access::Read)] {
            assert_eq!(Grant::Anyone.permits(need), Ok(()), "{need}");
        }
        let others =
            [Need::ReadService, Need::ListContainers, Need::WriteContainer, Need::Policies, Need::Batch];
        let of_blobs = [Access::Create, Access::Write, Access::Delete, Access::BreakLease, Access::Tags];
        for need in others.into_iter().chain(of_blobs.map(Need::Blob)) {
            assert_eq!(Grant::Anyone.permits(need), Err(Shared::AuthorizationFailure.into()), "{need}");
        }
    }

    #[test]
    fn a_token_of_a_container_permits_what_its_letters_say() {
        let check = |permissions: &str, expected: &str| {
            let grant = Grant::Resource(ResourceGrant { permissions: permissions.to_owned() });
            assert_eq!(permitted(&grant), expected, "{permissions}");
        };
        check("r", "information, batch, read");
        check("a", "information, batch, append");
        check("c", "information, batch, create, stage, snapshot");
        check("w", "information, batch, create, stage, snapshot, write, append, break");
        check("d", "information, batch, delete, break");
        check("xy", "information, batch, delete version, delete for good");
        check("lf", "information, batch, list, find");
        check("t", "information, batch, tags");
        let grant = Grant::Resource(ResourceGrant { permissions: "racwdxyltf".to_owned() });
        for need in [Need::CreateContainer, Need::DeleteContainer, Need::ReadContainer, Need::Policies] {
            assert_eq!(grant.permits(need), Err(Shared::AuthorizationFailure.into()), "{need}");
        }
    }

    #[test]
    fn a_token_of_the_account_is_for_kinds_of_resources() {
        let check = |resource_types: &str, permissions: &str, expected: &str| {
            let (resource_types, permissions) = (resource_types.to_owned(), permissions.to_owned());
            let grant = Grant::Account(AccountGrant { permissions, resource_types });
            assert_eq!(permitted(&grant), expected);
        };
        check("s", "rwlf", "get service, set service, containers, information, batch, find all");
        check(
            "c",
            "rwdlcf",
            "information, batch, create container, delete container, get container, set container, lease container, break container, list, find",
        );
        check(
            "o",
            "racwdxyt",
            "information, batch, read, create, stage, snapshot, write, append, delete, delete version, delete for good, break, tags",
        );
    }

    #[test]
    fn roles_permit_what_the_service_says() {
        let check = |roles: &[Role], manages: bool, expected: &str| {
            let grant = RoleGrant { roles: roles.to_vec(), manages, named: Vec::new() };
            assert_eq!(permitted(&Grant::Role(grant)), expected, "{roles:?}");
        };
        check(&[], true, "get service, set service, information");
        check(&[Role::Delegator], false, "information, key");
        check(&[Role::Reader], false, "containers, information, key, get container, list, read");
        check(
            &[Role::Contributor],
            false,
            "containers, information, key, batch, create container, delete container, get container, set container, lease container, break container, list, read, create, stage, snapshot, write, append, delete, delete version, break",
        );
        check(
            &[Role::Owner],
            false,
            "containers, information, key, batch, find all, create container, delete container, get container, set container, lease container, break container, list, find, read, create, stage, snapshot, write, append, delete, delete version, delete for good, break, tags",
        );
    }

    #[test]
    fn only_a_token_that_writes_overwrites() {
        let resource = |permissions: &str| Grant::Resource(ResourceGrant { permissions: permissions.into() });
        assert!(resource("cw").overwrites() && Grant::Owner.overwrites());
        assert!(!resource("rcd").overwrites());
    }
}
