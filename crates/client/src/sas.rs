//! Shared access signatures and the policies they can name.

use std::fmt;

use model::{DateTime, ServiceKind};
use protocol::access_policies;
use wire::connection_string::{Credential, Endpoint};
use wire::signing::sas;

use crate::error::{Error, Result};

/// The newest version that both tables and queues support.
const VERSION: &str = "2019-02-02";
/// With permissions for tags.
const BLOB_VERSION: &str = "2020-12-06";

/// The permissions of one service's tokens and policies: [`TablePermissions`], [`QueuePermissions`] and [`BlobPermissions`].
pub trait Permissions: Copy + fmt::Debug + PartialEq + Letters {}

mod private {
    pub trait Letters {
        fn letters(self) -> String;

        fn of(letters: &str) -> Self;
    }
}

use private::Letters;

/// The operations on entities that a token allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TablePermissions {
    pub read: bool,
    pub add: bool,
    pub update: bool,
    pub delete: bool,
}

impl TablePermissions {
    /// To get and query.
    pub const READ: Self = Self { read: true, add: false, update: false, delete: false };
    pub const ALL: Self = Self { read: true, add: true, update: true, delete: true };
}

impl Permissions for TablePermissions {}

impl Letters for TablePermissions {
    fn letters(self) -> String {
        letters([(self.read, 'r'), (self.add, 'a'), (self.update, 'u'), (self.delete, 'd')])
    }

    fn of(letters: &str) -> Self {
        let has = |letter| letters.contains(letter);
        Self { read: has('r'), add: has('a'), update: has('u'), delete: has('d') }
    }
}

/// The operations on blobs that a token allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobPermissions {
    pub read: bool,
    /// To append to an append blob.
    pub add: bool,
    /// To write a blob that does not exist.
    pub create: bool,
    pub write: bool,
    pub delete: bool,
    /// To list the blobs of a container.
    pub list: bool,
    /// To read and set tags.
    pub tags: bool,
}

impl BlobPermissions {
    pub const READ: Self =
        Self { read: true, add: false, create: false, write: false, delete: false, list: false, tags: false };
    /// To read and list.
    pub const BROWSE: Self = Self { list: true, ..Self::READ };
    /// To write any blob, and to read none.
    pub const WRITE: Self = Self { read: false, add: true, create: true, write: true, ..Self::READ };
    pub const ALL: Self =
        Self { read: true, add: true, create: true, write: true, delete: true, list: true, tags: true };
}

impl Permissions for BlobPermissions {}

impl Letters for BlobPermissions {
    /// In the order that the service demands.
    fn letters(self) -> String {
        letters([
            (self.read, 'r'),
            (self.add, 'a'),
            (self.create, 'c'),
            (self.write, 'w'),
            (self.delete, 'd'),
            (self.list, 'l'),
            (self.tags, 't'),
        ])
    }

    fn of(letters: &str) -> Self {
        let has = |letter| letters.contains(letter);
        Self {
            read: has('r'),
            add: has('a'),
            create: has('c'),
            write: has('w'),
            delete: has('d'),
            list: has('l'),
            tags: has('t'),
        }
    }
}

/// The operations on messages that a token allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuePermissions {
    /// To peek, and to read the metadata and the number of messages.
    pub read: bool,
    /// To put.
    pub add: bool,
    /// To renew and update.
    pub update: bool,
    /// To get and delete.
    pub process: bool,
}

impl QueuePermissions {
    /// To peek and count.
    pub const READ: Self = Self { read: true, add: false, update: false, process: false };
    /// To put, for a program that sends messages.
    pub const SEND: Self = Self { read: false, add: true, update: false, process: false };
    /// To get, renew and delete, for a worker.
    pub const WORK: Self = Self { read: false, add: false, update: true, process: true };
    pub const ALL: Self = Self { read: true, add: true, update: true, process: true };
}

impl Permissions for QueuePermissions {}

impl Letters for QueuePermissions {
    fn letters(self) -> String {
        letters([(self.read, 'r'), (self.add, 'a'), (self.update, 'u'), (self.process, 'p')])
    }

    fn of(letters: &str) -> Self {
        let has = |letter| letters.contains(letter);
        Self { read: has('r'), add: has('a'), update: has('u'), process: has('p') }
    }
}

/// In the order that services require.
fn letters<const N: usize>(granted: [(bool, char); N]) -> String {
    granted.into_iter().filter_map(|(granted, letter)| granted.then_some(letter)).collect()
}

/// A stored access policy of a table or a queue: the terms of the tokens that name it. If it is removed, they grant nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPolicy<P = TablePermissions> {
    pub id: String,
    pub start: Option<DateTime>,
    pub expiry: Option<DateTime>,
    pub permissions: Option<P>,
}

impl<P> Default for AccessPolicy<P> {
    fn default() -> Self {
        Self { id: String::new(), start: None, expiry: None, permissions: None }
    }
}

