//! A server's slot: the number in its stamps and epochs that no other server has at the same time.
//!
//! A slot is leased by a conditional write. Its owner never gives out a stamp at or above `high`, and stops writing
//! thirty seconds after it sent its last renewal; `Clock` checks both for every stamp. A server that sees a lease
//! unchanged for twice that time frees the slot; clocks are not compared. A server that has lost its slot takes
//! another.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use model::DateTime;
use rand::seq::SliceRandom;
use scylla::value::CqlValue;
use uuid::Uuid;

use crate::clock::{Clock, Lease, SLOTS};
use crate::cluster::{Conditional, Link};
use crate::freeze::Freeze;
use crate::trouble::{Trouble, undecodable};
use crate::view::ServerView;

const RENEW_EVERY: Duration = Duration::from_secs(10);
/// The pause after a failed renewal, or when stamps of other servers have advanced the clock.
const RENEW_SOON: Duration = Duration::from_millis(500);
const LEASE: Duration = Duration::from_secs(30);
const DEAD_AFTER: Duration = Duration::from_secs(60);
/// If two looks are further apart than this, the lease may have been renewed in between.
const LOOKS_APART_MAX: Duration = Duration::from_secs(20);
/// Ticks that a renewal reserves: more than the length of a lease.
const RESERVED: i64 = 60 * 10_000_000;

/// A slot: its number, owner and `high`, the owner's table lease, and the last freeze that the owner has obeyed
/// (`freeze`).
type SlotRow = (i32, Option<Uuid>, Option<i64>, Option<i32>, Option<Uuid>);

/// Takes a free slot, with its clock. Waits while there is none.
pub async fn take(link: &Link, table_lease: Duration) -> Result<(Slot, Clock), Trouble> {
    let taken = take_above(link, table_lease, 0).await?;
    let clock = Clock::new(i64::from(taken.slot.id), taken.floor, taken.lease);
    Ok((taken.slot, clock))
}

/// A slot that was just taken.
struct Taken {
    slot: Slot,
    /// The highest stamp that earlier owners can have given out.
    floor: i64,
    lease: Lease,
}

/// `above`: the highest stamp that the taker has given out in other slots.
async fn take_above(link: &Link, table_lease: Duration, above: i64) -> Result<Taken, Trouble> {
    let owner = Uuid::new_v4();
    let mut watch = Watch::default();
    loop {
        let rows = all(link).await?;
        let mut ids: Vec<i32> = (0..SLOTS as i32).collect();
        ids.shuffle(&mut rand::rng());
        for id in ids {
            let row = rows.iter().find(|row| row.0 == id);
            let (held, high) = row.map_or((None, None), |row| (row.1, row.2));
            if held.is_some() {
                continue;
            }
            let floor = high.unwrap_or(0);
            let sent = Instant::now();
            let below = floor.max(above).max(DateTime::now().ticks()) + RESERVED;
            let values = vec![
                Some(CqlValue::Uuid(owner)),
                Some(CqlValue::BigInt(below)),
                Some(CqlValue::Int(i32::try_from(table_lease.as_millis()).unwrap_or(i32::MAX))),
                Some(CqlValue::Int(id)),
                None,
                high.map(CqlValue::BigInt),
            ];
            let step = Conditional { statement: &link.statements.take_slot, values };
            if link.compare_and_set(vec![step]).await?.is_applied() {
                let lease = Lease { below, until: sent + LEASE };
                let slot = Slot { id, owner, held: below, table_lease, quiet: None };
                return Ok(Taken { slot, floor, lease });
            }
        }
        tracing::warn!(
            "all {SLOTS} slots for writing servers are taken; waiting for one that is no longer used"
        );
        watch.free_dead(link, &rows).await;
        tokio::time::sleep(RENEW_EVERY).await;
    }
}

#[derive(Debug)]
pub struct Slot {
    id: i32,
    owner: Uuid,
    /// The last known value of `high`.
    held: i64,
    table_lease: Duration,
    /// The last freeze that is noted as obeyed.
    quiet: Option<Uuid>,
}

