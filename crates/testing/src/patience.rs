//! Waits for a condition by polling.

use std::time::{Duration, Instant};

/// Far longer than anything takes on a busy machine. It only ends a test that hangs.
const USUAL: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(5);

/// Gives the pause before the next look, and panics after the time limit.
#[derive(Debug)]
pub struct Patience {
    what: String,
    until: Instant,
}

impl Patience {
    /// `what` is for the panic's message: "the table is purged".
    pub fn new(what: impl Into<String>) -> Self {
        Self::lasting(USUAL, what)
    }

    pub fn lasting(time: Duration, what: impl Into<String>) -> Self {
        Self { what: what.into(), until: Instant::now() + time }
    }

    /// The time to sleep before the next look.
    ///
    /// # Panics
    /// If the time is over.
    pub fn pause(&self) -> Duration {
        assert!(Instant::now() < self.until, "waited in vain until {}", self.what);
        PAUSE
    }
}

/// Calls `look` until it returns something, and returns that.
///
/// # Panics
/// If the time is over.
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
    fn looks_until_there_is_a_result() {
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