/// The policies in the answer of a service.
pub(crate) fn read_policies<P: Permissions>(
    service: ServiceKind,
    body: &[u8],
) -> Result<Vec<AccessPolicy<P>>> {
    let policies = access_policies::read(service, body).map_err(|refusal| {
        Error::Unreadable(format!("the policies can't be read: {}", refusal.code(service)))
    })?;
    let policy = |policy: access_policies::AccessPolicy| AccessPolicy {
        id: policy.id,
        start: policy.start,
        expiry: policy.expiry,
        permissions: policy.permissions.as_deref().map(P::of),
    };
    Ok(policies.into_iter().map(policy).collect())
}

/// The body that sets these policies.
pub(crate) fn write_policies<P: Permissions>(policies: &[AccessPolicy<P>]) -> Vec<u8> {
    let policy = |policy: &AccessPolicy<P>| access_policies::AccessPolicy {
        id: policy.id.clone(),
        start: policy.start,
        expiry: policy.expiry,
        permissions: policy.permissions.map(P::letters),
    };
    let document = access_policies::write(&policies.iter().map(policy).collect::<Vec<_>>());
    // Some services refuse the byte order mark that answers begin with.
    document.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&document).to_vec()
}

/// The terms that all kinds of tokens have.
#[derive(Clone, Debug, Default)]
struct Terms {
    permissions: String,
    start: Option<DateTime>,
    expiry: Option<DateTime>,
    ip: String,
    https_only: bool,
}

impl Terms {
    fn new(permissions: impl Into<String>, expiry: DateTime) -> Self {
        Self { permissions: permissions.into(), expiry: Some(expiry), ..Self::default() }
    }

    fn to_wire(&self) -> sas::Terms {
        let time = |time: Option<DateTime>| time.map(DateTime::to_seconds_string).unwrap_or_default();
        sas::Terms {
            version: VERSION.to_owned(),
            permissions: self.permissions.clone(),
            start: time(self.start),
            expiry: time(self.expiry),
            ip: self.ip.clone(),
            protocol: if self.https_only { "https".to_owned() } else { String::new() },
        }
    }
}

/// The setters of the terms that all kinds of tokens have. A macro, so that each kind has them as its own methods.
macro_rules! terms {
    () => {
        /// Valid from `start` on.
        pub fn start(mut self, start: DateTime) -> Self {
            self.terms.start = Some(start);
            self
        }

        /// Only from this IP address, or from a range of them: `10.0.0.1-10.0.0.9`.
        pub fn ip(mut self, ip: impl Into<String>) -> Self {
            self.terms.ip = ip.into();
            self
        }

        pub fn https_only(mut self) -> Self {
            self.terms.https_only = true;
            self
        }
    };
}

/// The terms of a token for one table: permissions, time, and a range of keys. Signed by [`Table::sign`](crate::Table::sign).
///
/// ```
/// use std::time::Duration;
/// use partita_client::{DateTime, TablePermissions, TableSas};
///
/// let hour = DateTime::now().plus(Duration::from_secs(3600));
/// let sas = TableSas::new(TablePermissions::READ, hour).partitions("a", "m").https_only();
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct TableSas {
    terms: Terms,
    policy: String,
    from: (String, String),
    to: (String, String),
}

impl TableSas {
    /// Valid until `expiry`.
    pub fn new(permissions: TablePermissions, expiry: DateTime) -> Self {
        Self { terms: Terms::new(permissions.letters(), expiry), ..Self::default() }
    }

    /// Grants what the table's stored access policy of this name grants, as long as the policy exists.
    pub fn of_policy(id: impl Into<String>) -> Self {
        Self { policy: id.into(), ..Self::default() }
    }

    terms!();

    /// Only partitions from the first to the last, both included.
    pub fn partitions(self, first: impl Into<String>, last: impl Into<String>) -> Self {
        Self { from: (first.into(), String::new()), to: (last.into(), String::new()), ..self }
    }

    /// Only entities from the first to the last, as (PartitionKey, RowKey), both included.
    pub fn entities(self, first: (&str, &str), last: (&str, &str)) -> Self {
        let own = |key: (&str, &str)| (key.0.to_owned(), key.1.to_owned());
        Self { from: own(first), to: own(last), ..self }
    }
}

/// The terms of a token for the messages of one queue. Signed by [`Queue::sign`](crate::Queue::sign).
///
/// ```
/// use std::time::Duration;
/// use partita_client::{DateTime, QueuePermissions, QueueSas};
///
/// let hour = DateTime::now().plus(Duration::from_secs(3600));
/// let sas = QueueSas::new(QueuePermissions::SEND, hour).https_only();
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct QueueSas {
    terms: Terms,
    policy: String,
}

impl QueueSas {
    /// Valid until `expiry`.
    pub fn new(permissions: QueuePermissions, expiry: DateTime) -> Self {
        Self { terms: Terms::new(permissions.letters(), expiry), ..Self::default() }
    }

    /// Grants what the queue's stored access policy of this name grants, as long as the policy exists.
    pub fn of_policy(id: impl Into<String>) -> Self {
        Self { policy: id.into(), ..Self::default() }
    }

    terms!();
}

