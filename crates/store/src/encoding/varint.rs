//! Lengths as LEB128: seven bits a byte, least first, the high bit says that more follow.

#[inline]
pub fn put(out: &mut Vec<u8>, value: usize) {
    // Nearly every length is one byte.
    if value < 0x80 { out.push(value as u8) } else { put_long(out, value) }
}

fn put_long(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number of bytes that `put` writes.
#[inline]
pub fn length(value: usize) -> usize {
    if value < 0x80 {
        return 1;
    }
    let bits = usize::BITS - value.leading_zeros();
    bits.div_ceil(7) as usize
}

/// Takes a length from the front. `None` above 32 bits: nothing stored is that long.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<usize> {
    // Nearly every length is one byte or two.
    match *bytes {
        [first @ ..0x80, rest @ ..] => {
            *bytes = rest;
            Some(usize::from(*first))
        }
        [first, second @ ..0x80, rest @ ..] => {
            *bytes = rest;
            Some(usize::from(first & 0x7f) | usize::from(*second) << 7)
        }
        _ => take_long(bytes),
    }
}

fn take_long(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0_u64;
    for shift in [0, 7, 14, 21, 28] {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return (value <= u64::from(u32::MAX)).then_some(value as usize);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_wrote() {
        for value in [0, 1, 127, 128, 300, 65_536, 1 << 21, 1 << 28, u32::MAX as usize] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(bytes.len(), length(value));
            let mut rest = bytes.as_slice();
            assert_eq!(take(&mut rest), Some(value));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn refuses_what_no_one_writes() {
        for bytes in [&[][..], &[0x80], &[0xff; 5], &[0xff, 0xff, 0xff, 0xff, 0x1f]] {
            assert_eq!(take(&mut &bytes[..]), None, "{bytes:?}");
        }
    }
}
