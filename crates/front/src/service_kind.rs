//! The three services of a storage account, and what tells them apart on the outside.

/// Which service of an account a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServiceKind {
    Blob,
    Queue,
    Table,
}

impl ServiceKind {
    pub const ALL: [Self; 3] = [Self::Blob, Self::Queue, Self::Table];

    /// In host names (`account.table.…`), in paths of request logs and in their lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Queue => "queue",
            Self::Table => "table",
        }
    }

    /// In the `ss` of an account's shared access signature.
    pub const fn letter(self) -> char {
        match self {
            Self::Blob => 'b',
            Self::Queue => 'q',
            Self::Table => 't',
        }
    }
}
