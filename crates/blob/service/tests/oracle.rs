//! What containers should do, said once more and differently: no rows, no documents, no state machine.
//!
//! A lease is who has it, until when it can be used, and whether somebody has broken it. What was broken can be used until
//! then, too. All else follows from these three.

use std::collections::BTreeMap;
use std::time::Duration;

use blob_model::{DateTime, LeaseAction, LeaseDuration, LeaseId, Leased, Metadata, PublicAccess};

#[derive(Clone, Debug, Default)]
pub struct Oracle {
    pub containers: BTreeMap<&'static str, Known>,
}

#[derive(Clone, Debug)]
pub struct Known {
    pub changed: DateTime,
    pub metadata: Metadata,
    pub access: PublicAccess,
    pub policies: Option<Vec<u8>>,
    pub lease: LeaseOracle,
}

/// A lease, if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaseOracle(Option<KnownLease>);

#[derive(Clone, Copy, Debug)]
struct KnownLease {
    id: LeaseId,
    seconds: Option<u64>,
    until: DateTime,
    is_broken: bool,
}

/// A code of the service, or what was told.
pub type Told<T> = Result<T, &'static str>;

impl Known {
    pub fn new(changed: DateTime, metadata: Metadata, access: PublicAccess) -> Self {
        Self { changed, metadata, access, policies: None, lease: LeaseOracle::default() }
    }
}

impl LeaseOracle {
    /// What a write leaves of it.
    pub fn after_write(&mut self, now: DateTime) {
        self.0 = self.0.filter(|lease| now < lease.until);
    }

    fn is_usable(&self, now: DateTime) -> bool {
        self.0.is_some_and(|lease| now < lease.until)
    }

    /// `status state duration`.
    pub fn words(&self, now: DateTime) -> String {
        match self.0 {
            None => "unlocked available".to_owned(),
            Some(lease) => match (now < lease.until, lease.is_broken) {
                (true, true) => "locked breaking".to_owned(),
                (true, false) if lease.seconds.is_none() => "locked leased infinite".to_owned(),
                (true, false) => "locked leased fixed".to_owned(),
                (false, true) => "unlocked broken".to_owned(),
                (false, false) => "unlocked expired".to_owned(),
            },
        }
    }

    /// A request that names a lease, or none.
    pub fn check(&self, named: Option<LeaseId>, needs_it: bool, now: DateTime, of: Leased) -> Told<()> {
        let (absent, other) = match of {
            Leased::Container => {
                ("LeaseNotPresentWithContainerOperation", "LeaseIdMismatchWithContainerOperation")
            }
            Leased::Blob => ("LeaseNotPresentWithBlobOperation", "LeaseIdMismatchWithBlobOperation"),
        };
        match (named, self.0) {
            (None, _) if needs_it && self.is_usable(now) => Err("LeaseIdMissing"),
            (None, _) => Ok(()),
            (Some(_), None) => Err(absent),
            (Some(_), Some(_)) if !self.is_usable(now) => Err("LeaseLost"),
            (Some(named), Some(lease)) if named != lease.id => Err(other),
            (Some(_), Some(_)) => Ok(()),
        }
    }

    /// The id and the seconds that the answer tells.
    pub fn act(&mut self, action: LeaseAction, now: DateTime) -> Told<(Option<LeaseId>, Option<u64>)> {
        const ABSENT: &str = "LeaseNotPresentWithLeaseOperation";
        const MISMATCH: &str = "LeaseIdMismatchWithLeaseOperation";
        let is_usable = self.is_usable(now);
        let far = |seconds: Option<u64>| seconds.map_or(DateTime::MAX, |s| now.plus(Duration::from_secs(s)));
        match action {
            LeaseAction::Acquire { duration, proposed, fresh } => {
                if let Some(lease) = self.0.filter(|_| is_usable) {
                    match (proposed == Some(lease.id), lease.is_broken) {
                        (true, false) => {}
                        (true, true) => return Err("LeaseIsBreakingAndCannotBeAcquired"),
                        (false, _) => return Err("LeaseAlreadyPresent"),
                    }
                }
                let id = proposed.unwrap_or(fresh);
                let seconds = match duration {
                    LeaseDuration::Infinite => None,
                    LeaseDuration::Seconds(seconds) => Some(u64::from(seconds)),
                };
                self.0 = Some(KnownLease { id, seconds, until: far(seconds), is_broken: false });
                Ok((Some(id), None))
            }
            LeaseAction::Renew { id } => {
                let lease = self.0.as_mut().ok_or(ABSENT)?;
                if lease.id != id {
                    return Err(MISMATCH);
                }
                if lease.is_broken {
                    return Err("LeaseIsBrokenAndCannotBeRenewed");
                }
                lease.until = far(lease.seconds);
                Ok((Some(id), None))
            }
            LeaseAction::Change { id, proposed } => {
                let lease = self.0.as_mut().filter(|_| is_usable).ok_or(ABSENT)?;
                if lease.id != id && lease.id != proposed {
                    return Err(MISMATCH);
                }
                if lease.is_broken {
                    return Err("LeaseIsBreakingAndCannotBeChanged");
                }
                lease.id = proposed;
                Ok((Some(proposed), None))
            }
            LeaseAction::Release { id } => {
                if self.0.ok_or(ABSENT)?.id != id {
                    return Err(MISMATCH);
                }
                self.0 = None;
                Ok((None, None))
            }
            LeaseAction::Break { .. } => Err("asked for with its seconds"),
        }
    }

    pub fn break_off(&mut self, period: Option<u64>, now: DateTime) -> Told<u64> {
        let lease = self.0.as_mut().ok_or("LeaseNotPresentWithLeaseOperation")?;
        let is_endless = lease.until == DateTime::MAX;
        let asked = match period {
            Some(seconds) => now.plus(Duration::from_secs(seconds)),
            None if is_endless => now,
            None => lease.until,
        };
        lease.until = lease.until.min(asked).max(now);
        lease.is_broken = true;
        Ok(u64::try_from((lease.until.ticks() - now.ticks()) / 10_000_000).unwrap())
    }
}
