//! What a blob tells of the copy that made it.

use common::{DateTime, Guid};

use crate::Refusal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStatus {
    Pending,
    Success,
    Aborted,
    Failed,
}

impl CopyStatus {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Success, Self::Aborted, Self::Failed].into_iter().find(|s| s.name() == text)
    }
}

/// The `x-ms-copy-*` properties. Every write but Lease, Put Page and Put Block removes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyState {
    pub id: Guid,
    /// The address of the source, without a signature.
    pub source: String,
    pub status: CopyStatus,
    pub copied: u64,
    pub total: u64,
    /// None while it is pending.
    pub completed: Option<DateTime>,
    pub description: Option<String>,
}

impl CopyState {
    /// `11/11`.
    pub fn progress(&self) -> String {
        format!("{}/{}", self.copied, self.total)
    }

    /// Abort Copy with this id.
    pub fn abort(state: Option<&Self>, id: Guid, now: DateTime) -> Result<Self, Refusal> {
        match state {
            Some(state) if state.status == CopyStatus::Pending => match state.id == id {
                true => {
                    Ok(Self { status: CopyStatus::Aborted, copied: 0, completed: Some(now), ..state.clone() })
                }
                false => Err(Refusal::CopyIdMismatch),
            },
            _ => Err(Refusal::NoPendingCopy),
        }
    }
}

/// A copy's source as it may be shown: without the signature of a token.
pub fn shown_source(url: &str) -> String {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let is_shown = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        ["snapshot", "versionid"].iter().any(|shown| name.eq_ignore_ascii_case(shown))
    };
    let kept: Vec<&str> = query.split('&').filter(is_shown).collect();
    match kept.is_empty() {
        true => address.to_owned(),
        false => format!("{address}?{}", kept.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(status: CopyStatus) -> CopyState {
        CopyState {
            id: Guid([1; 16]),
            source: "https://acct.blob.core.windows.net/c/b".to_owned(),
            status,
            copied: 5,
            total: 11,
            completed: None,
            description: None,
        }
    }

    /// Spec: blob-operations 6.7.
    #[test]
    fn only_a_pending_copy_can_be_aborted() {
        let now = DateTime::MIN_STORED;
        let check = |state: Option<&CopyState>, id: u8, expected: &str| {
            let refusal = CopyState::abort(state, Guid([id; 16]), now).unwrap_err();
            assert_eq!((refusal.status(), refusal.code()), (409, expected));
        };
        check(None, 1, "NoPendingCopyOperation");
        for status in [CopyStatus::Success, CopyStatus::Aborted, CopyStatus::Failed] {
            check(Some(&state(status)), 1, "NoPendingCopyOperation");
        }
        check(Some(&state(CopyStatus::Pending)), 2, "CopyIdMismatch");
        let aborted = CopyState::abort(Some(&state(CopyStatus::Pending)), Guid([1; 16]), now).unwrap();
        assert_eq!((aborted.status, aborted.progress().as_str()), (CopyStatus::Aborted, "0/11"));
        assert_eq!(aborted.completed, Some(now));
    }

    #[test]
    fn a_source_is_shown_without_its_signature() {
        let check = |url: &str, expected: &str| assert_eq!(shown_source(url), expected);
        check("https://a/c/b", "https://a/c/b");
        check("https://a/c/b?sv=2021-08-06&sig=secret", "https://a/c/b");
        check("https://a/c/b?Snapshot=2022&sig=s", "https://a/c/b?Snapshot=2022");
        check("https://a/c/b?sig=s&versionid=2022&se=1", "https://a/c/b?versionid=2022");
    }
}
