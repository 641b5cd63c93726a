//! What a proof lets its holder do with queues.

use front::access::{Denial, Proof, ResourceToken, Roles};
use front::sas::SPECIFIC_REFUSALS;
use protocol::signing::sas::Sas;
use queue_service::{Grant, QueueGrant, Role, RoleGrant};

/// The built-in roles for the data of queues, by name and by id.
const ROLES: [(Role, [&str; 2]); 4] = [
    (Role::Reader, ["Storage Queue Data Reader", "19e7f393-937e-4f77-808e-94535e297925"]),
    (Role::Contributor, ["Storage Queue Data Contributor", "974c5e8b-45b9-4653-ba55-5f855dd0fb88"]),
    (
        Role::MessageProcessor,
        ["Storage Queue Data Message Processor", "8a0f0c08-91a1-4084-bc3d-661d67233fed"],
    ),
    (Role::MessageSender, ["Storage Queue Data Message Sender", "c6a89b2d-59bc-44d0-9896-0f6e12d7b80a"]),
];

pub fn grant(proof: Proof) -> Result<Grant, Denial> {
    match proof {
        // Nothing here is public.
        Proof::Anyone => Err(Denial::new(common::Refusal::AuthorizationFailure, "no credentials were sent")),
        Proof::Owner => Ok(Grant::Owner),
        Proof::Account(grant) => Ok(Grant::Account(grant)),
        Proof::Resource(ResourceToken { sas, permissions }) => match *sas {
            Sas::Queue(token) => {
                let hides = token.terms.version.as_str() < SPECIFIC_REFUSALS;
                Ok(Grant::Queue(QueueGrant { permissions, hides }))
            }
            Sas::Account(_) | Sas::Table(_) | Sas::Blob(_) => {
                Err(Denial::failed("the token is not a queue's"))
            }
        },
        Proof::Roles(roles, _) => Ok(Grant::Role(of_roles(roles))),
    }
}

fn of_roles(roles: Roles) -> RoleGrant {
    let known = ROLES.into_iter().filter(|(_, spellings)| roles.has(*spellings));
    RoleGrant { roles: known.map(|(role, _)| role).collect(), manages: roles.manages, named: roles.named }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_known_by_name_and_id() {
        let check = |named: &[&str], expected: &[Role]| {
            let named = named.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(of_roles(Roles { named, manages: false }).roles, expected);
        };
        check(&["Storage Queue Data Reader"], &[Role::Reader]);
        check(&["974C5E8B-45b9-4653-ba55-5f855dd0fb88"], &[Role::Contributor]);
        check(
            &["storage queue data message sender", "8a0f0c08-91a1-4084-bc3d-661d67233fed"],
            &[Role::MessageProcessor, Role::MessageSender],
        );
        check(&["Owner", "Storage Table Data Contributor"], &[]);
    }
}
