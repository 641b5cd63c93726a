//! Asking again while a store has too much to do.

use std::future::Future;
use std::time::Duration;

use store::Error;

const FIRST_WAIT: Duration = Duration::from_millis(20);
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Some two minutes altogether.
const ATTEMPTS: u32 = 64;

/// For calls that may be made twice: also one whose outcome is unknown is made again.
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
