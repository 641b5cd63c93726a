//! Create, delete, list and look at containers; their metadata, policies, public access and leases.

use blob_model::{
    AccountName, Conditions, ContainerName, DateTime, Etag, Lease, LeaseAction, LeaseId, LeaseOutcome,
    LeaseView, Leased, Metadata, Operand, PublicAccess, Refusal, Seen, ServiceKind, Tags,
};
use bytes::Bytes;
use store::Fault;

use crate::container_document::ContainerDocument;
use crate::content::moves;
use crate::{BlobService, ContainerRef, Result};

/// Containers that are asked of the engine at once.
const LIST_ROWS: usize = 1000;

/// What a request says beside what it asks for. Containers know only conditions of time.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub conditions: Conditions,
    pub lease: Option<LeaseId>,
}

/// What a container says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerProperties {
    pub etag: Etag,
    pub lease: LeaseView,
    pub access: PublicAccess,
    pub metadata: Metadata,
}

/// The answer of Get Container ACL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies {
    pub etag: Etag,
    pub access: PublicAccess,
    /// As they were stored, if they ever were.
    pub policies: Option<Bytes>,
}

#[derive(Clone, Copy, Debug)]
pub struct ListQuery<'a> {
    pub prefix: &'a str,
    /// The first name to list, whether or not there is a container of that name.
    pub from: &'a str,
    pub limit: usize,
    /// Also what the service itself has made.
    pub system: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerEntry {
    pub name: ContainerName,
    pub properties: ContainerProperties,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerPage {
    pub containers: Vec<ContainerEntry>,
    /// The first container of the next page.
    pub next: Option<ContainerName>,
}

/// Whether a change moves ETag and Last-Modified.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moves {
    Etag,
    Nothing,
}

impl BlobService {
    pub async fn create_container(
        &self,
        container: &ContainerRef,
        metadata: Metadata,
        access: PublicAccess,
    ) -> Result<Etag> {
        let _pass = self.gate.pass().await?;
        let _turn = self.turns.take(container).await;
        let changed = self.clock.tick();
        let document = ContainerDocument::new(changed, metadata, access);
        self.engine.create_table(&container.table()?, Some(document.write())).await?;
        Ok(Etag(changed))
    }

    /// Needs the lease, if there is one. A leased blob in it does not matter.
    pub async fn delete_container(&self, container: &ContainerRef, request: &Request) -> Result<()> {
        let _pass = self.gate.pass().await?;
        let _turn = self.turns.take(container).await;
        let table = container.table()?;
        loop {
            let (stored, document) = self.container_document(container).await?;
            document.lease.check_write(request.lease, Leased::Container, self.clock.now())?;
            check(&document, request)?;
            // Judged again if another server has changed it meanwhile.
            if self.engine.drop_table_if(&table, stored).await? {
                return Ok(());
            }
        }
    }

    pub async fn container_properties(
        &self,
        container: &ContainerRef,
        lease: Option<LeaseId>,
    ) -> Result<ContainerProperties> {
        let (_, document) = self.container_document(container).await?;
        let now = self.clock.now();
        document.lease.check_read(lease, Leased::Container, now)?;
        Ok(properties(&document, now))
    }

    /// Replaces all of it.
    pub async fn set_container_metadata(
        &self,
        container: &ContainerRef,
        metadata: &Metadata,
        request: &Request,
    ) -> Result<Etag> {
        let change = |document: &mut ContainerDocument, _| {
            document.metadata = metadata.clone();
            Ok(())
        };
        self.change_container(container, request, Moves::Etag, change).await.map(|((), etag)| etag)
    }

    pub async fn container_policies(
        &self,
        container: &ContainerRef,
        lease: Option<LeaseId>,
    ) -> Result<Policies> {
        let (_, document) = self.container_document(container).await?;
        document.lease.check_read(lease, Leased::Container, self.clock.now())?;
        let ContainerDocument { changed, access, policies, .. } = document;
        Ok(Policies { etag: Etag(changed), access, policies })
    }

