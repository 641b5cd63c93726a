//! A container of an account, and the table that an engine keeps it in.

use std::fmt;

use blob_model::{AccountName, ContainerName, ServiceKind};
use store::{Fault, StoredName, TableRef};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContainerRef {
    pub account: AccountName,
    pub name: ContainerName,
}

impl ContainerRef {
    pub fn new(account: &AccountName, name: &ContainerName) -> Self {
        Self { account: account.clone(), name: name.clone() }
    }

    pub(crate) fn table(&self) -> Result<TableRef, Fault> {
        let name = StoredName::parse(ServiceKind::Blob, self.name.as_str());
        let name =
            name.ok_or_else(|| Fault::bug("an engine can't keep this container's name").about(self))?;
        Ok(TableRef { account: self.account.clone(), service: ServiceKind::Blob, name })
    }
}

impl fmt::Display for ContainerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "container {} of account {}", self.name, self.account)
    }
}
