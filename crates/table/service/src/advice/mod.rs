//! Which queries examine most entities in vain, and what their users can do about it.
//!
//! Queries are counted by table and *shape*, the filter without its literals, in a sketch an account. No literal is kept.

mod outline;
mod rules;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::AccountName;
use common::space_saving::{Room, SpaceSaving};
use filter::Expr;
use store::StoredName;

pub(crate) use outline::Outline;
pub(crate) use rules::propose;
pub use rules::{Proposal, ProposalKind};

use crate::explain::QueryClass;

/// Shapes of one account, of which a shape with more than 1/512 of what is examined in vain is one.
pub const SHAPES_MAX: usize = 512;
/// Shapes of all accounts together, beside those that every account has. At their longest they take about 10 MiB.
const SLOTS_MAX: usize = 8 * 1024;
/// Slots that an account has however many others there are.
const OWN_SLOTS: usize = 8;

/// The sketches of all accounts.
#[derive(Debug, Default)]
pub struct Advisor {
    hasher: RandomState,
    accounts: Mutex<Accounts>,
}

#[derive(Debug, Default)]
struct Accounts {
    sketches: HashMap<AccountName, AccountShapes>,
    slots_used: usize,
}

#[derive(Debug)]
struct AccountShapes {
    shapes: SpaceSaving<KeptShape, ShapeTally>,
    /// The last query that was counted.
    last: Instant,
}

/// One query that examined entities in vain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WastedQuery<'a> {
    pub table: &'a StoredName,
    pub filter: &'a Expr,
    pub class: QueryClass,
    pub examined: u64,
    pub returned: u64,
    pub time: Duration,
}

#[derive(Debug, Default)]
struct KeptShape {
    table: String,
    shape: String,
    proposal: Option<Proposal>,
}

/// What is counted of a shape since it has its slot.
#[derive(Clone, Copy, Debug, Default)]
struct ShapeTally {
    class: QueryClass,
    queries: u64,
    examined: u64,
    returned: u64,
    time: Duration,
    last: Option<Instant>,
}

/// A shape with what its queries cost, and what would make them cheaper.
#[derive(Clone, Debug)]
pub struct Advice {
    pub table: String,
    pub shape: String,
    pub class: QueryClass,
    pub queries: u64,
    pub examined: u64,
    pub returned: u64,
    /// Examined and not returned; not below the true number.
    pub in_vain: u64,
    /// By how much `in_vain` can be above the true number.
    pub error: u64,
    pub time: Duration,
    /// How long ago its last query was.
    pub ago: Duration,
    pub proposal: Option<Proposal>,
}

impl Advice {
    /// Entities that a query of this shape returns on average, and how many it examines for them.
    pub fn rows_instead_of(&self) -> (u64, u64) {
        let queries = self.queries.max(1);
        (self.returned.div_ceil(queries), self.examined.div_ceil(queries))
    }
}

impl Advisor {
    pub(crate) fn record(&self, account: &AccountName, query: WastedQuery<'_>, now: Instant) {
        let WastedQuery { table, filter, class, examined, returned, time } = query;
        let shape = filter::shape(filter);
        let hash = self.hasher.hash_one((table.folded(), &shape));
        let mut accounts = self.accounts();
        if accounts.slots_used >= SLOTS_MAX && !accounts.sketches.contains_key(account) {
            accounts.forget_the_most_idle();
        }
        let Accounts { sketches, slots_used } = &mut *accounts;
        let new = || AccountShapes { shapes: SpaceSaving::new(SHAPES_MAX), last: now };
        let AccountShapes { shapes: sketch, last } = sketches.entry(account.clone()).or_insert_with(new);
        *last = now;
        let is_own = sketch.len() < OWN_SLOTS;
        let room = || match is_own || *slots_used < SLOTS_MAX {
            true => {
                *slots_used += usize::from(!is_own);
                Room::Free
            }
            false => Room::Full,
        };
        let is_same = |kept: &KeptShape| kept.table == table.folded() && kept.shape == shape;
        let write = |kept: &mut KeptShape| {
            let (table, proposal) = (table.folded().to_owned(), propose(&Outline::of(filter)));
            *kept = KeptShape { table, shape: shape.clone(), proposal };
        };
        let tally = sketch.add(hash, examined.saturating_sub(returned), is_same, write, room);
        if let Some(tally) = tally {
            tally.class = class;
            tally.queries += 1;
            tally.examined += examined;
            tally.returned += returned;
            tally.time += time;
            tally.last = Some(now);
        }
    }

    /// The shapes that examined most in vain.
    pub fn advice(&self, account: &AccountName, top: usize, now: Instant) -> Vec<Advice> {
        let accounts = self.accounts();
        let Some(AccountShapes { shapes, .. }) = accounts.sketches.get(account) else { return Vec::new() };
        let advice = shapes.heaviest().take(top).map(|heavy| {
            let ShapeTally { class, queries, examined, returned, time, last } = *heavy.tally;
            Advice {
                table: heavy.key.table.clone(),
                shape: heavy.key.shape.clone(),
                class,
                queries,
                examined,
                returned,
                in_vain: heavy.weight,
                error: heavy.error,
                time,
                ago: last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last)),
                proposal: heavy.key.proposal.clone(),
            }
        });
        advice.collect()
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Accounts {
    /// Makes room for another account: of those with more slots than every account has, the one whose last wasteful query is
    /// the longest ago is forgotten.
    fn forget_the_most_idle(&mut self) {
        let shared = |account: &AccountShapes| account.shapes.len().saturating_sub(OWN_SLOTS);
        let with_shared = self.sketches.iter().filter(|(_, account)| shared(account) > 0);
        let idle = with_shared.min_by_key(|(_, account)| account.last).map(|(name, _)| name.clone());
        let forgotten = idle.and_then(|idle| self.sketches.remove(&idle));
        self.slots_used -= forgotten.as_ref().map_or(0, shared);
    }
}

#[cfg(test)]
mod tests;
