//! Leases of containers and blobs: who may write, and until when. A pure state machine: each step is told the time.
//!
//! Spec: blob-operations 3. Nothing here runs by itself: a lease that ends is found to have ended when somebody looks.

use std::time::Duration;

use common::DateTime;

use crate::refusal::Leased;
use crate::{LeaseId, Refusal, limits};

/// What is stored of a lease. The default is that there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lease {
    #[default]
    Available,
    /// Acquired, and not broken since. A lease that has an end is expired from then on.
    Held { id: LeaseId, duration: LeaseDuration, ends: Option<DateTime> },
    /// Broken by a client; it can still be used until then.
    Broken { id: LeaseId, from: DateTime },
}

/// How long a lease is held after it was acquired or renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseDuration {
    Infinite,
    Seconds(u8),
}

/// What clients are told of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    Available,
    Leased,
    Expired,
    Breaking,
    Broken,
}

/// The words of headers and lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseView {
    pub status: &'static str,
    pub state: &'static str,
    /// Only while it is leased.
    pub duration: Option<&'static str>,
}

/// How long a lease that is broken can still be used: whole seconds, up to 60.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakPeriod(u8);

/// What Lease Blob and Lease Container ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// `fresh` is the id of a new lease for which the client proposes none.
    Acquire {
        duration: LeaseDuration,
        proposed: Option<LeaseId>,
        fresh: LeaseId,
    },
    Renew {
        id: LeaseId,
    },
    Change {
        id: LeaseId,
        proposed: LeaseId,
    },
    Release {
        id: LeaseId,
    },
    Break {
        period: Option<BreakPeriod>,
    },
}

/// The lease after an action, and what the answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseOutcome {
    pub lease: Lease,
    /// `x-ms-lease-id`, of all but Release and Break.
    pub id: Option<LeaseId>,
    /// `x-ms-lease-time`, of Break.
    pub seconds_left: Option<u64>,
}

impl LeaseDuration {
    /// The header `x-ms-lease-duration`.
    pub fn of_header(value: &str) -> Result<Self, Refusal> {
        let invalid = || Refusal::HeaderInvalid { name: "x-ms-lease-duration", value: value.to_owned() };
        match value.trim_ascii() {
            "-1" => Ok(Self::Infinite),
            seconds => {
                let seconds = seconds.parse().ok().filter(|seconds| limits::LEASE_SECONDS.contains(seconds));
                seconds.map(Self::Seconds).ok_or_else(invalid)
            }
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Infinite => "infinite",
            Self::Seconds(_) => "fixed",
        }
    }

    fn end(self, now: DateTime) -> Option<DateTime> {
        match self {
            Self::Infinite => None,
            Self::Seconds(seconds) => Some(now.plus(Duration::from_secs(seconds.into()))),
        }
    }
}

impl BreakPeriod {
    /// The header `x-ms-lease-break-period`.
    pub fn of_header(value: &str) -> Result<Self, Refusal> {
        let seconds = value.trim_ascii().parse().ok().filter(|seconds| *seconds <= limits::BREAK_SECONDS_MAX);
        let invalid = || Refusal::HeaderInvalid { name: "x-ms-lease-break-period", value: value.to_owned() };
        seconds.map(Self).ok_or_else(invalid)
    }
}

impl LeaseState {
    const fn is_locked(self) -> bool {
        matches!(self, Self::Leased | Self::Breaking)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Leased => "leased",
            Self::Expired => "expired",
            Self::Breaking => "breaking",
            Self::Broken => "broken",
        }
    }
}

impl Lease {
    pub fn state(&self, now: DateTime) -> LeaseState {
        match self {
            Self::Available => LeaseState::Available,
            Self::Held { ends: Some(ends), .. } if *ends <= now => LeaseState::Expired,
            Self::Held { .. } => LeaseState::Leased,
            Self::Broken { from, .. } if *from <= now => LeaseState::Broken,
            Self::Broken { .. } => LeaseState::Breaking,
        }
    }

    pub fn view(&self, now: DateTime) -> LeaseView {
        let state = self.state(now);
        let duration = match self {
            Self::Held { duration, .. } if state == LeaseState::Leased => Some(duration.name()),
            _ => None,
        };
        let status = if state.is_locked() { "locked" } else { "unlocked" };
        LeaseView { status, state: state.name(), duration }
    }

    fn id(&self) -> Option<LeaseId> {
        match self {
            Self::Available => None,
            Self::Held { id, .. } | Self::Broken { id, .. } => Some(*id),
        }
    }

    /// Lease Blob or Lease Container.
    pub fn act(&self, action: LeaseAction, of: Leased, now: DateTime) -> Result<LeaseOutcome, Refusal> {
        match action {
            LeaseAction::Acquire { duration, proposed, fresh } => {
                self.acquire(duration, proposed, fresh, now)
            }
            LeaseAction::Renew { id } => self.renew(id, of, now),
            LeaseAction::Change { id, proposed } => self.change(id, proposed, of, now),
            LeaseAction::Release { id } => self.release(id, of),
            LeaseAction::Break { period } => self.break_off(period, of, now),
        }
    }

