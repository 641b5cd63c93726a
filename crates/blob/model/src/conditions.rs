//! What a request asks of a container or a blob before it goes on: `If-*` and `x-ms-if-tags` (spec: blob-operations 2.6).
//!
//! [`Conditions::judge`] finds what is unmet. Which refusal that is depends on the operation, and is a table of its own:
//! [`Unmet::refusal`].

use common::DateTime;

use crate::{CopySourceFault, Etag, Refusal, TagExpression, Tags};

/// All that a request says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    pub if_match: Option<Matches>,
    pub if_none_match: Option<Matches>,
    pub modified_since: Option<DateTime>,
    pub unmodified_since: Option<DateTime>,
    pub if_tags: Option<TagExpression>,
}

/// The ETags of `If-Match` or `If-None-Match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matches {
    /// `*`: whatever is there.
    Anything,
    /// Any of these. Texts that are no ETag of this server match nothing, and are left out.
    OneOf(Vec<Etag>),
}

/// What conditions are judged against.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub etag: Etag,
    pub tags: &'a Tags,
}

/// The condition that is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmet {
    Match,
    NoneMatch,
    /// `If-None-Match: *`, and there is something.
    NothingThere,
    ModifiedSince,
    UnmodifiedSince,
    Tags,
}

/// What the conditions are about: the resource of an operation, or the source that it copies from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Get Blob and others that only read.
    Read,
    /// A blob or a container that is there, and is changed.
    Write,
    /// Put Blob, Put Block List: what may or may not be there.
    Create,
    /// Copy Blob, its destination.
    CopyTarget,
    /// Put Blob From URL and Copy From URL, their destination.
    FromUrlTarget,
    PageFromUrlTarget,
    AppendFromUrlTarget,
    CopySource,
    /// Of Put Blob From URL, Copy From URL and Put Block From URL.
    FromUrlSource,
    /// Of Put Page From URL and Append Block From URL.
    RangeFromUrlSource,
}

impl Matches {
    /// `*`, or ETags with or without quotes between commas.
    pub fn parse(value: &str) -> Self {
        match value.trim_ascii() {
            "*" => Self::Anything,
            list => Self::OneOf(list.split(',').filter_map(|etag| Etag::parse(etag.trim_ascii())).collect()),
        }
    }

    fn has(&self, etag: Etag) -> bool {
        match self {
            Self::Anything => true,
            Self::OneOf(etags) => etags.contains(&etag),
        }
    }
}

impl Operand {
    /// Whether two conditions that say nearly the same are both asked, as reads do, or only the ETag is.
    const fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::CopySource | Self::FromUrlSource | Self::RangeFromUrlSource)
    }
}

impl Conditions {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The first condition that is not met; `seen` is none if there is nothing. `holds_lease` says that the request has named
    /// the valid lease of what is there: whoever holds it knows that it is there, and `If-None-Match: *` says nothing.
    pub fn judge(&self, seen: Option<Seen<'_>>, operand: Operand, holds_lease: bool) -> Result<(), Unmet> {
        let Some(Seen { etag, tags }) = seen else {
            // Whatever a request wants to be there is not.
            return match (&self.if_match, &self.if_tags) {
                (Some(_), _) => Err(Unmet::Match),
                (None, Some(_)) => Err(Unmet::Tags),
                (None, None) => Ok(()),
            };
        };
        let modified = etag.last_modified();
        let is_matched = self.if_match.as_ref().map(|etags| etags.has(etag));
        let is_unmodified = self.unmodified_since.map(|since| modified <= since);
        let is_other = match &self.if_none_match {
            Some(Matches::Anything) if holds_lease => None,
            none_match => none_match.as_ref().map(|etags| !etags.has(etag)),
        };
        let is_modified = self.modified_since.map(|since| modified > since);
        if is_matched == Some(false) {
            return Err(Unmet::Match);
        }
        // A write that names an ETag is not asked for the time too.
        if is_unmodified == Some(false) && (operand.is_read() || is_matched.is_none()) {
            return Err(Unmet::UnmodifiedSince);
        }
        match (is_other, is_modified) {
            // Of these two one is enough for a read.
            (Some(false), Some(true)) if operand.is_read() => {}
            (Some(false), _) if self.if_none_match == Some(Matches::Anything) => {
                return Err(Unmet::NothingThere);
            }
            (Some(false), _) => return Err(Unmet::NoneMatch),
            (None, Some(false)) => return Err(Unmet::ModifiedSince),
            (Some(true), _) | (None, _) => {}
        }
        match &self.if_tags {
            Some(expression) if !expression.holds(tags) => Err(Unmet::Tags),
            _ => Ok(()),
        }
    }

    /// The same, as a client hears it.
    pub fn check(&self, seen: Option<Seen<'_>>, operand: Operand, holds_lease: bool) -> Result<(), Refusal> {
        self.judge(seen, operand, holds_lease).map_err(|unmet| unmet.refusal(operand))
    }
}

impl Unmet {
    pub fn refusal(self, operand: Operand) -> Refusal {
        let not_met = Refusal::from(common::Refusal::ConditionNotMet);
        match operand {
            Operand::Read => match self {
                Self::NoneMatch | Self::NothingThere | Self::ModifiedSince => Refusal::NotModified,
                Self::Match | Self::UnmodifiedSince | Self::Tags => not_met,
            },
            Operand::Write => not_met,
            Operand::Create => match self {
                Self::NothingThere => Refusal::BlobAlreadyExists,
                _ => not_met,
            },
            Operand::CopyTarget => match self {
                Self::NothingThere => Refusal::BlobAlreadyExists,
                Self::Tags => not_met,
                _ => Refusal::TargetConditionNotMet,
            },
            Operand::FromUrlTarget => match self {
                Self::NothingThere => Refusal::BlobAlreadyExists,
                Self::Match => Refusal::TargetConditionNotMet,
                _ => not_met,
            },
            Operand::PageFromUrlTarget => match self {
                Self::Match => Refusal::TargetConditionNotMet,
                _ => not_met,
            },
            Operand::AppendFromUrlTarget => not_met,
            Operand::CopySource => match self {
                Self::Tags => not_met,
                _ => Refusal::SourceConditionNotMet,
            },
            Operand::FromUrlSource => match self {
                Self::Match => Refusal::SourceConditionNotMet,
                Self::Tags => not_met,
                Self::UnmodifiedSince => Refusal::CopySource(CopySourceFault::ConditionNotMet),
                Self::NoneMatch | Self::NothingThere | Self::ModifiedSince => {
                    Refusal::CopySource(CopySourceFault::NotModified)
                }
            },
            Operand::RangeFromUrlSource => match self {
                Self::Tags => not_met,
                Self::Match | Self::UnmodifiedSince => Refusal::CopySource(CopySourceFault::NotVerified),
                Self::NoneMatch | Self::NothingThere | Self::ModifiedSince => {
                    Refusal::CopySource(CopySourceFault::NotModified)
                }
            },
        }
    }
}

#[cfg(test)]
mod tests;
