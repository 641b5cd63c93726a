//! What operations on blobs cost of the account's and the blob's target, and what a refused client hears.
//!
//! Every operation costs one. Content costs nothing: what bounds it is the network.

use std::time::Instant;

use blob_model::{AccountName, Refusal, ServiceKind};
use common::hot_partitions::{Load, Place};
use common::throttle::{ResourceName, Target};

use crate::{BlobRef, BlobService, ContainerRef, Result};

impl BlobService {
    /// An operation on a blob, if there is anything left to spend.
    pub(crate) fn admit(&self, blob: &BlobRef) -> Result<()> {
        let container = &blob.container;
        self.spend(&container.account, Some([container.name.as_str(), blob.name.as_str()]))
    }

    /// A list of a container's blobs.
    pub(crate) fn admit_container(&self, container: &ContainerRef) -> Result<()> {
        self.spend(&container.account, Some([container.name.as_str(), ""]))
    }

    pub(crate) fn admit_account(&self, account: &AccountName) -> Result<()> {
        self.spend(account, None)
    }

    fn spend(&self, account: &AccountName, parts: Option<[&str; 2]>) -> Result<()> {
        if self.throttle.is_none() && self.hot.is_none() {
            return Ok(());
        }
        let now = Instant::now();
        let resource = parts.as_ref().map(|parts| ResourceName { service: ServiceKind::Blob, parts });
        let admitted =
            self.throttle.as_ref().map_or(Ok(()), |throttle| throttle.admit(account, resource, now));
        if let (Some(hot), Some([container, blob])) = (&self.hot, parts) {
            let partition = Some(blob).filter(|blob| !blob.is_empty());
            let place = Place { service: ServiceKind::Blob, resource: container, partition };
            let refusals = u64::from(admitted.is_err());
            hot.record(account, place, Load { requests: 1, refusals, ..Load::default() }, now);
        }
        let refusal = |target| match target {
            Target::Account => Refusal::Shared(common::Refusal::AccountBusy),
            Target::Resource => Refusal::Shared(common::Refusal::Busy),
        };
        admitted.map_err(refusal)?;
        if let Some(throttle) = &self.throttle {
            throttle.spend(account, resource, 1, now);
        }
        Ok(())
    }
}