    /// Replaces policies and public access together.
    pub async fn set_container_policies(
        &self,
        container: &ContainerRef,
        policies: Bytes,
        access: PublicAccess,
        request: &Request,
    ) -> Result<Etag> {
        let change = |document: &mut ContainerDocument, _| {
            (document.policies, document.access) = (Some(policies.clone()), access);
            Ok(())
        };
        self.change_container(container, request, Moves::Etag, change).await.map(|((), etag)| etag)
    }

    /// The ETag stays as it is.
    pub async fn lease_container(
        &self,
        container: &ContainerRef,
        action: LeaseAction,
        conditions: Conditions,
    ) -> Result<(LeaseOutcome, Etag)> {
        let change = |document: &mut ContainerDocument, now| {
            let outcome = document.lease.act(action, Leased::Container, now)?;
            document.lease = outcome.lease;
            Ok(outcome)
        };
        // An action names its lease itself, and judges it.
        let request = Request { conditions, lease: None };
        self.change_container(container, &request, Moves::Nothing, change).await
    }

    /// In the order of their names.
    pub async fn list_containers(
        &self,
        account: &AccountName,
        query: ListQuery<'_>,
    ) -> Result<ContainerPage> {
        let mut page = ContainerPage { containers: Vec::new(), next: None };
        let mut from = Some(query.from.max(query.prefix).to_owned());
        while let Some(start) = from {
            let found = self.engine.list_tables(account, ServiceKind::Blob, &start, LIST_ROWS).await?;
            for name in found.names.into_iter().filter(|name| !moves::is_table(name)) {
                // Names are in order, so none behind this one has the prefix.
                if !name.as_str().starts_with(query.prefix) {
                    return Ok(page);
                }
                let unlike =
                    |_| Fault::damaged("a stored container has a name that no container has").about(&name);
                let name = ContainerName::parse(name.as_str()).map_err(unlike)?;
                if name.is_system() && !query.system {
                    continue;
                }
                if page.containers.len() == query.limit {
                    page.next = Some(name);
                    return Ok(page);
                }
                let container = ContainerRef::new(account, &name);
                match self.container_document(&container).await {
                    Ok((_, document)) => {
                        let properties = properties(&document, self.clock.now());
                        page.containers.push(ContainerEntry { name, properties });
                    }
                    // Deleted since it was listed.
                    Err(crate::Error::Refused(Refusal::ContainerNotFound)) => {}
                    Err(error) => return Err(error),
                }
            }
            from = found.next;
        }
        Ok(page)
    }

    /// The document, and its bytes to compare with.
    async fn container_document(
        &self,
        container: &ContainerRef,
    ) -> Result<(Option<Bytes>, ContainerDocument)> {
        let stored = self.engine.table_metadata(&container.table()?).await?;
        let document = ContainerDocument::read(stored.as_ref()).map_err(|fault| fault.about(container))?;
        Ok((stored, document))
    }

    /// Judges the request and changes the document; again if another server has changed it meanwhile.
    async fn change_container<T>(
        &self,
        container: &ContainerRef,
        request: &Request,
        moves: Moves,
        change: impl Fn(&mut ContainerDocument, DateTime) -> std::result::Result<T, Refusal>,
    ) -> Result<(T, Etag)> {
        let _pass = self.gate.pass().await?;
        let _turn = self.turns.take(container).await;
        let table = container.table()?;
        loop {
            let (stored, mut document) = self.container_document(container).await?;
            let now = self.clock.now();
            document.lease.check_read(request.lease, Leased::Container, now)?;
            check(&document, request)?;
            let told = change(&mut document, now)?;
            if moves == Moves::Etag {
                document.changed = self.clock.tick_above(document.changed);
            }
            if self.engine.replace_table_metadata(&table, stored, document.write()).await? {
                return Ok((told, Etag(document.changed)));
            }
        }
    }
}

fn check(document: &ContainerDocument, request: &Request) -> std::result::Result<(), Refusal> {
    let tags = Tags::default();
    let seen = Seen { etag: Etag(document.changed), tags: &tags };
    request.conditions.check(Some(seen), Operand::Write, false)
}

fn properties(document: &ContainerDocument, now: DateTime) -> ContainerProperties {
    let lease: &Lease = &document.lease;
    ContainerProperties {
        etag: Etag(document.changed),
        lease: lease.view(now),
        access: document.access,
        metadata: document.metadata.clone(),
    }
}
