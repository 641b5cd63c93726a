//! Ids of blocks: what a client calls the pieces of a block blob.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{Refusal, limits};

/// A block's id, decoded: 1 to 64 bytes. Lists show it in Base64.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(Box<[u8]>);

/// Why a text is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockIdFault {
    #[error("a block's id is Base64")]
    NotBase64,
    #[error("a block's id has 1 to {} bytes", limits::BLOCK_ID_BYTES_MAX)]
    Length,
}

impl BlockId {
    pub fn parse(text: &str) -> Result<Self, BlockIdFault> {
        let bytes = STANDARD.decode(text).map_err(|_| BlockIdFault::NotBase64)?;
        Self::of_bytes(&bytes)
    }

    /// The parameter `blockid` of Put Block.
    pub fn of_parameter(text: &str) -> Result<Self, Refusal> {
        Self::parse(text).map_err(|fault| match fault {
            BlockIdFault::NotBase64 => Refusal::ParameterInvalid {
                name: "blockid",
                value: text.to_owned(),
                reason: Some("Not a valid base64 string."),
            },
            BlockIdFault::Length => common::Refusal::InputOutOfRange.into(),
        })
    }

    pub fn of_bytes(bytes: &[u8]) -> Result<Self, BlockIdFault> {
        match (1..=limits::BLOCK_ID_BYTES_MAX).contains(&bytes.len()) {
            true => Ok(Self(bytes.into())),
            false => Err(BlockIdFault::Length),
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// In Base64.
impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_base64_of_at_most_64_bytes() {
        let check = |text: &str, expected: Result<usize, BlockIdFault>| {
            assert_eq!(BlockId::parse(text).map(|id| id.as_bytes().len()), expected, "{text}");
        };
        check("MQ==", Ok(1));
        check(&STANDARD.encode([7; 64]), Ok(64));
        check(&STANDARD.encode([7; 65]), Err(BlockIdFault::Length));
        check("", Err(BlockIdFault::Length));
        for text in ["MQ", "M===", "é", "a b=", "MQ==\n"] {
            check(text, Err(BlockIdFault::NotBase64));
        }
        assert_eq!(BlockId::parse("MQ==").unwrap().to_string(), "MQ==");
    }

    #[test]
    fn a_parameter_that_is_no_id_is_refused_as_the_service_does() {
        let refusal = BlockId::of_parameter("test-id").unwrap_err();
        assert_eq!((refusal.status(), refusal.code()), (400, "InvalidQueryParameterValue"));
        assert_eq!(refusal.details()[2], ("Reason", "Not a valid base64 string.".into()));
        let refusal = BlockId::of_parameter(&STANDARD.encode([7; 65])).unwrap_err();
        assert_eq!(refusal.code(), "OutOfRangeInput");
    }
}
