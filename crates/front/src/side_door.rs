//! A way into the server beside the ports of its services: a listener with a handler and bounds of its own. The handler can
//! pass requests on to the services without a socket.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use common::ServiceKind;
use http::Response;
use tokio::sync::watch;

use crate::listener::Bounds;
use crate::pipeline::{self, Arrival, Front, Services};
use crate::port::Port;
use crate::response_body::Body;

/// Answers the requests of a side door. All checks are its own.
pub trait Handler: fmt::Debug + Send + Sync {
    fn answer<'a>(
        &'a self,
        arrival: Arrival<'a>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>;
}

/// A port, what answers its requests, and what its clients may take: nothing of it is shared with the services' ports.
#[derive(Debug)]
pub struct SideDoor {
    pub port: Port,
    pub handler: Arc<dyn Handler>,
    pub bounds: Bounds,
}

/// The services of a server, for requests that do not come through a port of theirs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LocalServices {
    pub(crate) front: Arc<Front>,
    pub(crate) services: Arc<Services>,
    pub(crate) stopped: watch::Receiver<()>,
}

impl LocalServices {
    pub fn front(&self) -> &Front {
        &self.front
    }

    pub fn kinds(&self) -> &[ServiceKind] {
        self.services.kinds()
    }

    /// The answer to a request, as if it had been received at a port of this service. `None` if the service is not served.
    pub async fn answer(&self, service: ServiceKind, arrival: Arrival<'_>) -> Option<Response<Body>> {
        if !self.kinds().contains(&service) {
            return None;
        }
        Some(pipeline::answer(&self.front, &self.services, service, arrival).await)
    }

    /// Resolves when the server begins to stop. An answer that would never end must end then.
    pub async fn stopping(&self) {
        let mut stopped = self.stopped.clone();
        // An error, as nothing is ever sent: the sender was dropped.
        let _ = stopped.changed().await;
    }
}
