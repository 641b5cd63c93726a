//! Repeats a call while a store is busy.

use std::future::Future;
use std::time::Duration;

use store::Error;

const FIRST_WAIT: Duration = Duration::from_millis(20);
const WAIT_MAX: Duration = Duration::from_secs(2);
/// About two minutes in total.
const ATTEMPTS: u32 = 64;

/// Only for calls that may be repeated: a call with an unknown outcome is repeated too.
pub async fn persist<T, Attempt>(mut attempt: impl FnMut() -> Attempt) -> Result<T, Error>
where
    Attempt: Future<Output = Result<T, Error>>,
{
    let (mut wait, mut left) = (FIRST_WAIT, ATTEMPTS);
    loop {
        match attempt().await {
            Err(Error::Busy | Error::OutcomeUnknown) if left > 0 => {
                left -= 1;
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
            outcome => return outcome,
        }
    }
}
