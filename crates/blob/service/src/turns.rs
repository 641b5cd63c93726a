//! Changes of one container follow each other within a server.
//!
//! Delete judges a container's lease and then drops its table; nobody may acquire the lease between the two. The engine's
//! contract can't drop on a condition yet.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::{Mutex, MutexGuard};

use crate::ContainerRef;

/// Containers that have the same number share a turn.
const TURNS: usize = 64;

#[derive(Debug)]
pub struct Turns([Mutex<()>; TURNS]);

impl Default for Turns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl Turns {
    pub async fn take(&self, container: &ContainerRef) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        container.hash(&mut hasher);
        self.0[hasher.finish() as usize % TURNS].lock().await
    }
}
