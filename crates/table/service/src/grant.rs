//! What a caller may touch: which operations, which table, which keys.

use std::fmt;

use common::{AccountGrant, Refusal};
use model::{Cut, EntityKey, KeyRange, TableName};

/// The right that an operation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    ReadService,
    WriteService,
    ListTables,
    CreateTable,
    DeleteTable,
    /// Stored access policies, which only the owner may use.
    Policies,
    /// Entities of this table.
    Entities(TableName, Access),
    /// A batch. Each of its parts has a need of its own.
    Batch,
    /// What the server can do beyond Azure.
    Discover,
    /// How the account is used: its filters without literals, and its hot partitions.
    Observe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Insert,
    Update,
    /// Insert or update: needs both permissions.
    Upsert,
    Delete,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Signed with an account key: may do everything.
    Owner,
    Table(TableGrant),
    Account(AccountGrant),
    Role(RoleGrant),
}

/// From a table's shared access signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableGrant {
    pub table: TableName,
    /// Letters of `raud`.
    pub permissions: String,
    pub range: KeyRange,
    /// A token of an old version hears "not found" instead of "not authorized".
    pub hides: bool,
}

/// From a bearer token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleGrant {
    pub role: Option<Role>,
    /// Whether one of the roles is for managing the account, which gives no access to its data.
    pub manages: bool,
    /// All roles that the token names, for the log.
    pub named: Vec<String>,
}

/// The service's built-in roles for table data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Reader,
    Contributor,
}

impl Grant {
    /// Checks in the service's order: the kind of resource, then the permission.
    pub fn permits(&self, need: &Need) -> Result<(), Refusal> {
        match self {
            Self::Owner => Ok(()),
            Self::Table(grant) => grant
                .permits(need)
                .map_err(|refusal| if grant.hides { Refusal::ResourceNotFound } else { refusal }),
            Self::Account(grant) => account_permits(grant, need),
            Self::Role(grant) => grant.permits(need),
        }
    }

    /// The entities that this caller can see.
    pub fn range(&self) -> KeyRange {
        match self {
            Self::Table(grant) => grant.range.clone(),
            Self::Owner | Self::Account(_) | Self::Role(_) => KeyRange::all(),
        }
    }

    /// Whether this caller can see the entity.
    pub fn covers(&self, key: &EntityKey) -> bool {
        match self {
            Self::Table(grant) => grant.range.contains(key.partition.as_str(), key.row.as_str()),
            Self::Owner | Self::Account(_) | Self::Role(_) => true,
        }
    }

    /// Whether this caller may write the entity, whether it exists or not.
    pub fn reaches(&self, key: &EntityKey) -> Result<(), Refusal> {
        match self {
            _ if self.covers(key) => Ok(()),
            Self::Table(grant) if grant.hides => Err(Refusal::ResourceNotFound),
            Self::Owner | Self::Table(_) | Self::Account(_) | Self::Role(_) => {
                Err(Refusal::AuthorizationFailure)
            }
        }
    }
}

impl TableGrant {
    fn permits(&self, need: &Need) -> Result<(), Refusal> {
        match need {
            Need::Entities(table, _) if *table != self.table => Err(Refusal::AuthorizationFailure),
            Need::Entities(_, access) => access.check(&self.permissions),
            Need::Batch | Need::Discover => Ok(()),
            Need::ReadService
            | Need::Observe
            | Need::WriteService
            | Need::ListTables
            | Need::CreateTable
            | Need::DeleteTable
            | Need::Policies => Err(Refusal::AuthorizationFailure),
        }
    }
}

fn account_permits(grant: &AccountGrant, need: &Need) -> Result<(), Refusal> {
    match need {
        Need::ReadService => grant.permits('s', &['r']),
        Need::WriteService => grant.permits('s', &['w']),
        Need::ListTables => grant.permits('c', &['l']),
        Need::CreateTable => grant.permits('c', &['c', 'w']),
        Need::DeleteTable => grant.permits('c', &['d']),
        Need::Policies | Need::Observe => Err(Refusal::AuthorizationFailure),
        Need::Discover => Ok(()),
        Need::Batch => grant.is_for('o'),
        Need::Entities(_, access) => {
            grant.is_for('o')?;
            access.check(&grant.permissions)
        }
    }
}

