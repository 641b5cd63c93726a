//! Whether the engine can still be believed.
//!
//! After a failed write nobody knows what the disk holds until the log has been replayed. So the first failure
//! is final: everything is refused from then on, and the server is told so that it can exit.

use std::future::Future;

use store::Fault;
use tokio::sync::watch;
use tracing::error;

#[derive(Debug)]
pub struct Health(watch::Sender<Option<Fault>>);

impl Health {
    pub fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Later failures are consequences of the first, which stays the one that is told.
    pub fn fail(&self, fault: Fault) {
        error!(error = %fault, "the storage failed; nothing is accepted until a restart");
        self.0.send_if_modified(|failure| {
            let first = failure.is_none();
            failure.get_or_insert(fault);
            first
        });
    }

    pub fn check(&self) -> Result<(), Fault> {
        self.0.borrow().clone().map_or(Ok(()), Err)
    }

    /// Resolves once the engine has failed, and never if it does not.
    pub fn failure(&self) -> impl Future<Output = Fault> + Send + use<> {
        let mut failure = self.0.subscribe();
        async move {
            let found = failure.wait_for(Option::is_some).await.ok().and_then(|fault| fault.clone());
            match found {
                Some(fault) => fault,
                None => std::future::pending().await,
            }
        }
    }
}
