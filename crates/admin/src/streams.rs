//! The places of the streams of events: some for the administrator, some for accounts, and few enough for each account that
//! one account takes no place that another needs.

use std::collections::HashMap;
use std::sync::Arc;

use common::AccountName;
use parking_lot::Mutex;

/// Of the administrator.
const OF_ADMIN_MAX: usize = 16;
/// Of all accounts together, and of one.
const OF_ACCOUNTS_MAX: usize = 16;
const OF_ACCOUNT_MAX: usize = 8;

/// Streams that are open, by account; `None` is the administrator.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<HashMap<Option<AccountName>, usize>>);

/// Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct StreamPlace {
    streams: Arc<Streams>,
    whose: Option<AccountName>,
}

impl Streams {
    /// A place for one more stream. `None` if there is none left for this account, or for the administrator.
    pub fn take(self: &Arc<Self>, whose: Option<AccountName>) -> Option<StreamPlace> {
        let mut open = self.0.lock();
        let own = open.get(&whose).copied().unwrap_or(0);
        let has_room = match &whose {
            None => own < OF_ADMIN_MAX,
            Some(_) => {
                let of_accounts: usize =
                    open.iter().filter(|(account, _)| account.is_some()).map(|(_, count)| count).sum();
                own < OF_ACCOUNT_MAX && of_accounts < OF_ACCOUNTS_MAX
            }
        };
        if !has_room {
            return None;
        }
        open.insert(whose.clone(), own + 1);
        Some(StreamPlace { streams: self.clone(), whose })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock();
        match open.get_mut(&self.whose) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                open.remove(&self.whose);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(streams: &Arc<Streams>, account: Option<&str>) -> Vec<StreamPlace> {
        let whose = account.map(|name| AccountName::parse(name).unwrap());
        std::iter::from_fn(|| streams.take(whose.clone())).take(100).collect()
    }

    #[test]
    fn an_account_that_takes_all_it_gets_leaves_places_for_others_and_for_the_administrator() {
        let streams = Arc::new(Streams::default());
        let greedy = take_all(&streams, Some("greedy"));
        let other = take_all(&streams, Some("other"));
        let third = take_all(&streams, Some("third"));
        let admin = take_all(&streams, None);
        assert_eq!((greedy.len(), other.len(), third.len(), admin.len()), (8, 8, 0, 16));
        drop(other);
        assert_eq!(take_all(&streams, Some("third")).len(), 8);
        drop((greedy, admin));
        assert!(streams.0.lock().is_empty(), "what is not used takes no memory");
    }
}