impl RoleGrant {
    fn permits(&self, need: &Need) -> Result<(), Refusal> {
        let allowed = match need {
            // The service hides policies from bearer tokens.
            Need::Policies => return Err(Refusal::ResourceNotFound),
            Need::ReadService | Need::WriteService => self.manages,
            Need::Discover => true,
            Need::ListTables | Need::Entities(_, Access::Read) | Need::Batch => self.role.is_some(),
            Need::CreateTable
            | Need::DeleteTable
            | Need::Observe
            | Need::Entities(_, Access::Insert | Access::Update | Access::Upsert | Access::Delete) => {
                self.role == Some(Role::Contributor)
            }
        };
        if allowed { Ok(()) } else { Err(Refusal::AuthorizationPermissionMismatch) }
    }
}

/// For the log.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("an account key"),
            Self::Table(grant) => {
                write!(f, "a token for table {} with permissions {:?}", grant.table, grant.permissions)?;
                let all = KeyRange::all();
                if grant.range.start != all.start {
                    write!(f, ", from {}", Bound(&grant.range.start))?;
                }
                if grant.range.end != all.end {
                    write!(f, ", up to {}", Bound(&grant.range.end))?;
                }
                Ok(())
            }
            Self::Account(grant) => write!(f, "{grant}"),
            Self::Role(grant) if grant.named.is_empty() => f.write_str("a bearer token without roles"),
            Self::Role(grant) => write!(f, "a bearer token with the roles {:?}", grant.named),
        }
    }
}

/// One end of a range of keys.
struct Bound<'a>(&'a Cut);

impl fmt::Display for Bound<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Cut::Before(partition, row) | Cut::After(partition, row) => {
                write!(f, "partition {partition:?}, row {row:?}")
            }
            Cut::AfterPartition(partition) => write!(f, "partition {partition:?}"),
            Cut::End => f.write_str("the end"),
        }
    }
}

/// For the log: the refused action.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadService => f.write_str("reading service properties or statistics"),
            Self::WriteService => f.write_str("changing service properties"),
            Self::ListTables => f.write_str("listing tables"),
            Self::CreateTable => f.write_str("creating a table"),
            Self::DeleteTable => f.write_str("deleting a table"),
            Self::Policies => f.write_str("stored access policies"),
            Self::Batch => f.write_str("a batch"),
            Self::Discover => f.write_str("discovery"),
            Self::Observe => f.write_str("advice or hot partitions"),
            Self::Entities(table, access) => match access {
                Access::Read => write!(f, "reading entities of {table}"),
                Access::Insert => write!(f, "inserting into {table}"),
                Access::Update => write!(f, "updating entities of {table}"),
                Access::Upsert => write!(f, "inserting or updating entities of {table}"),
                Access::Delete => write!(f, "deleting entities of {table}"),
            },
        }
    }
}