impl Slot {
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Renews the lease as long as it is polled, takes another slot if this one is lost, and frees the slots of dead
    /// servers.
    pub async fn keep(&mut self, link: &Link, clock: &Clock, freeze: &Freeze) -> Infallible {
        let mut watch = Watch::default();
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(RENEW_SOON).await;
            self.note_quiet(link, freeze.quiet()).await;
            let pushed = clock.high_water() + RESERVED / 2 > self.held;
            let failing = renewed.elapsed() > RENEW_EVERY + RENEW_SOON;
            if !pushed && renewed.elapsed() < RENEW_EVERY {
                continue;
            }
            let sent = Instant::now();
            match self.renew(link, clock, sent).await {
                Ok(true) => renewed = sent,
                Ok(false) => {
                    tracing::error!(
                        slot = self.id,
                        "this server did not renew its lease in time and lost its slot; it refuses writes until it \
                         has another one"
                    );
                    link.counts.slots_lost.add(1);
                    clock.revoke();
                    self.replace(link, clock).await;
                    renewed = sent;
                }
                Err(trouble) if failing => tracing::warn!(%trouble, "the slot lease can't be renewed"),
                Err(trouble) => tracing::debug!(%trouble, "the slot lease was not renewed"),
            }
            match all(link).await {
                Ok(rows) => watch.free_dead(link, &rows).await,
                Err(trouble) => tracing::debug!(%trouble, "the slots of other servers could not be read"),
            }
        }
    }

    /// Notes each freeze once.
    async fn note_quiet(&mut self, link: &Link, quiet: Option<Uuid>) {
        if quiet.is_none() || quiet == self.quiet {
            return;
        }
        let values =
            vec![quiet.map(CqlValue::Uuid), Some(CqlValue::Int(self.id)), Some(CqlValue::Uuid(self.owner))];
        let step = Conditional { statement: &link.statements.note_quiet, values };
        match link.compare_and_set(vec![step]).await {
            Ok(outcome) if outcome.is_applied() => self.quiet = quiet,
            // The slot is lost; the next renewal finds out.
            Ok(_) => {}
            Err(trouble) => tracing::debug!(%trouble, "could not note that this server obeys the freeze"),
        }
    }

    /// Takes another slot in place of a lost one. All stamps of the lost one are below its reserved `high`, where its
    /// next owner begins.
    async fn replace(&mut self, link: &Link, clock: &Clock) {
        loop {
            match take_above(link, self.table_lease, clock.high_water()).await {
                Ok(Taken { slot, floor, lease }) => {
                    clock.reseat(i64::from(slot.id), floor, lease);
                    *self = slot;
                    tracing::info!(slot = self.id, "this server may write to the cluster again");
                    return;
                }
                Err(trouble) => tracing::warn!(%trouble, "could not take a write slot yet"),
            }
            tokio::time::sleep(RENEW_SOON).await;
        }
    }

    /// False if the slot is lost.
    ///
    /// Conditional on the last `high`, so that a delayed renewal can't lower it.
    async fn renew(&mut self, link: &Link, clock: &Clock, sent: Instant) -> Result<bool, Trouble> {
        let below =
            clock.high_water().max(DateTime::now().ticks()).saturating_add(RESERVED).max(self.held + 1);
        let owner = Some(self.owner);
        if change(link, self.id, (owner, Some(below)), (owner, Some(self.held))).await? {
            self.held = below;
            clock.renew(Lease { below, until: sent + LEASE });
            return Ok(true);
        }
        // The slot is ours, but `high` differs: a renewal whose answer was lost. The next renewal continues from it.
        let rows = all(link).await?;
        let row = rows.into_iter().find(|row| row.0 == self.id && row.1 == owner);
        let Some((_, _, Some(high), ..)) = row else { return Ok(false) };
        self.held = high;
        Err(Trouble::unknown("an earlier renewal went through after all"))
    }

    /// Frees the slot for another server. Nothing may be written after this.
    pub async fn release(self, link: &Link, clock: &Clock) {
        clock.revoke();
        let last = clock.high_water();
        let change = change(link, self.id, (None, Some(last)), (Some(self.owner), Some(self.held))).await;
        if !matches!(change, Ok(true)) {
            tracing::debug!(slot = self.id, ?change, "the slot was not released; other servers will free it");
        }
    }
}

/// The leases of other servers, and since when each has not changed.
#[derive(Debug, Default)]
struct Watch {
    seen: HashMap<i32, (Uuid, Option<i64>, Instant)>,
    looked: Option<Instant>,
}

impl Watch {
    async fn free_dead(&mut self, link: &Link, rows: &[SlotRow]) {
        for (id, owner, high) in self.dead(rows, Instant::now()) {
            let freed = change(link, id, (None, high), (Some(owner), high)).await;
            tracing::info!(slot = id, ?freed, "a server stopped renewing its lease");
        }
    }

    /// The leases that were seen unchanged for long enough.
    ///
    /// A look that comes late forgets earlier ones: if this server could not look, because the cluster was away or
    /// the process was suspended, the others may not have been able to renew either.
    fn dead(&mut self, rows: &[SlotRow], now: Instant) -> Vec<(i32, Uuid, Option<i64>)> {
        if self.looked.is_some_and(|last| now.saturating_duration_since(last) > LOOKS_APART_MAX) {
            self.seen.clear();
        }
        self.looked = Some(now);
        let mut dead = Vec::new();
        for (id, owner, high, ..) in rows {
            let Some(owner) = *owner else {
                self.seen.remove(id);
                continue;
            };
            let same = |seen: &&(Uuid, Option<i64>, Instant)| (seen.0, seen.1) == (owner, *high);
            match self.seen.get(id).filter(same) {
                Some((_, _, since)) if now.saturating_duration_since(*since) > DEAD_AFTER => {
                    dead.push((*id, owner, *high));
                    self.seen.remove(id);
                }
                Some(_) => {}
                None => drop(self.seen.insert(*id, (owner, *high, now))),
            }
        }
        dead
    }
}

