//! The current time: this machine's, or that of a given function.

use std::fmt;
use std::sync::Arc;

use model::DateTime;

#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl Clock {
    pub fn of_this_machine() -> Self {
        Self(Arc::new(DateTime::now))
    }

    pub fn of(now: impl Fn() -> DateTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> DateTime {
        (self.0)()
    }
}
