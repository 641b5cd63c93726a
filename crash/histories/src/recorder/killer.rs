//! Kills the server at random while clients work, and starts it again.

use std::time::Duration;

use tokio::sync::watch;

use super::client::Clock;
use super::server::Server;
use crate::history::{Operation, Outcome, Time};
use crate::random::Random;

const PAUSE_MILLIS_MAX: usize = 60;

/// When a server was killed: not before `sent`, and it was gone at `gone`.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    pub sent: Time,
    pub gone: Time,
}

#[derive(Debug)]
pub struct Killer {
    pub server: Server,
    pub random: Random,
    pub clock: Clock,
    pub up: watch::Sender<bool>,
}

impl Killer {
    /// Until told to stop; the server is there when this returns.
    pub async fn work(&mut self, mut stop: watch::Receiver<bool>) -> Result<Vec<Kill>, String> {
        let mut kills = Vec::new();
        loop {
            let pause = Duration::from_millis(1 + self.random.below(PAUSE_MILLIS_MAX) as u64);
            // An error means that the round is gone, and so has nothing more to kill for.
            let stopped = tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await.is_ok();
            if stopped && (!kills.is_empty() && self.random.chance(50)) {
                return Ok(kills);
            }
            tokio::task::block_in_place(|| self.kill(&mut kills))?;
            if stopped {
                return Ok(kills);
            }
        }
    }

    /// Once, and now and then again as soon as it is back.
    fn kill(&mut self, kills: &mut Vec<Kill>) -> Result<(), String> {
        loop {
            let sent = self.clock.now();
            self.server.kill()?;
            kills.push(Kill { sent, gone: self.clock.now() });
            self.up.send_replace(false);
            self.server.restart()?;
            if !self.random.chance(15) {
                break;
            }
        }
        self.up.send_replace(true);
        Ok(())
    }
}

/// What was under way when the server was killed was done before it was gone, or never.
pub fn bound(history: &mut [Operation], kills: &[Kill]) {
    for operation in history {
        let Outcome::Unknown { until: until @ None } = &mut operation.outcome else { continue };
        let last = kills.iter().rfind(|kill| kill.sent <= operation.end);
        *until = last.map(|kill| kill.gone).filter(|gone| *gone >= operation.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Action;

    #[test]
    fn a_kill_bounds_what_was_under_way() {
        let kills = [Kill { sent: 100, gone: 110 }, Kill { sent: 200, gone: 210 }];
        for (start, end, expected) in [
            (50, 90, None),        // broke before any kill
            (50, 105, Some(110)),  // seen before the process was known to be gone
            (50, 150, Some(110)),  // seen late
            (50, 250, Some(210)),  // sent again, or waiting through both
            (120, 150, None),      // nothing was killed meanwhile
            (205, 220, Some(210)), // sent to a process that was about to go
        ] {
            let (partition, outcome) = (String::new(), Outcome::Unknown { until: None });
            let mut history =
                [Operation { client: 0, partition, start, end, action: Action::Query, outcome }];
            bound(&mut history, &kills);
            assert_eq!(history[0].outcome, Outcome::Unknown { until: expected }, "{start} to {end}");
        }
    }
}
