//! Access tiers: what a blob costs to keep and to read. Here they are kept and shown, and Archive forbids reading.

use common::DateTime;

use crate::{BlobType, Refusal};

/// A tier of block blobs, or of page blobs in premium accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTier {
    Hot,
    Cool,
    Cold,
    Archive,
    /// `P4` to `P80`, by its number.
    Premium(u8),
}

const PREMIUM: [(&str, u8); 11] = [
    ("P4", 4),
    ("P6", 6),
    ("P10", 10),
    ("P15", 15),
    ("P20", 20),
    ("P30", 30),
    ("P40", 40),
    ("P50", 50),
    ("P60", 60),
    ("P70", 70),
    ("P80", 80),
];

impl AccessTier {
    pub fn parse(text: &str) -> Option<Self> {
        let of_blocks = [Self::Hot, Self::Cool, Self::Cold, Self::Archive];
        let found = of_blocks.into_iter().find(|tier| tier.name().eq_ignore_ascii_case(text));
        let premium = || PREMIUM.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.or_else(|| premium().map(|(_, number)| Self::Premium(*number)))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Hot => "Hot",
            Self::Cool => "Cool",
            Self::Cold => "Cold",
            Self::Archive => "Archive",
            // Only `parse` makes these, out of the table.
            Self::Premium(number) => {
                PREMIUM.iter().find(|(_, of)| *of == number).map_or("P4", |(name, _)| name)
            }
        }
    }

    /// The tier that `x-ms-access-tier` asks for, for a blob of this type in a standard account.
    pub fn asked(text: &str, of: BlobType) -> Result<Self, Refusal> {
        let invalid = || Refusal::HeaderInvalid { name: "x-ms-access-tier", value: text.to_owned() };
        let tier = Self::parse(text).ok_or_else(invalid)?;
        match (of, tier) {
            (BlobType::Block, Self::Premium(_)) => Err(invalid()),
            (BlobType::Block, _) => Ok(tier),
            (BlobType::Append | BlobType::Page, _) => Err(Refusal::TierNotSupported),
        }
    }
}

/// How quickly a blob leaves Archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RehydratePriority {
    Standard,
    High,
}

impl RehydratePriority {
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let found = [Self::Standard, Self::High].into_iter().find(|p| p.name().eq_ignore_ascii_case(text));
        found
            .ok_or_else(|| Refusal::HeaderInvalid { name: "x-ms-rehydrate-priority", value: text.to_owned() })
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "Standard",
            Self::High => "High",
        }
    }
}

/// The tier of a block blob. Until one is set, it is the account's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierState {
    pub tier: AccessTier,
    /// When it was set; none if the tier is the account's.
    pub changed: Option<DateTime>,
    /// The tier that a blob will have when it has left Archive.
    pub rehydrating: Option<(AccessTier, RehydratePriority)>,
}

impl TierState {
    /// Of a new blob that names no tier.
    pub const INFERRED: Self = Self { tier: AccessTier::Hot, changed: None, rehydrating: None };

    pub fn set(tier: AccessTier, now: DateTime) -> Self {
        Self { tier, changed: Some(now), rehydrating: None }
    }

    /// `rehydrate-pending-to-hot` and such.
    pub fn archive_status(&self) -> Option<String> {
        let (target, _) = self.rehydrating?;
        Some(format!("rehydrate-pending-to-{}", target.name().to_ascii_lowercase()))
    }

    /// The content can't be read, nor can it be changed.
    pub fn check_online(&self) -> Result<(), Refusal> {
        match self.tier {
            // Also while it leaves the archive.
            AccessTier::Archive => Err(Refusal::BlobArchived),
            _ => Ok(()),
        }
    }

    /// Set Blob Tier: the new state, and whether it is pending (202) or done (200).
    pub fn change(
        &self,
        tier: AccessTier,
        priority: RehydratePriority,
        now: DateTime,
    ) -> Result<(Self, bool), Refusal> {
        if self.tier != AccessTier::Archive {
            return Ok((Self::set(tier, now), false));
        }
        match self.rehydrating {
            // It is archived already, and stays so.
            _ if tier == AccessTier::Archive => Ok((*self, false)),
            None => {
                let rehydrating = Some((tier, priority));
                Ok((Self { rehydrating, changed: Some(now), ..*self }, true))
            }
            // Only its priority may still rise.
            Some((pending, before)) if pending == tier => {
                let priority = if before == RehydratePriority::High { before } else { priority };
                Ok((Self { rehydrating: Some((tier, priority)), ..*self }, true))
            }
            Some(_) => Err(Refusal::BlobBeingRehydrated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime {
        DateTime::from_ticks(DateTime::MIN_STORED.ticks() + seconds * 10_000_000).unwrap()
    }

    /// Spec: blob-operations 6.1, 6.3.
    #[test]
    fn a_tier_fits_the_type_of_its_blob() {
        let check = |text: &str, of: BlobType, expected: Result<AccessTier, &str>| {
            let asked = AccessTier::asked(text, of);
            assert_eq!(
                asked.as_ref().map(|tier| *tier).map_err(|refusal| refusal.code()),
                expected,
                "{text} {of:?}"
            );
        };
        for tier in [AccessTier::Hot, AccessTier::Cool, AccessTier::Cold, AccessTier::Archive] {
            check(tier.name(), BlobType::Block, Ok(tier));
            check(tier.name(), BlobType::Append, Err("AccessTierNotSupportedForBlobType"));
        }
        check("cool", BlobType::Block, Ok(AccessTier::Cool));
        check("P20", BlobType::Block, Err("InvalidHeaderValue"));
        check("P4", BlobType::Page, Err("AccessTierNotSupportedForBlobType"));
        check("Warm", BlobType::Block, Err("InvalidHeaderValue"));
        for (name, _) in PREMIUM {
            assert_eq!(AccessTier::parse(name).map(AccessTier::name), Some(name));
        }
        assert_eq!(RehydratePriority::parse("None").unwrap_err().code(), "InvalidHeaderValue");
        assert_eq!(RehydratePriority::parse("High"), Ok(RehydratePriority::High));
    }

    #[test]
    fn a_blob_leaves_archive_pending() {
        use AccessTier::{Archive, Cool, Hot};
        use RehydratePriority::{High, Standard};
        let fresh = TierState::INFERRED;
        let (cool, pending) = fresh.change(Cool, Standard, at(1)).unwrap();
        assert_eq!((cool, pending), (TierState::set(Cool, at(1)), false));
        let (archived, pending) = cool.change(Archive, Standard, at(2)).unwrap();
        assert_eq!((archived.tier, archived.changed, pending), (Archive, Some(at(2)), false));
        assert_eq!(archived.check_online(), Err(Refusal::BlobArchived));

        let (leaving, pending) = archived.change(Hot, Standard, at(3)).unwrap();
        assert_eq!((leaving.tier, pending), (Archive, true));
        assert_eq!(leaving.archive_status().as_deref(), Some("rehydrate-pending-to-hot"));
        assert_eq!(leaving.check_online(), Err(Refusal::BlobArchived));
        // The same target again, with more haste.
        let (hastened, pending) = leaving.change(Hot, High, at(4)).unwrap();
        assert_eq!((hastened.rehydrating, pending), (Some((Hot, High)), true));
        assert_eq!(hastened.change(Hot, Standard, at(5)).unwrap().0, hastened);
        assert_eq!(leaving.change(Cool, Standard, at(4)), Err(Refusal::BlobBeingRehydrated));
        assert_eq!(leaving.change(Archive, Standard, at(4)), Ok((leaving, false)));
        assert!(fresh.check_online().is_ok());
    }
}
