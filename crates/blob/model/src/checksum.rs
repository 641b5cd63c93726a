//! Checksums of content: MD5, and CRC-64/NVME, both in Base64 on the wire. They are computed piece by piece, as content
//! streams through.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm::Crc64Nvme;
use md5::Digest as _;

use crate::Refusal;

/// The MD5 of some content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Md5(pub [u8; 16]);

/// The CRC-64/NVME of some content. Its bytes on the wire are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Crc64(pub u64);

impl Md5 {
    /// A header that carries an MD5, such as `Content-MD5`.
    pub fn of_header(value: &str) -> Result<Self, Refusal> {
        let bytes = STANDARD.decode(value).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(Refusal::Md5Invalid)
    }

    pub fn of(content: &[u8]) -> Self {
        Self(md5::Md5::digest(content).into())
    }
}

impl Crc64 {
    /// A header that carries a CRC, such as `x-ms-content-crc64`.
    pub fn of_header(name: &'static str, value: &str) -> Result<Self, Refusal> {
        let bytes: Option<[u8; 8]> = STANDARD.decode(value).ok().and_then(|bytes| bytes.try_into().ok());
        let invalid = || Refusal::HeaderInvalid { name, value: value.to_owned() };
        bytes.map(|bytes| Self(u64::from_le_bytes(bytes))).ok_or_else(invalid)
    }

    pub fn of(content: &[u8]) -> Self {
        Self(crc_fast::checksum(Crc64Nvme, content))
    }

    /// Of no content.
    pub const EMPTY: Self = Self(0);

    /// Of two pieces of content, one behind the other; the second has this many bytes.
    ///
    /// A checksum is a polynomial, and content behind it multiplies it by x for each bit. `crc_fast` does that with matrices,
    /// which takes a thousand times as long: too long for a blob of 50,000 blocks.
    pub fn join(self, second: Self, second_bytes: u64) -> Self {
        let mut first = self.0;
        // Eight bits a byte: more than 2⁶¹ bytes are no content.
        for (bit, power) in POWERS[3..].iter().enumerate() {
            if second_bytes >> bit & 1 == 1 {
                first = multiply(first, *power);
            }
        }
        Self(first ^ second.0)
    }
}

/// The polynomial of CRC-64/NVME without its highest term. The highest bit is the term without x.
const POLYNOMIAL: u64 = 0x9a6c_9329_ac4b_c9b5;
/// x to the power of 1, 2, 4, 8, …
const POWERS: [u64; 64] = {
    let mut powers = [1 << 62; 64];
    let mut at = 1;
    while at < 64 {
        powers[at] = multiply(powers[at - 1], powers[at - 1]);
        at += 1;
    }
    powers
};

/// The product of two polynomials, modulo that of the checksum.
const fn multiply(a: u64, mut b: u64) -> u64 {
    let mut product = 0;
    let mut bit = 64;
    while bit > 0 {
        bit -= 1;
        // All bits or none, because a branch would be guessed wrong half of the time.
        product ^= b & (a >> bit & 1).wrapping_neg();
        b = b >> 1 ^ POLYNOMIAL & (b & 1).wrapping_neg();
    }
    product
}

impl fmt::Display for Md5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Display for Crc64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0.to_le_bytes()))
    }
}

/// Both checksums of content that comes in pieces. MD5 costs many times what the CRC does, and is left out where nobody asks.
#[derive(Clone)]
pub struct Checksums {
    crc64: crc_fast::Digest,
    md5: Option<md5::Md5>,
}

/// What the content turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    pub crc64: Crc64,
    /// None if it was left out.
    pub md5: Option<Md5>,
}

impl Checksums {
    pub fn new(with_md5: bool) -> Self {
        Self { crc64: crc_fast::Digest::new(Crc64Nvme), md5: with_md5.then(md5::Md5::new) }
    }

    pub fn update(&mut self, piece: &[u8]) {
        self.crc64.update(piece);
        if let Some(md5) = &mut self.md5 {
            md5.update(piece);
        }
    }

    /// The CRC since it was taken last. What is computed begins again with what follows.
    pub fn take_crc64(&mut self) -> Crc64 {
        Crc64(std::mem::replace(&mut self.crc64, crc_fast::Digest::new(Crc64Nvme)).finalize())
    }

    pub fn finish(self) -> Sums {
        Sums { crc64: Crc64(self.crc64.finalize()), md5: self.md5.map(|md5| Md5(md5.finalize().into())) }
    }
}

