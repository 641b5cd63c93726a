//! What a shared access signature of an account lets its holder do, in any service.

use std::fmt;

use crate::Refusal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountGrant {
    /// Letters of `sp`.
    pub permissions: String,
    /// Letters of `sco`: service, container (table, queue), object (entity, message).
    pub resource_types: String,
}

impl AccountGrant {
    /// The service's order: the kind of resource, then a permission. One of these letters is enough.
    pub fn permits(&self, resource_type: char, permissions: &[char]) -> Result<(), Refusal> {
        self.is_for(resource_type)?;
        match self.permissions.contains(permissions) {
            true => Ok(()),
            false => Err(Refusal::AuthorizationPermissionMismatch),
        }
    }

    /// Whether it is for such resources, whatever it permits.
    pub fn is_for(&self, resource_type: char) -> Result<(), Refusal> {
        match self.resource_types.contains(resource_type) {
            true => Ok(()),
            false => Err(Refusal::AuthorizationResourceTypeMismatch),
        }
    }
}

/// For the log.
impl fmt::Display for AccountGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { permissions, resource_types } = self;
        write!(f, "an account token with permissions {permissions:?} and resource types {resource_types:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_checked_before_the_permission() {
        let grant = AccountGrant { permissions: "rw".to_owned(), resource_types: "co".to_owned() };
        let check = |resource_type, permissions: &[char], expected| {
            assert_eq!(
                grant.permits(resource_type, permissions),
                expected,
                "{resource_type} {permissions:?}"
            );
        };
        check('c', &['r'], Ok(()));
        check('o', &['c', 'w'], Ok(()));
        check('o', &['d'], Err(Refusal::AuthorizationPermissionMismatch));
        check('s', &['r'], Err(Refusal::AuthorizationResourceTypeMismatch));
        check('s', &['d'], Err(Refusal::AuthorizationResourceTypeMismatch));
    }
}
