//! The three services, and how they differ in addresses, signatures and logs.

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

    /// Its name in host names (`account.blob.…`), in signed resources (`/blob/account/…`), in logs and in their paths.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Queue => "queue",
            Self::Table => "table",
        }
    }

    /// Its name inside other names: `BlobEndpoint`, `GetBlobServiceProperties`, `$MetricsHourPrimaryTransactionsBlob`.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Blob => "Blob",
            Self::Queue => "Queue",
            Self::Table => "Table",
        }
    }

    /// Its letter in `ss` of an account SAS.
    pub const fn letter(self) -> char {
        match self {
            Self::Blob => 'b',
            Self::Queue => 'q',
            Self::Table => 't',
        }
    }

    /// The port at which emulators serve it.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Blob => 10000,
            Self::Queue => 10001,
            Self::Table => 10002,
        }
    }

    /// The `Server` header of its answers; some tools check it.
    pub const fn server(self) -> &'static str {
        match self {
            Self::Blob => "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0",
            Self::Queue => "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0",
            Self::Table => "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0",
        }
    }

    /// The permissions of the service's own tokens and of its stored access policies, in the order required.
    pub const fn permissions(self) -> &'static str {
        match self {
            Self::Blob => "racwdxyltfmeopi",
            Self::Queue => "raup",
            Self::Table => "raud",
        }
    }

    /// Whether the answer to an anonymous request of this version has a challenge, which says how to sign in. Spec: access-and-service 3.2,
    /// blob-operations 8.1, queue-operations 7.1.
    pub fn sends_challenge(self, version: Version) -> bool {
        match self {
            Self::Blob | Self::Queue => version >= Version::FIRST_CHALLENGE,
            Self::Table => version >= Version::FIRST_TABLE_CHALLENGE,
        }
    }

    /// By its name, in any case.
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
    fn the_table_service_sends_challenges_since_a_later_version() {
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