impl fmt::Debug for Checksums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checksums").field("with_md5", &self.md5.is_some()).finish_non_exhaustive()
    }
}

impl Sums {
    /// Whether the content is what its sender says it is. An MD5 that is said must have been computed.
    pub fn check(&self, md5: Option<Md5>, crc64: Option<Crc64>) -> Result<(), Refusal> {
        if let Some(given) = md5
            && self.md5 != Some(given)
        {
            return Err(Refusal::Md5Mismatch { given, computed: self.md5 });
        }
        match crc64 {
            Some(given) if given != self.crc64 => Err(Refusal::Crc64Mismatch { given, computed: self.crc64 }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Spec: blob-operations 2.7, and a recorded Put Blob of 1,024 letters.
    #[test]
    fn checksums_are_the_services() {
        assert_eq!(Crc64::of(b"123456789"), Crc64(0xAE8B_1486_0A79_9888));
        let check = |content: &[u8], crc64: &str| assert_eq!(Crc64::of(content).to_string(), crc64);
        check(b"AAA", "Cc/2Kr4DuKg=");
        check(b"BBB", "+3yuPEA7IqE=");
        check(b"", "AAAAAAAAAAA=");
        check(&[b'a'; 1024], "ov8U1LLnyKc=");
        assert_eq!(Md5::of(&[b'a'; 1024]).to_string(), "yaNM/IXZgmmMasifdgcavQ==");
        assert_eq!(Md5::of(b"").to_string(), "1B2M2Y8AsgTpgAmY7PhCfg==");
    }

    #[test]
    fn headers_read_back_or_are_refused() {
        let md5 = Md5::of(b"hello");
        assert_eq!(Md5::of_header(&md5.to_string()), Ok(md5));
        for value in ["", "x", "AAAA", &STANDARD.encode([0; 17])] {
            assert_eq!(Md5::of_header(value), Err(Refusal::Md5Invalid), "{value}");
        }
        let crc64 = Crc64::of(b"hello");
        assert_eq!(Crc64::of_header("x-ms-content-crc64", &crc64.to_string()), Ok(crc64));
        let refusal = Crc64::of_header("x-ms-content-crc64", "AAAA").unwrap_err();
        assert_eq!(refusal.code(), "InvalidHeaderValue");
    }

    #[test]
    fn content_is_what_its_sender_says() {
        let mut checksums = Checksums::new(true);
        checksums.update(b"hello");
        let sums = checksums.finish();
        let (md5, crc64) = (Md5::of(b"hello"), Crc64::of(b"hello"));
        assert_eq!(sums.check(None, None), Ok(()));
        assert_eq!(sums.check(Some(md5), Some(crc64)), Ok(()));
        let other = Md5::of(b"Hello");
        assert_eq!(
            sums.check(Some(other), Some(crc64)),
            Err(Refusal::Md5Mismatch { given: other, computed: Some(md5) })
        );
        let other = Crc64::of(b"Hello");
        assert_eq!(
            sums.check(None, Some(other)),
            Err(Refusal::Crc64Mismatch { given: other, computed: crc64 })
        );
    }

    proptest! {
        #[test]
        fn pieces_make_the_same_sums(content in prop::collection::vec(any::<u8>(), 0..2000), at in any::<prop::sample::Index>()) {
            let (one, other) = content.split_at(at.index(content.len() + 1));
            let mut checksums = Checksums::new(true);
            checksums.update(one);
            checksums.update(other);
            let sums = checksums.finish();
            prop_assert_eq!(sums, Sums { crc64: Crc64::of(&content), md5: Some(Md5::of(&content)) });
            prop_assert_eq!(Crc64::of(one).join(Crc64::of(other), other.len() as u64), sums.crc64);
            let mut checksums = Checksums::new(true);
            checksums.update(one);
            let first = checksums.take_crc64();
            checksums.update(other);
            let second = checksums.take_crc64();
            prop_assert_eq!((first, second), (Crc64::of(one), Crc64::of(other)));
            prop_assert_eq!(checksums.finish(), Sums { crc64: Crc64::EMPTY, md5: sums.md5 });
            prop_assert_eq!(Crc64::EMPTY.join(sums.crc64, content.len() as u64), sums.crc64);
        }

        #[test]
        fn long_pieces_are_joined_as_the_library_joins_them(one: u64, other: u64, length in 0..1_u64 << 48) {
            let expected = crc_fast::checksum_combine(Crc64Nvme, one, other, length);
            prop_assert_eq!(Crc64(one).join(Crc64(other), length), Crc64(expected));
        }
    }
}
