//! Lists the tables of an account, and creates them in the target.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::{AccountName, ServiceKind, TableName, limits};
use store::TableRef;

use crate::Shared;
use crate::error::{Error, Side};
use crate::patience::persist;

/// By lower-case name.
pub type Tables = BTreeMap<String, TableName>;

/// Whether a store has no data of this account.
pub async fn is_empty(engine: &Shared, account: &AccountName) -> Result<bool, Error> {
    let failed = Error::of_account(Side::Target, account);
    let tables = persist(|| engine.list_tables(account, "", 1)).await.map_err(&failed)?;
    let mut is_empty = tables.names.is_empty();
    for service in ServiceKind::ALL {
        let document = persist(|| engine.service_metadata(account, service)).await.map_err(&failed)?;
        is_empty &= document.is_none();
    }
    Ok(is_empty)
}

pub async fn list(side: Side, engine: &Shared, account: &AccountName) -> Result<Tables, Error> {
    let (mut found, mut from) = (Tables::new(), Some(String::new()));
    while let Some(start) = from {
        let page = persist(|| engine.list_tables(account, &start, limits::PAGE_ENTITIES_MAX)).await;
        let page = page.map_err(Error::of_account(side, account))?;
        found.extend(page.names.into_iter().map(|name| (name.folded().to_owned(), name)));
        from = page.next;
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
        if let Some(name) = self.present.get(table.name.folded()) {
            let found = persist(|| self.target.table_metadata(table)).await.map_err(&failed)?;
            let can_stay = name.as_str() == table.name.as_str() && (metadata.is_some() || found.is_none());
            if can_stay {
                if let Some(metadata) = metadata.filter(|metadata| found.as_ref() != Some(metadata)) {
                    self.set_metadata(table, metadata).await?;
                }
                return Ok(Holds::WhatItHeld);
            }
            // Neither the case of a name nor missing metadata can be restored, so the table is created again.
            self.drop(table).await?;
        }
        match persist(|| self.target.create_table(table)).await {
            // An earlier attempt with an unknown outcome has created it.
            Ok(()) | Err(store::Error::TableAlreadyExists) => {}
            Err(error) => return Err(failed(error)),
        }
        if let Some(metadata) = metadata {
            self.set_metadata(table, metadata).await?;
        }
        Ok(Holds::Nothing)
    }

    pub async fn drop(&self, table: &TableRef) -> Result<(), Error> {
        match persist(|| self.target.drop_table(table)).await {
            Ok(()) | Err(store::Error::TableNotFound) => Ok(()),
            Err(error) => Err(Error::of_table(Side::Target, table)(error)),
        }
    }

    async fn set_metadata(&self, table: &TableRef, metadata: Bytes) -> Result<(), Error> {
        let set = persist(|| self.target.set_table_metadata(table, metadata.clone())).await;
        set.map_err(Error::of_table(Side::Target, table))
    }
}
