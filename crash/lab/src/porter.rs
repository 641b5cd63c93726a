//! One client of a queue of its own, for power cuts and failing disks: it puts, takes and deletes, one after the other, so it
//! always knows what its queue must hold.
//!
//! It never has more messages than one Peek shows, so that looking at them changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::journal::JournalWriter;
use crate::lab::WRITERS;
use crate::queue_client::{QueueClient, Taken};
use crate::server::Server;
use crate::totals::Totals;
use crate::writer::Load;

pub const PORTERS: usize = 2;
/// Fewer than the 32 that a Peek shows.
const MESSAGES_MAX: usize = 24;
/// How long a Get hides.
const HIDDEN_SECONDS: u64 = 1;
pub const HIDDEN: Duration = Duration::from_millis(HIDDEN_SECONDS * 1000 + 100);
/// Unknown outcomes after which a porter stops: each makes the judgement weaker.
const UNKNOWN_MAX: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Errand {
    Create,
    Put { number: u32 },
    Take,
    Delete { number: u32, id: String, receipt: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    Done,
    /// Numbers and dequeue counts.
    Taken(Vec<(u32, u32)>),
    NotFound,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// Its Put was not answered.
    Doubtful,
    Stored,
    /// Its Delete was not answered.
    Leaving,
    Deleted,
}

#[derive(Clone, Debug)]
pub struct Porter {
    number: usize,
    /// By number, with the highest dequeue count that was heard of.
    messages: BTreeMap<u32, (Life, u32)>,
    held: Vec<(u32, String, String)>,
    is_created: bool,
    last: u32,
    errands: usize,
    unknown: usize,
    hidden_until: Option<Instant>,
    pub violation: Option<String>,
    random: StdRng,
}

/// All porters of a run.
pub fn porters(seed: u64) -> Vec<Porter> {
    (0..PORTERS).map(|number| Porter::new(seed, number)).collect()
}

/// Running porters. They stop with the writers of the same load.
pub struct PortersWorking(Vec<JoinHandle<Porter>>);

pub fn work(server: &Server, porters: Vec<Porter>, load: &Arc<Load>) -> Result<PortersWorking, String> {
    let authority = server.queue_authority()?;
    let run = |porter: Porter| tokio::spawn(porter.run(authority.clone(), load.clone()));
    Ok(PortersWorking(porters.into_iter().map(run).collect()))
}

impl PortersWorking {
    pub async fn finish(self) -> Result<Vec<Porter>, String> {
        let mut porters = Vec::new();
        for task in self.0 {
            porters.push(task.await.map_err(|error| format!("a porter ended early: {error}"))?);
        }
        Ok(porters)
    }
}

/// Reads every queue back and judges it.
pub async fn judge_all(server: &Server, porters: &mut [Porter], totals: &mut Totals) -> Result<(), String> {
    let authority = server.queue_authority()?;
    for porter in porters {
        totals.messages += porter.messages.len() as u64;
        porter.judge(&authority).await.map_err(|what| format!("queue {}: {what}", porter.queue()))?;
    }
    Ok(())
}

/// The first complaint of a porter about an answer.
pub fn complaint(porters: &[Porter]) -> Option<String> {
    let complaints = porters.iter().filter_map(|porter| Some((porter.queue(), porter.violation.as_ref()?)));
    complaints.map(|(queue, what)| format!("queue {queue}: {what}")).next()
}

impl Porter {
    fn new(seed: u64, number: usize) -> Self {
        Self {
            number,
            messages: BTreeMap::new(),
            held: Vec::new(),
            is_created: false,
            last: 0,
            errands: 0,
            unknown: 0,
            hidden_until: None,
            violation: None,
            random: StdRng::seed_from_u64(seed ^ (number as u64 + 77).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        }
    }

    /// Its number among the writers of a journal, which come first.
    pub fn of_journal(number: usize) -> Option<usize> {
        number.checked_sub(WRITERS).filter(|number| *number < PORTERS)
    }

    fn queue(&self) -> String {
        format!("porter-{}", self.number)
    }

    async fn run(mut self, authority: String, load: Arc<Load>) -> Self {
        let mut client = QueueClient::new(&authority, &self.queue());
        while self.violation.is_none() && self.unknown < UNKNOWN_MAX && !load.stop.load(Ordering::Relaxed) {
            let errand = self.next();
            let injected = load.rule.as_ref().map_or(0, |rule| rule.injected());
            let reply = self.send(&mut client, &errand, load.journal.as_ref()).await;
            let is_write = match &reply {
                Reply::Done => errand != Errand::Create,
                Reply::Taken(taken) => !taken.is_empty(),
                Reply::NotFound | Reply::Unknown => false,
            };
            if load.fault_is_final && injected > 0 && is_write {
                self.violation =
                    Some(format!("{errand:?} was sent after a failed sync and was acknowledged"));
            }
            if reply == Reply::Unknown && !load.persist {
                break;
            }
        }
        self
    }

    fn next(&mut self) -> Errand {
        if !self.is_created {
            return Errand::Create;
        }
        let count = self.messages.values().filter(|(life, _)| *life != Life::Deleted).count();
        let roll = self.random.random_range(0..100);
        if !self.held.is_empty() && (roll < 35 || count >= MESSAGES_MAX) {
            let (number, id, receipt) = self.held.remove(self.random.random_range(0..self.held.len()));
            return Errand::Delete { number, id, receipt };
        }
        if roll < 80 && count < MESSAGES_MAX {
            self.last += 1;
            return Errand::Put { number: self.last };
        }
        Errand::Take
    }

    async fn send(
        &mut self,
        client: &mut QueueClient,
        errand: &Errand,
        journal: Option<&JournalWriter>,
    ) -> Reply {
        let (writer, number) = (WRITERS + self.number, self.errands);
        if let Some(journal) = journal {
            journal.sent(writer, number, errand);
        }
        let status = |status: Option<u16>| match status {
            Some(201 | 204) => Reply::Done,
            Some(404) => Reply::NotFound,
            // While the disk fails, a 5xx proves nothing.
            _ => Reply::Unknown,
        };
        let reply = match errand {
            Errand::Create => match client.create().await {
                Ok(()) => Reply::Done,
                Err(_) => Reply::Unknown,
            },
            Errand::Put { number } => status(client.put(&number.to_string()).await),
            Errand::Delete { id, receipt, .. } => status(client.delete(id, receipt).await),
            Errand::Take => {
                let taken = client.get(4, HIDDEN_SECONDS).await;
                self.hidden_until = Some(Instant::now() + HIDDEN);
                match taken {
                    None => Reply::Unknown,
                    Some(taken) => {
                        for Taken { id, receipt, text, .. } in &taken {
                            let number = text.parse().unwrap_or_default();
                            self.held.retain(|(other, ..)| *other != number);
                            self.held.push((number, id.clone(), receipt.clone()));
                        }
                        Reply::Taken(counts(&taken))
                    }
                }
            }
        };
        if let Some(journal) = journal {
            journal.answered(writer, number, &reply);
        }
        self.begin(errand);
        self.hear(errand, &reply);
        reply
    }

    /// An errand was sent.
    pub fn begin(&mut self, errand: &Errand) {
        self.errands += 1;
        match errand {
            Errand::Put { number } => {
                self.last = self.last.max(*number);
                self.messages.insert(*number, (Life::Doubtful, 0));
            }
            Errand::Delete { number, .. } => {
                if let Some((life @ (Life::Stored | Life::Doubtful), _)) = self.messages.get_mut(number) {
                    *life = Life::Leaving;
                }
            }
            Errand::Create | Errand::Take => {}
        }
    }

    /// An errand was answered, or never will be.
    pub fn hear(&mut self, errand: &Errand, reply: &Reply) {
        let wrong = match (errand, reply) {
            (_, Reply::Unknown) => {
                self.unknown += 1;
                None
            }
            (Errand::Create, _) => {
                self.is_created = true;
                None
            }
            (Errand::Put { number }, Reply::Done) => {
                self.messages.insert(*number, (Life::Stored, 0));
                None
            }
            (Errand::Delete { number, .. }, Reply::Done) => {
                if let Some((life, _)) = self.messages.get_mut(number) {
                    *life = Life::Deleted;
                }
                None
            }
            // After a Delete or a Get that was not answered, the receipt may be stale.
            (Errand::Delete { .. }, Reply::NotFound) if self.unknown > 0 => None,
            (Errand::Take, Reply::Taken(taken)) => self.show(taken, true).err(),
            (errand, reply) => Some(format!("{errand:?} was answered with {reply:?}")),
        };
        self.violation = self.violation.take().or(wrong);
    }

    /// These are there. `is_delivery`: their counts have grown.
    fn show(&mut self, shown: &[(u32, u32)], is_delivery: bool) -> Result<(), String> {
        for (number, count) in shown {
            match self.messages.get_mut(number) {
                None => return Err(format!("message {number} was never put")),
                Some((Life::Deleted, _)) => {
                    return Err(format!("message {number} is there after its Delete was acknowledged"));
                }
                Some((_, known)) if *count < *known + u32::from(is_delivery) => {
                    return Err(format!("message {number} has dequeue count {count} after {known}"));
                }
                Some((life, known)) => {
                    *life = Life::Stored;
                    *known = *count;
                }
            }
        }
        Ok(())
    }

    /// Looks at everything that is in the queue. What was in doubt is known afterwards.
    async fn judge(&mut self, authority: &str) -> Result<(), String> {
        if let Some(until) = self.hidden_until.take() {
            sleep(until.saturating_duration_since(Instant::now())).await;
        }
        if !self.is_created {
            return Ok(());
        }
        let shown = QueueClient::new(authority, &self.queue()).peek().await;
        let shown = counts(&shown.ok_or("a Peek on a server at rest failed")?);
        self.show(&shown, false)?;
        for (number, (life, _)) in &mut self.messages {
            if shown.iter().any(|(other, _)| other == number) {
                continue;
            }
            if *life == Life::Stored {
                return Err(format!("message {number} was acknowledged and is lost"));
            }
            *life = Life::Deleted;
        }
        self.unknown = 0;
        self.held.clear();
        Ok(())
    }
}

/// Numbers and dequeue counts.
fn counts(taken: &[Taken]) -> Vec<(u32, u32)> {
    taken.iter().map(|taken| (taken.text.parse().unwrap_or_default(), taken.dequeue_count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn porter(errands: &[(Errand, Reply)]) -> Porter {
        let mut porter = Porter::new(1, 0);
        for (errand, reply) in errands {
            porter.begin(errand);
            porter.hear(errand, reply);
        }
        porter
    }

    #[test]
    fn what_a_porter_hears_must_be_possible() {
        let put = |number| (Errand::Put { number }, Reply::Done);
        let take = |taken: &[(u32, u32)]| (Errand::Take, Reply::Taken(taken.to_vec()));
        let delete =
            |number, reply| (Errand::Delete { number, id: String::new(), receipt: String::new() }, reply);
        let check = |errands: &[(Errand, Reply)], expected: &str| {
            let violation = porter(errands).violation.unwrap_or_default();
            assert!(
                violation.contains(expected) && violation.is_empty() == expected.is_empty(),
                "{violation}"
            );
        };
        check(&[put(1), take(&[(1, 1)]), delete(1, Reply::Done)], "");
        check(&[take(&[(1, 1)])], "never put");
        check(&[put(1), take(&[(1, 1)]), take(&[(1, 1)])], "dequeue count 1 after 1");
        check(&[put(1), delete(1, Reply::Done), take(&[(1, 1)])], "after its Delete");
        check(&[put(1), delete(1, Reply::Unknown), take(&[(1, 1)])], "");
        check(&[put(1), delete(1, Reply::NotFound)], "NotFound");
        check(&[(Errand::Put { number: 1 }, Reply::Unknown), take(&[(1, 1)])], "");
        check(&[(Errand::Put { number: 1 }, Reply::NotFound)], "NotFound");
    }
}
