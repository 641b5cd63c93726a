//! The memory that requests may hold: their bodies, what is made of them, and answers that are not sent yet.
//!
//! All requests share one sum. Small requests are not counted; the limit of connections bounds them. No request waits
//! for memory, because requests that wait may hold the memory that others need: a request that finds none is refused
//! as busy.
//!
//! What one account may hold depends on what is left: four times as much. So the first can hold four fifths, the next four
//! fifths of the rest; and however long they hold it, something is left for the one after them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use model::AccountName;

/// Bytes that a request may hold without being counted.
pub const FREE_BYTES: usize = 16 * 1024;

/// What an account may hold, in parts of what is left.
const ACCOUNT_PARTS: usize = 4;

#[derive(Debug)]
pub struct RequestMemory {
    bytes_max: usize,
    held: AtomicUsize,
    /// Bytes that the requests of each account hold. Only accounts that were proved come here.
    accounts: Mutex<HashMap<AccountName, Arc<AtomicUsize>>>,
}

/// The memory as one account has it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AccountMemory {
    memory: Arc<RequestMemory>,
    account: AccountName,
}

/// The part of one request; released when dropped.
#[derive(Debug)]
pub struct MemoryShare {
    memory: Arc<RequestMemory>,
    of: Holder,
    bytes: usize,
}

/// Who holds a share.
#[derive(Debug)]
enum Holder {
    /// It is not known yet.
    Nobody,
    /// Most requests are small, and their account is never looked up.
    Named(AccountName),
    Account(Arc<AtomicUsize>),
}

impl RequestMemory {
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, held: AtomicUsize::new(0), accounts: Mutex::default() })
    }

    /// A share of zero bytes, of no account.
    pub fn nothing(self: &Arc<Self>) -> MemoryShare {
        MemoryShare { memory: self.clone(), of: Holder::Nobody, bytes: 0 }
    }

    /// For an account that a request has proved.
    pub fn of(self: &Arc<Self>, account: &AccountName) -> AccountMemory {
        AccountMemory { memory: self.clone(), account: account.clone() }
    }

    fn held_by(&self, account: &AccountName) -> Arc<AtomicUsize> {
        // An entry is made in one step.
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.entry(account.clone()).or_default().clone()
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes that requests hold now.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl AccountMemory {
    /// A share of zero bytes.
    pub fn nothing(&self) -> MemoryShare {
        let (memory, account) = (self.memory.clone(), self.account.clone());
        MemoryShare { memory, of: Holder::Named(account), bytes: 0 }
    }
}

impl MemoryShare {
    /// False, without a change, if there is not enough left, or not enough for one account.
    pub fn grow(&mut self, bytes: usize) -> bool {
        // Most requests are small. The sum is shared by all threads, so that even adding nothing to it takes time.
        if bytes == 0 {
            return true;
        }
        let all = self.memory.held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let by_account = self.account();
        let by_account =
            by_account.map(|held| held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes));
        let left = self.memory.bytes_max.checked_sub(all);
        let is_fair = |left: usize| by_account.is_none_or(|held| held <= left.saturating_mul(ACCOUNT_PARTS));
        if left.is_some_and(is_fair) {
            self.bytes += bytes;
            return true;
        }
        self.release(bytes);
        false
    }

    /// The bytes that its account holds.
    fn account(&mut self) -> Option<&AtomicUsize> {
        if let Holder::Named(account) = &self.of {
            self.of = Holder::Account(self.memory.held_by(account));
        }
        match &self.of {
            Holder::Account(held) => Some(held),
            Holder::Nobody | Holder::Named(_) => None,
        }
    }

    /// Grows or shrinks to `bytes` without the free bytes. False, without a change, if there is not enough left.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(FREE_BYTES);
        if wanted > self.bytes {
            return self.grow(wanted - self.bytes);
        }
        self.shrink(self.bytes - wanted);
        true
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Grows even if there is not enough left: for answers that must be sent in any case.
    pub fn grow_anyway(&mut self, bytes: usize) {
        self.memory.held.fetch_add(bytes, Ordering::Relaxed);
        if let Some(held) = self.account() {
            held.fetch_add(bytes, Ordering::Relaxed);
        }
        self.bytes += bytes;
    }

    pub fn give_back(&mut self) {
        self.shrink(self.bytes);
    }

    /// From both sums.
    fn release(&mut self, bytes: usize) {
        self.memory.held.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(held) = self.account() {
            held.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn shrink(&mut self, bytes: usize) {
        if bytes > 0 {
            self.release(bytes);
            self.bytes -= bytes;
        }
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_never_more_than_there_is_and_comes_back() {
        let memory = RequestMemory::new(100);
        let (mut one, mut two) = (memory.nothing(), memory.nothing());
        assert!(one.grow(60) && !two.grow(41) && two.grow(40));
        assert!(!one.grow(1));
        assert_eq!(memory.held(), 100);
        one.grow_anyway(10);
        assert_eq!(memory.held(), 110);
        drop(one);
        assert_eq!(memory.held(), 40);
        two.give_back();
        assert!(two.grow(100));
        drop(two);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn the_first_bytes_are_free_and_what_is_no_longer_needed_is_given_back() {
        let memory = RequestMemory::new(100);
        let mut held = memory.nothing();
        assert!(held.resize(FREE_BYTES) && memory.held() == 0);
        assert!(held.resize(FREE_BYTES + 100) && memory.held() == 100);
        assert!(!held.resize(FREE_BYTES + 101) && held.bytes() == 100);
        assert!(held.resize(FREE_BYTES + 7) && memory.held() == 7);
        assert!(held.resize(0) && memory.held() == 0);
    }

    #[test]
    fn whatever_accounts_hold_the_next_one_finds_something() {
        let memory = RequestMemory::new(90_000);
        let account = |n: usize| memory.of(&AccountName::parse(&format!("account{n}")).unwrap());
        let mut shares = Vec::new();
        let expected = [72_000, 86_400, 89_280];
        for (n, expected) in expected.into_iter().enumerate() {
            // In many requests, as much as there is.
            loop {
                let mut share = account(n).nothing();
                if !share.grow(10) {
                    break;
                }
                shares.push(share);
            }
            assert!(memory.held().abs_diff(expected) <= 10, "{n}: {}", memory.held());
        }
        assert!(account(10).nothing().grow(500));
        // Who gives back can have it again, and others have more.
        shares.truncate(3_600);
        assert!(account(10).nothing().grow(30_000));
        assert!(account(0).nothing().grow(10_000));
        drop(shares);
        assert_eq!(memory.held(), 0);
        assert!(account(0).nothing().grow(72_000) && !account(0).nothing().grow(72_001));
    }

    #[test]
    fn what_must_be_sent_counts_for_its_account() {
        let memory = RequestMemory::new(100);
        let account = memory.of(&AccountName::parse("one").unwrap());
        let mut sent = account.nothing();
        sent.grow_anyway(70);
        assert!(!account.nothing().grow(11) && memory.nothing().grow(11));
        sent.give_back();
        assert!(account.nothing().grow(80));
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn a_sum_beyond_counting_is_refused() {
        let memory = RequestMemory::new(100);
        let mut held = memory.nothing();
        assert!(held.grow(1) && !held.grow(usize::MAX - 1));
    }
}