    fn acquire(
        &self,
        duration: LeaseDuration,
        proposed: Option<LeaseId>,
        fresh: LeaseId,
        now: DateTime,
    ) -> Result<LeaseOutcome, Refusal> {
        let is_own = proposed.is_some() && proposed == self.id();
        match self.state(now) {
            LeaseState::Breaking if is_own => return Err(Refusal::LeaseBreakingNotAcquired),
            LeaseState::Breaking => return Err(Refusal::LeaseAlreadyPresent),
            LeaseState::Leased if !is_own => return Err(Refusal::LeaseAlreadyPresent),
            LeaseState::Leased | LeaseState::Available | LeaseState::Expired | LeaseState::Broken => {}
        }
        Ok(LeaseOutcome::held(proposed.unwrap_or(fresh), duration, now))
    }

    fn renew(&self, id: LeaseId, of: Leased, now: DateTime) -> Result<LeaseOutcome, Refusal> {
        match self {
            Self::Available => Err(Refusal::LeaseNotPresentForLease(of)),
            Self::Held { id: own, .. } | Self::Broken { id: own, .. } if *own != id => {
                Err(Refusal::LeaseIdMismatchForLease(of))
            }
            Self::Broken { .. } => Err(Refusal::LeaseBrokenNotRenewed),
            Self::Held { duration, .. } => Ok(LeaseOutcome::held(id, *duration, now)),
        }
    }

    fn change(&self, id: LeaseId, to: LeaseId, of: Leased, now: DateTime) -> Result<LeaseOutcome, Refusal> {
        // A client that repeats its request names the new id as if it were still to come.
        let is_known = |own: LeaseId| own == id || own == to;
        match (self, self.state(now)) {
            (Self::Held { id: own, .. }, LeaseState::Leased) if !is_known(*own) => {
                Err(Refusal::LeaseIdMismatchForLease(of))
            }
            (Self::Held { duration, ends, .. }, LeaseState::Leased) => {
                let lease = Self::Held { id: to, duration: *duration, ends: *ends };
                Ok(LeaseOutcome { lease, id: Some(to), seconds_left: None })
            }
            (Self::Broken { id: own, .. }, LeaseState::Breaking) => match is_known(*own) {
                true => Err(Refusal::LeaseBreakingNotChanged),
                false => Err(Refusal::LeaseIdMismatchForLease(of)),
            },
            _ => Err(Refusal::LeaseNotPresentForLease(of)),
        }
    }

    fn release(&self, id: LeaseId, of: Leased) -> Result<LeaseOutcome, Refusal> {
        match self.id() {
            None => Err(Refusal::LeaseNotPresentForLease(of)),
            Some(own) if own != id => Err(Refusal::LeaseIdMismatchForLease(of)),
            Some(_) => Ok(LeaseOutcome { lease: Self::Available, id: None, seconds_left: None }),
        }
    }

    fn break_off(
        &self,
        period: Option<BreakPeriod>,
        of: Leased,
        now: DateTime,
    ) -> Result<LeaseOutcome, Refusal> {
        let asked = period.map(|BreakPeriod(seconds)| now.plus(Duration::from_secs(seconds.into())));
        // Until when it can be used if nobody breaks it any sooner; none if for ever.
        let (id, ends) = match self {
            Self::Available => return Err(Refusal::LeaseNotPresentForLease(of)),
            Self::Held { id, ends, .. } => (*id, *ends),
            Self::Broken { id, from } => (*id, Some(*from)),
        };
        let from = match (asked, ends) {
            (Some(asked), Some(ends)) => asked.min(ends),
            (Some(asked), None) => asked,
            (None, Some(ends)) => ends,
            (None, None) => now,
        };
        let from = from.max(now);
        let seconds_left = (from.ticks() - now.ticks()).unsigned_abs() / TICKS_PER_SECOND;
        Ok(LeaseOutcome { lease: Self::Broken { id, from }, id: None, seconds_left: Some(seconds_left) })
    }

    /// Whether a request may go on that reads, and names this lease or none.
    pub fn check_read(&self, given: Option<LeaseId>, of: Leased, now: DateTime) -> Result<(), Refusal> {
        let Some(given) = given else { return Ok(()) };
        match self.state(now) {
            LeaseState::Available => Err(Refusal::LeaseNotPresent(of)),
            LeaseState::Expired | LeaseState::Broken => Err(Refusal::LeaseLost(of)),
            LeaseState::Leased | LeaseState::Breaking if self.id() != Some(given) => {
                Err(Refusal::LeaseIdMismatch(of))
            }
            LeaseState::Leased | LeaseState::Breaking => Ok(()),
        }
    }

    /// Whether a request may go on that writes.
    pub fn check_write(&self, given: Option<LeaseId>, of: Leased, now: DateTime) -> Result<(), Refusal> {
        if given.is_none() && self.state(now).is_locked() {
            return Err(Refusal::LeaseIdMissing(of));
        }
        self.check_read(given, of, now)
    }

    /// What a write leaves of the lease: one that had ended is forgotten with its id.
    pub fn after_write(&self, now: DateTime) -> Self {
        if self.state(now).is_locked() { *self } else { Self::Available }
    }
}

const TICKS_PER_SECOND: u64 = 10_000_000;

impl LeaseOutcome {
    fn held(id: LeaseId, duration: LeaseDuration, now: DateTime) -> Self {
        let lease = Lease::Held { id, duration, ends: duration.end(now) };
        Self { lease, id: Some(id), seconds_left: None }
    }
}

#[cfg(test)]
mod tests;
