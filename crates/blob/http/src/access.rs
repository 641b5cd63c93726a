//! What a proof lets its holder do with blobs, and what a token says of the answer.

use common::Refusal as Shared;
use front::access::{Denial, Proof, ResourceToken, Roles};
use front::bearer::Identity;
use protocol::signing::sas::{Overrides, Sas, SignedResource};

use crate::grant::{Access, Grant, Need, ResourceGrant, Role, RoleGrant};
use crate::route::{LeaseVerb, Operation};

/// The built-in roles for the data of blobs, by name and by id.
const ROLES: [(Role, [&str; 2]); 4] = [
    (Role::Owner, ["Storage Blob Data Owner", "b7e6dc6d-f1e8-4753-8033-0f276bb0955b"]),
    (Role::Contributor, ["Storage Blob Data Contributor", "ba92f5b4-2d11-453d-a403-e96b0029c9fe"]),
    (Role::Reader, ["Storage Blob Data Reader", "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"]),
    (Role::Delegator, ["Storage Blob Delegator", "db58b8e5-c6ad-4a2a-8342-4190687cbf4a"]),
];

/// What the caller may do, and the headers that its token sets in the answer of a read.
#[derive(Debug)]
pub struct Admitted {
    pub grant: Grant,
    pub overrides: Option<Overrides>,
    /// Whose bearer token it is.
    pub identity: Option<Box<Identity>>,
}

/// `of_snapshot`: the request names a snapshot or a version, which a token of the blob itself does not cover; nor does a token
/// of a snapshot cover the blob.
pub fn admitted(proof: Proof, of_snapshot: bool) -> Result<Admitted, Denial> {
    let plain = |grant| Admitted { grant, overrides: None, identity: None };
    match proof {
        Proof::Anyone => Ok(plain(Grant::Anyone)),
        Proof::Owner => Ok(plain(Grant::Owner)),
        Proof::Account(grant) => Ok(plain(Grant::Account(grant))),
        Proof::Resource(ResourceToken { sas, permissions }) => match *sas {
            Sas::Blob(token) => {
                match token.resource {
                    SignedResource::Blob(_) if of_snapshot => {
                        let why = "the token is the blob's, not its snapshots'";
                        return Err(Denial::new(Shared::AuthorizationFailure, why));
                    }
                    SignedResource::Snapshot { .. } | SignedResource::Version { .. } if !of_snapshot => {
                        let why = "the token is a snapshot's or a version's, not the blob's";
                        return Err(Denial::new(Shared::AuthorizationFailure, why));
                    }
                    SignedResource::Directory { .. } => {
                        return Err(Denial::failed("sr=d is for accounts with a hierarchical namespace"));
                    }
                    _ => {}
                }
                let overrides = Some(token.overrides);
                let grant = Grant::Resource(ResourceGrant { permissions });
                Ok(Admitted { grant, overrides, identity: None })
            }
            Sas::Account(_) | Sas::Table(_) | Sas::Queue(_) => {
                Err(Denial::failed("the token is not a container's or a blob's"))
            }
        },
        Proof::Roles(roles, identity) => {
            let grant = Grant::Role(of_roles(roles));
            Ok(Admitted { grant, overrides: None, identity: Some(identity) })
        }
    }
}

pub fn of_roles(roles: Roles) -> RoleGrant {
    let known = ROLES.into_iter().filter(|(_, spellings)| roles.has(*spellings));
    RoleGrant { roles: known.map(|(role, _)| role).collect(), manages: roles.manages, named: roles.named }
}

