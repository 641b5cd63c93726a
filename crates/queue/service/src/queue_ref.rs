//! A queue of an account, and the table that an engine keeps it in.

use std::fmt;

use queue_model::{AccountName, QueueName, ServiceKind};
use store::{Fault, StoredName, TableRef};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueRef {
    pub account: AccountName,
    pub name: QueueName,
}

impl QueueRef {
    pub fn new(account: &AccountName, name: &QueueName) -> Self {
        Self { account: account.clone(), name: name.clone() }
    }

    pub(crate) fn table(&self) -> Result<TableRef, Fault> {
        let name = StoredName::parse(ServiceKind::Queue, self.name.as_str());
        let name = name.ok_or_else(|| Fault::bug("an engine can't keep this queue's name").about(self))?;
        Ok(TableRef { account: self.account.clone(), service: ServiceKind::Queue, name })
    }
}

impl fmt::Display for QueueRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {} of account {}", self.name, self.account)
    }
}
