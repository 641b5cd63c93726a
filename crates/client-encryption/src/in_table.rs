//! Implements the client's `EntityEncryption` for a policy.

use std::collections::BTreeSet;

use async_trait::async_trait;
use partita_client::{Entity, EntityEncryption, Result};

use crate::EncryptionPolicy;

#[async_trait]
impl EntityEncryption for EncryptionPolicy {
    async fn encrypt(&self, entity: Entity, marked: &BTreeSet<String>) -> Result<Entity> {
        self.encrypt_marked(entity, marked).await
    }

    fn check_merge(&self, entity: &Entity, marked: &BTreeSet<String>) -> Result<()> {
        self.check_merge_marked(entity, marked)
    }

    async fn decrypt(&self, entity: Entity, selected: &[String]) -> Result<Entity> {
        self.decrypt_selected(entity, selected).await
    }

    fn extend_select(&self, names: &mut Vec<String>) {
        Self::extend_select(self, names);
    }
}