/// The terms of a token for a container, a blob or a snapshot. Signed by [`Container::sign`](crate::Container::sign) and
/// [`Blob::sign`](crate::Blob::sign).
///
/// ```
/// use std::time::Duration;
/// use partita_client::{BlobPermissions, BlobSas, DateTime};
///
/// let hour = DateTime::now().plus(Duration::from_secs(3600));
/// let sas = BlobSas::new(BlobPermissions::READ, hour).https_only();
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct BlobSas {
    terms: Terms,
    policy: String,
}

impl BlobSas {
    /// Valid until `expiry`.
    pub fn new(permissions: BlobPermissions, expiry: DateTime) -> Self {
        Self { terms: Terms::new(permissions.letters(), expiry), ..Self::default() }
    }

    /// Grants what the container's stored access policy of this name grants, as long as the policy exists.
    pub fn of_policy(id: impl Into<String>) -> Self {
        Self { policy: id.into(), ..Self::default() }
    }

    terms!();
}

/// The terms of a token for an account. Signed by [`TableService::sign`](crate::TableService::sign),
/// [`QueueService::sign`](crate::QueueService::sign) and [`BlobService::sign`](crate::BlobService::sign).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct AccountSas {
    terms: Terms,
    resources: String,
    services: Vec<ServiceKind>,
}

impl AccountSas {
    /// Everything that the account key allows on the data of a service.
    pub fn all(expiry: DateTime) -> Self {
        Self::new("rwdlacup", "sco", expiry)
    }

    /// All reads.
    pub fn read_only(expiry: DateTime) -> Self {
        Self::new("rl", "sco", expiry)
    }

    /// Letters as Azure documents them: permissions of `rwdlacup`, resource types of `s` (service), `c` (tables or queues)
    /// and `o` (entities or messages).
    pub fn new(permissions: impl Into<String>, resources: impl Into<String>, expiry: DateTime) -> Self {
        Self { terms: Terms::new(permissions, expiry), resources: resources.into(), services: Vec::new() }
    }

    terms!();

    /// For these services, instead of the one that signs it.
    pub fn services(self, services: impl IntoIterator<Item = ServiceKind>) -> Self {
        Self { services: services.into_iter().collect(), ..self }
    }
}

pub(crate) fn sign_table(endpoint: &Endpoint, table: &str, of: &TableSas) -> Result<String> {
    let sas = sas::TableSas {
        terms: of.terms.to_wire(),
        table: table.to_owned(),
        identifier: of.policy.clone(),
        start_partition: of.from.0.clone(),
        start_row: of.from.1.clone(),
        end_partition: of.to.0.clone(),
        end_row: of.to.1.clone(),
    };
    sign(endpoint, sas::Sas::Table(sas))
}

pub(crate) fn sign_queue(endpoint: &Endpoint, queue: &str, of: &QueueSas) -> Result<String> {
    let (queue, identifier) = (queue.to_owned(), of.policy.clone());
    sign(
        endpoint,
        sas::Sas::Queue(sas::QueueSas { terms: of.terms.to_wire(), queue, identifier, delegation: None }),
    )
}

pub(crate) fn sign_container(endpoint: &Endpoint, container: &str, of: &BlobSas) -> Result<String> {
    sign_in_container(endpoint, container, sas::SignedResource::Container, of)
}

pub(crate) fn sign_blob(
    endpoint: &Endpoint,
    container: &str,
    blob: &str,
    snapshot: Option<&str>,
    of: &BlobSas,
) -> Result<String> {
    let blob = blob.to_owned();
    let resource = match snapshot {
        Some(time) => sas::SignedResource::Snapshot { blob, time: time.to_owned() },
        None => sas::SignedResource::Blob(blob),
    };
    sign_in_container(endpoint, container, resource, of)
}

fn sign_in_container(
    endpoint: &Endpoint,
    container: &str,
    resource: sas::SignedResource,
    of: &BlobSas,
) -> Result<String> {
    let sas = sas::BlobSas {
        terms: sas::Terms { version: BLOB_VERSION.to_owned(), ..of.terms.to_wire() },
        container: container.to_owned(),
        resource,
        identifier: of.policy.clone(),
        encryption_scope: String::new(),
        overrides: sas::Overrides::default(),
        delegation: None,
    };
    sign(endpoint, sas::Sas::Blob(sas))
}

/// For the service that signs it, unless the token names others.
pub(crate) fn sign_account(endpoint: &Endpoint, service: ServiceKind, of: &AccountSas) -> Result<String> {
    let named = |kind: &ServiceKind| match of.services.as_slice() {
        [] => *kind == service,
        services => services.contains(kind),
    };
    let services = ServiceKind::ALL.iter().filter(|kind| named(kind)).map(|kind| kind.letter()).collect();
    let (terms, resource_types) = (of.terms.to_wire(), of.resources.clone());
    sign(
        endpoint,
        sas::Sas::Account(sas::AccountSas {
            terms,
            services,
            resource_types,
            encryption_scope: String::new(),
        }),
    )
}

fn sign(endpoint: &Endpoint, sas: sas::Sas) -> Result<String> {
    let Credential::Key(key) = &endpoint.credential else {
        return Err(Error::invalid(
            "only an account's key can sign a token, and this service was given a token itself",
        ));
    };
    Ok(sas.to_query(&sas.sign(&endpoint.account, key)))
}
