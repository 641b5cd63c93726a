//! The three storage services of an account.

/// A storage service. Each account has one of each kind, with properties of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServiceKind {
    Table,
    Queue,
    Blob,
}

impl ServiceKind {
    pub const ALL: [Self; 3] = [Self::Table, Self::Queue, Self::Blob];
}
