//! Waiting for something that nobody announces.

use std::time::{Duration, Instant};

/// Far longer than anything takes on a busy machine: it ends a test that hangs, and decides nothing else.
const USUAL: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// Says how long to pause before looking again, and gives up in the end.
#[derive(Debug)]
pub struct Patience {
    what: String,
    until: Instant,
}

impl Patience {
    /// `what` is told if it never happens: "the table is purged".
    pub fn new(what: impl Into<String>) -> Self {
        Self::lasting(USUAL, what)
    }

    pub fn lasting(time: Duration, what: impl Into<String>) -> Self {
        Self { what: what.into(), until: Instant::now() + time }
    }

    /// The time to sleep before the next look.
    ///
    /// # Panics
    /// If it has been waited for long enough.
    pub fn pause(&self) -> Duration {
        assert!(Instant::now() < self.until, "waited in vain until {}", self.what);
        PAUSE
    }
}

/// Looks until there is something, which is then given back.
///
/// # Panics
/// If there is nothing for too long.
pub fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let patience = Patience::new(what);
    loop {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(patience.pause());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_for_until_it_is_there() {
        let mut looks = 0;
        let found = wait_until("the third look", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, 3);
    }

    #[test]
    #[should_panic(expected = "waited in vain until the moon is blue")]
    fn who_gives_up_says_what_was_waited_for() {
        Patience::lasting(Duration::ZERO, "the moon is blue").pause();
    }
}
