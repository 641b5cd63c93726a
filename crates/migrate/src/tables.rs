//! Lists the tables of an account, and creates them in the target.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::{AccountName, ServiceKind, limits};
use store::{StoredName, TableRef};

use crate::Shared;
use crate::error::{Error, Side};
use crate::patience::persist;

/// Those of all services, by stored name.
pub type Tables = BTreeMap<String, TableRef>;

/// Whether a store has no data of this account.
pub async fn is_empty(engine: &Shared, account: &AccountName) -> Result<bool, Error> {
    let failed = Error::of_account(Side::Target, account);
    let mut is_empty = true;
    for service in ServiceKind::ALL {
        let tables = persist(|| engine.list_tables(account, service, "", 1)).await.map_err(&failed)?;
        let document = persist(|| engine.service_metadata(account, service)).await.map_err(&failed)?;
        is_empty &= tables.names.is_empty() && document.is_none();
    }
    Ok(is_empty)
}

pub async fn list(side: Side, engine: &Shared, account: &AccountName) -> Result<Tables, Error> {
    let mut found = Tables::new();
    for service in ServiceKind::ALL {
        let mut from = Some(String::new());
        while let Some(start) = from {
            let list = || engine.list_tables(account, service, &start, limits::PAGE_ENTITIES_MAX);
            let page = persist(list).await.map_err(Error::of_account(side, account))?;
            let table = |name: StoredName| TableRef { account: account.clone(), service, name };
            let tables = page.names.into_iter().map(table);
            found.extend(tables.map(|table| (table.stored_name().into_owned(), table)));
            from = page.next;
        }
    }
    Ok(found)
}

/// The tables of one account in the target.
pub struct Settler<'a> {
    pub target: &'a Shared,
    pub present: &'a Tables,
}

/// What a table in the target holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Nothing,
    WhatItHeld,
}

impl Settler<'_> {
    /// Makes sure that the target has a table with exactly this name and this metadata.
    pub async fn settle(&self, table: &TableRef, metadata: Option<Bytes>) -> Result<Holds, Error> {
        let failed = Error::of_table(Side::Target, table);
        if let Some(present) = self.present.get(table.stored_name().as_ref()) {
            let found = persist(|| self.target.table_metadata(table)).await.map_err(&failed)?;
            let is_same_name = present.name.as_str() == table.name.as_str();
            if is_same_name && (metadata.is_some() || found.is_none()) {
                if let Some(metadata) = metadata {
                    self.set_metadata(table, found, metadata).await?;
                }
                return Ok(Holds::WhatItHeld);
            }
            // Neither the case of a name nor missing metadata can be restored, so the table is created again.
            self.drop(table).await?;
        }
        match persist(|| self.target.create_table(table, metadata.clone())).await {
            // There already after an attempt whose outcome was unknown, and then with the same metadata.
            Ok(()) | Err(store::Error::TableAlreadyExists) => Ok(Holds::Nothing),
            Err(error) => Err(failed(error)),
        }
    }

    pub async fn drop(&self, table: &TableRef) -> Result<(), Error> {
        match persist(|| self.target.drop_table(table)).await {
            Ok(()) | Err(store::Error::TableNotFound) => Ok(()),
            Err(error) => Err(Error::of_table(Side::Target, table)(error)),
        }
    }

    /// Again from what is there, if that was not what was found: an answer may have been lost.
    async fn set_metadata(
        &self,
        table: &TableRef,
        mut found: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<(), Error> {
        let failed = Error::of_table(Side::Target, table);
        while found.as_ref() != Some(&metadata) {
            let replace = || self.target.replace_table_metadata(table, found.clone(), metadata.clone());
            if persist(replace).await.map_err(&failed)? {
                break;
            }
            found = persist(|| self.target.table_metadata(table)).await.map_err(&failed)?;
        }
        Ok(())
    }
}
