//! Numbers as stored: LEB128, seven bits a byte, least first, up to 64 bits. Each number has one spelling.

pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        // The low seven bits; the cast keeps them.
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number from the front; `None` if there is none, or it is spelt longer than it must be.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(first & 0x7f);
        // The tenth byte has one bit left.
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if first & 0x80 == 0 {
            return (*first != 0 || shift == 0).then_some(value);
        }
    }
    None
}

/// Takes this many bytes from the front.
pub fn take_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_reads_back(bits in 0..=64_u32, value: u64) {
            let value = value.checked_shr(bits).unwrap_or(0);
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            bytes.push(7);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(take(&mut rest), Some(value));
            prop_assert_eq!(rest, [7]);
        }

        #[test]
        fn what_reads_back_has_one_spelling(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut rest = bytes.as_slice();
            if let Some(value) = take(&mut rest) {
                let mut spelt = Vec::new();
                put(&mut spelt, value);
                prop_assert_eq!(&spelt, &bytes[..bytes.len() - rest.len()]);
            }
        }
    }

    #[test]
    fn what_no_one_writes_is_not_read() {
        let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(take(&mut &longest[..]), Some(u64::MAX));
        for bytes in [&[][..], &[0x80], &[0x80, 0x00], &[0xff; 10], &[0xff; 11]] {
            assert_eq!(take(&mut &bytes[..]), None, "{bytes:?}");
        }
    }
}
