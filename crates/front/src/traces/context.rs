//! `traceparent`: the trace that a request belongs to, as its client says (W3C Trace Context).

/// A span of the client, which the span of a request becomes a child of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: [u8; 16],
    pub span: [u8; 8],
    /// The client records its part of the trace.
    pub is_sampled: bool,
}

/// The length of version 00. Later versions may add to it.
const LENGTH: usize = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".len();

impl TraceParent {
    /// `None` if it is malformed. It is ignored then: a trace is no reason to refuse a request.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (known, more) = bytes.split_at_checked(LENGTH)?;
        let [version] = hex(&known[..2])?;
        let is_whole =
            if version == 0 { more.is_empty() } else { more.first().is_none_or(|next| *next == b'-') };
        let has_dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
        if version == 0xff || !is_whole || !has_dashes {
            return None;
        }
        let (trace, span) = (hex::<16>(&known[3..35])?, hex::<8>(&known[36..52])?);
        let [flags] = hex(&known[53..])?;
        let is_real = trace != [0; 16] && span != [0; 8];
        is_real.then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }
}

/// Only lower-case digits are valid.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |letter: u8| match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    (text.len() == 2 * N).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_as_the_standard_says() {
        let check = |text: &str, expected: Option<bool>| {
            let found = TraceParent::parse(text);
            assert_eq!(found.map(|parent| parent.is_sampled), expected, "{text}");
            if let Some(parent) = found {
                assert_eq!(
                    (parent.trace[0], parent.trace[15], parent.span[0], parent.span[7]),
                    (0x0a, 0x9c, 0xb7, 0x31)
                );
            }
        };
        let ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
        check(&format!("00-{ids}-01"), Some(true));
        check(&format!("00-{ids}-00"), Some(false));
        check(&format!("00-{ids}-03"), Some(true));
        check(&format!("00-{ids}-02"), Some(false));
        check(&format!("cc-{ids}-01"), Some(true));
        check(&format!("cc-{ids}-01-what-comes-later"), Some(true));
        for wrong in [
            format!("00-{ids}-01-more"),
            format!("cc-{ids}-01.more"),
            format!("ff-{ids}-01"),
            format!("00-{ids}-0"),
            format!("00-{ids}"),
            format!("00-{}-01", ids.to_uppercase()),
            format!("00_{ids}-01"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01".to_owned(),
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01".to_owned(),
            "00-0af7651916cd43dd8448eb211c80319é-b7ad6b7169203331-01".to_owned(),
            String::new(),
        ] {
            check(&wrong, None);
        }
    }
}
