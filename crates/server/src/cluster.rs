//! `partita serve --store`: a cluster in place of a data directory.

use std::time::Duration;

use engine_cassandra::{CassandraEngine, ConnectError, Options};
use tokio::time::Instant;

const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Servers and their cluster are often started together, so one that does not answer yet is waited for. Whatever
/// else is wrong stays wrong, and is said at once.
pub async fn connect(options: Options, wait: Duration) -> Result<CassandraEngine, String> {
    let deadline = Instant::now() + wait;
    let mut pause = RETRY_MIN;
    loop {
        let error = match CassandraEngine::connect(options.clone()).await {
            Ok(engine) => return Ok(engine),
            Err(error) => error,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if !error.is_temporary() || left.is_zero() {
            return Err(gave_up(&error, wait));
        }
        tracing::warn!(%error, seconds_left = left.as_secs(), "the cluster can't be used yet; trying again");
        tokio::time::sleep(pause.min(left)).await;
        pause = (pause * 2).min(RETRY_MAX);
    }
}

fn gave_up(error: &ConnectError, wait: Duration) -> String {
    if error.is_temporary() {
        format!("{error} (waited {} s; --store-wait-seconds waits longer)", wait.as_secs())
    } else {
        error.to_string()
    }
}
