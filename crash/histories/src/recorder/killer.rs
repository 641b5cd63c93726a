//! Kills the server at random while clients work, and starts it again.

use std::time::Duration;

use tokio::sync::watch;

use super::client::Clock;
use super::server::Server;
use crate::history::Time;
use crate::random::Random;

const PAUSE_MILLIS_MAX: usize = 60;

/// When a server was killed: not before `sent`, and it had ended at `gone`.
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
    /// Kills until it is told to stop. The server is running when this returns.
    pub async fn work(&mut self, mut stop: watch::Receiver<bool>) -> Result<Vec<Kill>, String> {
        let mut kills = Vec::new();
        loop {
            let pause = Duration::from_millis(1 + self.random.below(PAUSE_MILLIS_MAX) as u64);
            // An error means that the round has ended.
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

    /// Kills and restarts the server once, and sometimes again right after the restart.
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

/// An operation that was in flight when the server was killed was done before the process ended, or never. When that was,
/// for one that ran from `start` to `end` without an answer; `None` if no kill cut it off.
pub fn bound(kills: &[Kill], start: Time, end: Time) -> Option<Time> {
    let last = kills.iter().rfind(|kill| kill.sent <= end);
    last.map(|kill| kill.gone).filter(|gone| *gone >= start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_bounds_the_operations_in_flight() {
        let kills = [Kill { sent: 100, gone: 110 }, Kill { sent: 200, gone: 210 }];
        for (start, end, expected) in [
            (50, 90, None),        // broke before any kill
            (50, 105, Some(110)),  // noticed before the process had ended
            (50, 150, Some(110)),  // noticed late
            (50, 250, Some(210)),  // sent again, or waiting through both
            (120, 150, None),      // nothing was killed meanwhile
            (205, 220, Some(210)), // sent to a process that was about to end
        ] {
            assert_eq!(bound(&kills, start, end), expected, "{start} to {end}");
        }
    }
}