impl Access {
    fn check(self, permissions: &str) -> Result<(), Refusal> {
        let needed = match self {
            Self::Read => "r",
            Self::Insert => "a",
            Self::Update => "u",
            Self::Upsert => "au",
            Self::Delete => "d",
        };
        if needed.chars().all(|letter| permissions.contains(letter)) {
            Ok(())
        } else {
            Err(Refusal::AuthorizationPermissionMismatch)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs() -> Vec<(&'static str, Need)> {
        let entities = |access| Need::Entities(TableName::parse("Books").unwrap(), access);
        vec![
            ("get properties", Need::ReadService),
            ("set properties", Need::WriteService),
            ("list", Need::ListTables),
            ("create", Need::CreateTable),
            ("drop", Need::DeleteTable),
            ("acl", Need::Policies),
            ("discover", Need::Discover),
            ("observe", Need::Observe),
            ("read", entities(Access::Read)),
            ("insert", entities(Access::Insert)),
            ("update", entities(Access::Update)),
            ("upsert", entities(Access::Upsert)),
            ("delete", entities(Access::Delete)),
        ]
    }

    fn check(grant: &Grant, allowed: &[&str]) {
        for (name, need) in needs() {
            // Whoever is known may ask what the server can do.
            let expected = name == "discover" || allowed.contains(&name);
            assert_eq!(grant.permits(&need).is_ok(), expected, "{name} under {grant:?}");
        }
    }

    fn table(name: &str, permissions: &str) -> Grant {
        Grant::Table(TableGrant {
            table: TableName::parse(name).unwrap(),
            permissions: permissions.to_owned(),
            range: KeyRange::all(),
            hides: false,
        })
    }

    fn account(resource_types: &str, permissions: &str) -> Grant {
        Grant::Account(AccountGrant {
            permissions: permissions.to_owned(),
            resource_types: resource_types.to_owned(),
        })
    }

    #[test]
    fn a_table_token_reaches_entities_of_its_table_alone() {
        check(&table("bOOKS", "r"), &["read"]);
        check(&table("Books", "a"), &["insert"]);
        check(&table("Books", "u"), &["update"]);
        check(&table("Books", "au"), &["insert", "update", "upsert"]);
        check(&table("Books", "d"), &["delete"]);
        check(&table("Books", ""), &[]);
        check(&table("Others", "raud"), &[]);
    }

    #[test]
    fn an_account_token_reaches_what_its_letters_name() {
        check(&account("s", "rwdlacup"), &["get properties", "set properties"]);
        check(&account("so", "l"), &[]);
        check(&account("c", "rwdlacup"), &["list", "create", "drop"]);
        check(&account("o", "rwdlacup"), &["read", "insert", "update", "upsert", "delete"]);
        check(&account("sco", "r"), &["get properties", "read"]);
        check(&account("sco", "w"), &["set properties", "create"]);
        check(&account("sco", "c"), &["create"]);
        check(&account("sco", "d"), &["drop", "delete"]);
        check(&account("sco", "l"), &["list"]);
        check(&account("sco", "a"), &["insert"]);
        check(&account("sco", "u"), &["update"]);
        check(&Grant::Owner, &needs().iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }

    #[test]
    fn a_bearer_token_reaches_what_its_role_does() {
        let grant = |role| Grant::Role(RoleGrant { role, manages: false, named: Vec::new() });
        let manager = |role| Grant::Role(RoleGrant { role, manages: true, named: Vec::new() });
        check(&manager(None), &["get properties", "set properties"]);
        check(&manager(Some(Role::Reader)), &["get properties", "set properties", "list", "read"]);
        check(&grant(None), &[]);
        check(&grant(Some(Role::Reader)), &["list", "read"]);
        check(
            &grant(Some(Role::Contributor)),
            &["list", "create", "drop", "observe", "read", "insert", "update", "upsert", "delete"],
        );
        assert_eq!(grant(None).permits(&Need::Batch), Err(Refusal::AuthorizationPermissionMismatch));
        for role in [None, Some(Role::Reader), Some(Role::Contributor)] {
            assert_eq!(grant(role).permits(&Need::Policies), Err(Refusal::ResourceNotFound));
            let service = grant(role).permits(&Need::ReadService);
            assert_eq!(service, Err(Refusal::AuthorizationPermissionMismatch));
        }
    }

    #[test]
    fn refusals_name_the_check_that_failed() {
        let read = needs().swap_remove(8).1;
        assert_eq!(account("c", "r").permits(&read), Err(Refusal::AuthorizationResourceTypeMismatch));
        assert_eq!(account("o", "a").permits(&read), Err(Refusal::AuthorizationPermissionMismatch));
        assert_eq!(table("Books", "a").permits(&read), Err(Refusal::AuthorizationPermissionMismatch));
        assert_eq!(table("Others", "r").permits(&read), Err(Refusal::AuthorizationFailure));
        let Grant::Table(grant) = table("Books", "a") else { unreachable!() };
        let old = Grant::Table(TableGrant { hides: true, ..grant });
        assert_eq!(old.permits(&read), Err(Refusal::ResourceNotFound));
    }
}
