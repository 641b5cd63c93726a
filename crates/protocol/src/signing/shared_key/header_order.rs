//! The order that the services sort header names in. It is that of words in English text, not that of bytes: a dash counts
//! only between names that are otherwise equal, and a letter comes after a digit, which comes after a sign.
//!
//! Among real names only metadata shows the difference: `x-ms-meta-a_1` stands before `x-ms-meta-a1`.

use std::cmp::Ordering;

/// What a header's name is made of, in the services' order, but for the dash and the apostrophe.
const ORDER: &[u8] = b"!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz";

/// Compares names in lower case.
pub fn compare(a: &str, b: &str) -> Ordering {
    places(a).cmp(places(b)).then_with(|| a.cmp(b))
}

fn places(name: &str) -> impl Iterator<Item = usize> {
    let counted = name.bytes().filter(|byte| !matches!(byte, b'-' | b'\''));
    // What stands in no name comes last.
    counted.map(|byte| ORDER.iter().position(|known| *known == byte).unwrap_or(ORDER.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_as_the_services_sort_them() {
        // Each list as the weights of Microsoft's own clients sort it.
        for sorted in [
            &["x-ms-date", "x-ms-meta-a", "x-ms-meta-b", "x-ms-version"][..],
            &["x-ms-meta-a_1", "x-ms-meta-a1", "x-ms-meta-aa"],
            &["x-ms-meta-a_b", "x-ms-meta-a-b", "x-ms-meta-ab", "x-ms-meta-ab-"],
            &["x-ms-meta-a.b", "x-ms-meta-a_b", "x-ms-meta-a+b", "x-ms-meta-a0b"],
            &["x-ms-meta", "x-ms-meta-", "x-ms-meta-a"],
        ] {
            let mut names = sorted.to_vec();
            names.reverse();
            names.sort_by(|a, b| compare(a, b));
            assert_eq!(names, sorted);
        }
    }
}
