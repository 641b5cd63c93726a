//! Changes of one container follow each other within a server, and so do changes of one blob.
//!
//! Delete judges a container's lease and then drops its table; nobody may acquire the lease between the two. Of blobs the
//! engine decides who was first; turns only spare the others a second attempt.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::{Mutex, MutexGuard};

/// Containers or blobs that have the same number share a turn.
const TURNS: usize = 1024;

#[derive(Debug)]
pub struct Turns(Box<[Mutex<()>]>);

impl Default for Turns {
    fn default() -> Self {
        Self((0..TURNS).map(|_| Mutex::default()).collect())
    }
}

impl Turns {
    pub async fn take(&self, resource: &impl Hash) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        resource.hash(&mut hasher);
        // The remainder is below the number of turns.
        self.0[(hasher.finish() % TURNS as u64) as usize].lock().await
    }
}
