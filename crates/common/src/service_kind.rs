//! The three services and what tells them apart wherever an account is addressed, signed for or logged.

use std::fmt;

use crate::Version;

/// A service of a storage account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServiceKind {
    Blob,
    Queue,
    Table,
}

impl ServiceKind {
    pub const ALL: [Self; 3] = [Self::Blob, Self::Queue, Self::Table];

    /// Its label in host names (`account.blob.…`), its word in signed resources (`/blob/account/…`), in logs and in
    /// their paths.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Queue => "queue",
            Self::Table => "table",
        }
    }

    /// Its word inside of other names: `BlobEndpoint`, `GetBlobServiceProperties`, `$MetricsHourPrimaryTransactionsBlob`.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Blob => "Blob",
            Self::Queue => "Queue",
            Self::Table => "Table",
        }
    }

    /// Its letter in `ss` of an account's token.
    pub const fn letter(self) -> char {
        match self {
            Self::Blob => 'b',
            Self::Queue => 'q',
            Self::Table => 't',
        }
    }

    /// Where every emulator serves it.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Blob => 10000,
            Self::Queue => 10001,
            Self::Table => 10002,
        }
    }

    /// The `Server` header of what it answers itself; some tools look for it.
    pub const fn server(self) -> &'static str {
        match self {
            Self::Blob => "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0",
            Self::Queue => "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0",
            Self::Table => "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0",
        }
    }

    /// The permissions of a service's own token and of a stored policy, in the order that they are written in.
    pub const fn permissions(self) -> &'static str {
        match self {
            Self::Blob => "racwdxyltfmeopi",
            Self::Queue => "raup",
            Self::Table => "raud",
        }
    }

    /// Whether a request of this version that has no credentials is told how to sign in. Spec: access-and-service 3.2,
    /// blob-operations 8.1, queue-operations 7.1.
    pub fn sends_challenge(self, version: Version) -> bool {
        match self {
            Self::Blob | Self::Queue => version >= Version::FIRST_CHALLENGE,
            Self::Table => version >= Version::FIRST_TABLE_CHALLENGE,
        }
    }

    /// By its label in a host name, of any case.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for ServiceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for kind in ServiceKind::ALL {
            assert_eq!(ServiceKind::of_name(kind.name()), Some(kind));
            assert_eq!(ServiceKind::of_name(kind.title()), Some(kind));
        }
        assert_eq!(ServiceKind::of_name("file"), None);
    }

    #[test]
    fn the_table_service_learnt_to_challenge_last() {
        let check = |version: &str, expected: [bool; 3]| {
            let version = Version::parse(version).unwrap();
            assert_eq!(ServiceKind::ALL.map(|kind| kind.sends_challenge(version)), expected, "{version}");
        };
        check("2019-10-10", [false; 3]);
        check("2019-12-12", [true, true, false]);
        check("2020-10-02", [true, true, false]);
        check("2020-12-06", [true; 3]);
    }
}