/// Whether every server that is not known to be dead has obeyed this freeze.
pub async fn are_all_quiet(link: &Link, freeze: Uuid) -> Result<bool, Trouble> {
    let quiet = |(_, owner, _, _, frozen): &SlotRow| owner.is_none() || *frozen == Some(freeze);
    Ok(all(link).await?.iter().all(quiet))
}

/// The slots that are taken, in their order. `freeze`: the one that is on, if any. A slot also names one that was on before.
pub async fn servers(link: &Link, freeze: Option<Uuid>) -> Result<Vec<ServerView>, Trouble> {
    let rows = all(link).await?;
    let taken = rows.into_iter().filter(|row| row.1.is_some());
    let view = |(id, _, _, table_lease, obeyed): SlotRow| ServerView {
        slot: i64::from(id),
        table_lease_milliseconds: table_lease,
        is_frozen: freeze.is_some() && obeyed == freeze,
    };
    let mut servers: Vec<ServerView> = taken.map(view).collect();
    servers.sort_unstable_by_key(|server| server.slot);
    Ok(servers)
}

/// The longest table lease of all servers.
pub async fn longest_table_lease(link: &Link) -> Result<Duration, Trouble> {
    Ok(longest(&all(link).await?))
}

fn longest(rows: &[SlotRow]) -> Duration {
    let held = rows.iter().filter(|row| row.1.is_some());
    let leases = held.filter_map(|row| u64::try_from(row.3?).ok());
    Duration::from_millis(leases.max().unwrap_or(0))
}

async fn all(link: &Link) -> Result<Vec<SlotRow>, Trouble> {
    let rows = link.read(&link.statements.all_slots, ()).await?;
    let rows = rows.rows::<SlotRow>().map_err(undecodable("the slots of servers"))?;
    let rows: Vec<SlotRow> =
        rows.map(|row| row.map_err(undecodable("the slots of servers"))).collect::<Result<_, _>>()?;
    link.counts.slots_taken.set(rows.iter().filter(|row| row.1.is_some()).count() as u64);
    Ok(rows)
}

async fn change(
    link: &Link,
    id: i32,
    to: (Option<Uuid>, Option<i64>),
    from: (Option<Uuid>, Option<i64>),
) -> Result<bool, Trouble> {
    let values = vec![
        to.0.map(CqlValue::Uuid),
        to.1.map(CqlValue::BigInt),
        Some(CqlValue::Int(id)),
        from.0.map(CqlValue::Uuid),
        from.1.map(CqlValue::BigInt),
    ];
    let step = Conditional { statement: &link.statements.set_slot, values };
    Ok(link.compare_and_set(vec![step]).await?.is_applied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i32, owner: u128, high: i64) -> SlotRow {
        (id, Some(Uuid::from_u128(owner)), Some(high), Some(50), None)
    }

    fn dead(watch: &mut Watch, rows: &[SlotRow], now: Instant) -> Vec<i32> {
        watch.dead(rows, now).into_iter().map(|(id, ..)| id).collect()
    }

    #[test]
    fn a_lease_that_does_not_change_for_a_minute_of_looks_is_dead() {
        let (mut watch, start) = (Watch::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        for at in (0..=60).step_by(10) {
            let living = row(2, 2, at as i64);
            assert_eq!(
                dead(&mut watch, &[row(1, 1, 5), living, (3, None, Some(7), None, None)], after(at)),
                [0; 0],
                "{at} s"
            );
        }
        assert_eq!(dead(&mut watch, &[row(1, 1, 5), row(2, 2, 70)], after(70)), [1]);
        assert_eq!(
            dead(&mut watch, &[row(1, 4, 5), row(2, 2, 80)], after(80)),
            [0; 0],
            "another owner by now"
        );
    }

    #[test]
    fn looks_before_an_outage_do_not_count() {
        let (mut watch, start) = (Watch::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        let rows = [row(1, 1, 5), row(2, 2, 6)];
        assert_eq!(dead(&mut watch, &rows, after(0)), [0; 0]);
        assert_eq!(dead(&mut watch, &rows, after(10)), [0; 0]);
        // Nobody could renew, and nobody could look.
        assert_eq!(dead(&mut watch, &rows, after(100)), [0; 0]);
        // Both get the full time again. The first renews, the second does not.
        for at in (110..=160).step_by(10) {
            assert_eq!(dead(&mut watch, &[row(1, 1, 9), row(2, 2, 6)], after(at)), [0; 0], "{at} s");
        }
        assert_eq!(dead(&mut watch, &[row(1, 1, 10), row(2, 2, 6)], after(170)), [2]);
    }

    #[test]
    fn the_longest_lease_ignores_free_slots() {
        let lease = |id, owner: Option<u128>, lease| (id, owner.map(Uuid::from_u128), Some(1), lease, None);
        assert_eq!(longest(&[]), Duration::ZERO);
        let rows = [lease(1, Some(1), Some(50)), lease(2, Some(2), Some(2000)), lease(3, None, Some(9000))];
        assert_eq!(longest(&rows), Duration::from_secs(2));
    }
}
