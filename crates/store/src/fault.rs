//! A failure that is not the client's fault: what failed, where, why, and what to do.
//!
//! Clients see none of it. It goes to the log and to the operator.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The kind of a failure. Code decides by this and never by the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Stored bytes are not what this program writes.
    Damaged,
    /// The disk, or the file system on it, refused or failed.
    Disk,
    /// The cluster refused or failed.
    Cluster,
    /// The store can't do it now, but perhaps later. Nothing was changed.
    Busy,
    /// A bug in this program.
    Bug,
}

impl FaultKind {
    pub const ALL: [Self; 5] = [Self::Damaged, Self::Disk, Self::Cluster, Self::Busy, Self::Bug];

    /// One word, for logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Disk => "disk",
            Self::Cluster => "cluster",
            Self::Busy => "busy",
            Self::Bug => "bug",
        }
    }

    /// Advice for most faults of this kind.
    fn advice(self) -> &'static str {
        match self {
            Self::Damaged => "check the store, and restore a backup if it is damaged",
            Self::Disk => "check the disk: its free space, its permissions and the system's log",
            Self::Cluster => "check the cluster's nodes and the network to them",
            Self::Busy => "try again later",
            Self::Bug => "this is a defect of Partita: report it with this line of the log",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Cheap to clone: after the first failure of a store, every later call returns the same fault.
#[derive(Clone)]
pub struct Fault(Arc<Parts>);

#[derive(Clone)]
struct Parts {
    kind: FaultKind,
    what: Cow<'static, str>,
    place: Option<String>,
    advice: Option<Cow<'static, str>>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Fault {
    pub fn damaged(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FaultKind::Damaged, what.into())
    }

    pub fn disk(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FaultKind::Disk, what.into())
    }

    pub fn cluster(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FaultKind::Cluster, what.into())
    }

    pub fn busy(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FaultKind::Busy, what.into())
    }

    pub fn bug(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FaultKind::Bug, what.into())
    }

    /// The fault of every call after `close`.
    pub fn closed() -> Self {
        Self::busy("the store is closed").advising("start the server again, or ask another one")
    }

    fn new(kind: FaultKind, what: Cow<'static, str>) -> Self {
        Self(Arc::new(Parts { kind, what, place: None, advice: None, source: None }))
    }

    /// The error that it comes from.
    pub fn because(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.with(|parts| parts.source = Some(source.into().into()))
    }

    /// Replaces the advice of the kind by a better one.
    pub fn advising(self, advice: impl Into<Cow<'static, str>>) -> Self {
        self.with(|parts| parts.advice = Some(advice.into()))
    }

    /// Adds the row, table or file, the narrowest first.
    pub fn about(self, place: impl fmt::Display) -> Self {
        self.with(|parts| {
            parts.place = Some(match &parts.place {
                Some(narrower) => format!("{narrower}, {place}"),
                None => place.to_string(),
            });
        })
    }

    fn with(self, change: impl FnOnce(&mut Parts)) -> Self {
        let mut parts = Arc::unwrap_or_clone(self.0);
        change(&mut parts);
        Self(Arc::new(parts))
    }

    pub fn kind(&self) -> FaultKind {
        self.0.kind
    }

    /// What failed, where and why, without the advice.
    pub fn happened(&self) -> String {
        let Parts { what, place, .. } = &*self.0;
        let mut text = what.to_string();
        if let Some(place) = place {
            text.push_str(&format!(" ({place})"));
        }
        append_causes(&mut text, self.chain());
        text
    }

    /// The errors that caused it, the nearest first.
    pub fn chain(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        std::iter::successors(self.source(), |error| (*error).source())
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// What failed, where, why, and what to do: one line for the operator, without the kind.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = self.0.advice.as_deref().unwrap_or(self.kind().advice());
        write!(f, "{}; {advice}", self.happened())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fault({}: {self})", self.kind())
    }
}

/// The text of an error and of the errors that caused it.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    append_causes(&mut text, std::iter::successors(error.source(), |error| (*error).source()));
    text
}

/// Many errors include the text of their cause. It is not repeated.
fn append_causes<'e>(text: &mut String, causes: impl Iterator<Item = &'e (dyn Error + 'static)>) {
    for cause in causes {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    #[error("no answer from node {node}")]
    struct Driver {
        node: u8,
        source: io::Error,
    }

    fn refused() -> Driver {
        Driver { node: 7, source: io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused") }
    }

    #[test]
    fn a_fault_says_what_happened_to_what_why_and_what_to_do() {
        let fault = Fault::cluster("could not read a row").about("table Books").because(refused());
        assert_eq!(
            fault.to_string(),
            "could not read a row (table Books): no answer from node 7: connection refused; \
             check the cluster's nodes and the network to them"
        );
        let advised = fault.advising("wait");
        assert!(advised.to_string().ends_with("connection refused; wait"), "{advised}");
    }

    #[test]
    fn every_error_below_a_fault_can_be_reached_by_its_type() {
        let fault = Fault::cluster("could not read a row").because(refused());
        let copy = fault.clone().about("table Books");
        for fault in [fault, copy] {
            let chain: Vec<_> = fault.chain().collect();
            assert_eq!(chain.len(), 2);
            assert_eq!(chain[0].downcast_ref::<Driver>().map(|driver| driver.node), Some(7));
            let io = chain[1].downcast_ref::<io::Error>().map(io::Error::kind);
            assert_eq!(io, Some(io::ErrorKind::ConnectionRefused));
        }
    }

    #[test]
    fn places_are_added_up_and_a_clone_is_not_changed() {
        let fault = Fault::damaged("unreadable").about("row 1");
        let later = fault.clone().about("table Books").advising("nothing");
        assert!(later.to_string().starts_with("unreadable (row 1, table Books); nothing"), "{later}");
        assert!(fault.to_string().starts_with("unreadable (row 1); check"), "{fault}");
    }

    #[test]
    fn each_kind_has_its_word_and_its_advice() {
        let words: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(words, ["damaged", "disk", "cluster", "busy", "bug"]);
        let made =
            [Fault::damaged("x"), Fault::disk("x"), Fault::cluster("x"), Fault::busy("x"), Fault::bug("x")];
        assert_eq!(made.each_ref().map(Fault::kind), FaultKind::ALL);
        for fault in made {
            assert_eq!(fault.to_string(), format!("x; {}", fault.kind().advice()));
            assert_eq!(format!("{fault:?}"), format!("Fault({}: {fault})", fault.kind()));
        }
    }

    #[test]
    fn what_an_error_says_of_its_cause_is_not_said_again() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer: {0}")]
        struct Outer(#[source] io::Error);
        assert_eq!(with_causes(&Outer(io::Error::other("inner"))), "outer: inner");
        assert_eq!(with_causes(&refused()), "no answer from node 7: connection refused");
    }
}