/// What an operation asks of its caller. `at_container`: its address names a container.
pub fn need(operation: Operation, at_container: bool) -> Need {
    match operation {
        Operation::ListContainers => Need::ListContainers,
        Operation::GetServiceProperties | Operation::GetStatistics => Need::ReadService,
        Operation::SetServiceProperties => Need::WriteService,
        Operation::GetAccountInformation => Need::AccountInformation,
        Operation::GetDelegationKey => Need::DelegationKey,
        Operation::Batch => Need::Batch,
        Operation::FindBlobs if at_container => Need::Find,
        Operation::FindBlobs => Need::FindInAccount,
        Operation::CreateContainer => Need::CreateContainer,
        Operation::DeleteContainer => Need::DeleteContainer,
        Operation::GetContainerProperties | Operation::GetContainerMetadata => Need::ReadContainer,
        Operation::SetContainerMetadata | Operation::RestoreContainer => Need::WriteContainer,
        Operation::GetContainerPolicies | Operation::SetContainerPolicies => Need::Policies,
        Operation::LeaseContainer(LeaseVerb::Break) => Need::BreakContainerLease,
        Operation::LeaseContainer(_) => Need::LeaseContainer,
        Operation::ListBlobs => Need::List,
        Operation::GetBlob
        | Operation::GetBlobProperties
        | Operation::GetBlobMetadata
        | Operation::GetBlockList
        | Operation::GetPageRanges => Need::Blob(Access::Read),
        Operation::PutBlob
        | Operation::PutBlobFromUrl
        | Operation::CopyBlob
        | Operation::CopyBlobFromUrl
        | Operation::PutBlockList => Need::Blob(Access::Create),
        Operation::PutBlock | Operation::PutBlockFromUrl => Need::Blob(Access::Stage),
        Operation::SnapshotBlob => Need::Blob(Access::Snapshot),
        Operation::AppendBlock | Operation::AppendBlockFromUrl => Need::Blob(Access::Append),
        Operation::LeaseBlob(LeaseVerb::Break) => Need::Blob(Access::BreakLease),
        Operation::LeaseBlob(_)
        | Operation::AbortCopy
        | Operation::SetBlobMetadata
        | Operation::SetBlobProperties
        | Operation::SetBlobTier
        | Operation::UndeleteBlob
        | Operation::SealBlob
        | Operation::PutPage
        | Operation::PutPageFromUrl
        | Operation::ClearPages => Need::Blob(Access::Write),
        Operation::DeleteBlob => Need::Blob(Access::Delete),
        Operation::GetBlobTags | Operation::SetBlobTags => Need::Blob(Access::Tags),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::signing::sas::{BlobSas, Terms};

    #[test]
    fn a_token_is_for_the_blob_or_for_one_state_of_it() {
        let check = |resource: SignedResource, of_snapshot: bool, expected: bool| {
            let sas = Sas::Blob(BlobSas {
                terms: Terms::default(),
                container: "c".to_owned(),
                resource: resource.clone(),
                identifier: String::new(),
                encryption_scope: String::new(),
                overrides: Overrides::default(),
                delegation: None,
            });
            let token = ResourceToken { sas: Box::new(sas), permissions: "r".to_owned() };
            let admitted = admitted(Proof::Resource(token), of_snapshot);
            assert_eq!(admitted.is_ok(), expected, "{resource:?} {of_snapshot}");
        };
        let (blob, time) = (|| "b".to_owned(), || "2022-07-13T23:46:14.4048519Z".to_owned());
        for of_snapshot in [false, true] {
            check(SignedResource::Container, of_snapshot, true);
            check(SignedResource::Blob(blob()), of_snapshot, !of_snapshot);
            check(SignedResource::Snapshot { blob: blob(), time: time() }, of_snapshot, of_snapshot);
            check(SignedResource::Version { blob: blob(), time: time() }, of_snapshot, of_snapshot);
        }
    }

    #[test]
    fn roles_are_known_by_name_and_id() {
        let check = |named: &[&str], expected: &[Role]| {
            let named = named.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(of_roles(Roles { named, manages: false }).roles, expected);
        };
        check(&["Storage Blob Data Reader"], &[Role::Reader]);
        check(&["BA92F5B4-2d11-453d-a403-e96b0029c9fe"], &[Role::Contributor]);
        check(&["storage blob delegator", "Storage Blob Data Owner"], &[Role::Owner, Role::Delegator]);
        check(&["Owner", "Storage Table Data Contributor"], &[]);
    }
}
