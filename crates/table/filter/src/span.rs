//! Spans of one key: the texts between two edges, in the service's order. `model::KeyRange` is the same for both keys.
//!
//! Texts are borrowed from the filter, so planning copies keys only at its end.

use std::cmp::Ordering;

use model::ordinal_cmp;

use crate::Operator;

/// A position between texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyEdge<'a> {
    Before(&'a str),
    After(&'a str),
    End,
}

impl KeyEdge<'_> {
    /// No text is below the empty one.
    pub const START: Self = Self::Before("");
}

impl Ord for KeyEdge<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::End, Self::End) => Ordering::Equal,
            (Self::End, _) => Ordering::Greater,
            (_, Self::End) => Ordering::Less,
            (Self::Before(a), Self::Before(b)) | (Self::After(a), Self::After(b)) => ordinal_cmp(a, b),
            (Self::Before(a), Self::After(b)) => ordinal_cmp(a, b).then(Ordering::Less),
            (Self::After(a), Self::Before(b)) => ordinal_cmp(a, b).then(Ordering::Greater),
        }
    }
}

impl PartialOrd for KeyEdge<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeySpan<'a> {
    pub start: KeyEdge<'a>,
    pub end: KeyEdge<'a>,
}

impl<'a> KeySpan<'a> {
    pub const ALL: Self = Self { start: KeyEdge::START, end: KeyEdge::End };

    /// The texts for which a comparison with `text` is true. `None` for `ne`: it would need two spans to skip one key, and
    /// checking each row is cheaper than a second range.
    pub fn of(operator: Operator, text: &'a str) -> Option<Self> {
        let (start, end) = match operator {
            Operator::Eq => (KeyEdge::Before(text), KeyEdge::After(text)),
            Operator::Gt => (KeyEdge::After(text), KeyEdge::End),
            Operator::Ge => (KeyEdge::Before(text), KeyEdge::End),
            Operator::Lt => (KeyEdge::START, KeyEdge::Before(text)),
            Operator::Le => (KeyEdge::START, KeyEdge::After(text)),
            Operator::Ne => return None,
        };
        Some(Self { start, end })
    }

    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    pub fn covers(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    pub fn intersect(&self, other: &Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    /// Its only text, if it has just one.
    pub fn pinned(&self) -> Option<&'a str> {
        match (self.start, self.end) {
            (KeyEdge::Before(a), KeyEdge::After(b)) if a == b => Some(a),
            _ => None,
        }
    }
}

/// The intersection of two lists that are sorted and disjoint; so is the result.
pub(crate) fn intersect_lists<'a>(a: &[KeySpan<'a>], b: &[KeySpan<'a>]) -> Vec<KeySpan<'a>> {
    let mut both = Vec::new();
    walk_pairs(a, b, |span| span, |_, _, span| both.push(span));
    both
}

/// Visits every pair of overlapping spans, in order and in one pass over both sorted lists.
pub(crate) fn walk_pairs<'a, T>(
    a: &[T],
    b: &[T],
    span_of: impl Fn(&T) -> &KeySpan<'a>,
    mut visit: impl FnMut(&T, &T, KeySpan<'a>),
) {
    let (mut i, mut j) = (0, 0);
    while let (Some(left), Some(right)) = (a.get(i), b.get(j)) {
        let (left_span, right_span) = (span_of(left), span_of(right));
        let common = left_span.intersect(right_span);
        if !common.is_empty() {
            visit(left, right, common);
        }
        if left_span.end < right_span.end {
            i += 1;
        } else {
            j += 1;
        }
    }
}

/// The union of the spans, sorted and disjoint.
pub(crate) fn unite(mut spans: Vec<KeySpan<'_>>) -> Vec<KeySpan<'_>> {
    spans.sort_by(|a, b| a.start.cmp(&b.start));
    let mut united: Vec<KeySpan<'_>> = Vec::with_capacity(spans.len());
    for span in spans {
        match united.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => united.push(span),
        }
    }
    united
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(operator: Operator, text: &str) -> KeySpan<'_> {
        KeySpan::of(operator, text).unwrap()
    }

    fn show(spans: &[KeySpan<'_>]) -> String {
        let edge = |edge: KeyEdge<'_>| match edge {
            KeyEdge::Before(text) => format!("<{text}"),
            KeyEdge::After(text) => format!("{text}>"),
            KeyEdge::End => "end".to_owned(),
        };
        spans.iter().map(|s| format!("{} {}", edge(s.start), edge(s.end))).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn comparisons_are_spans() {
        let check = |operator, expected: &str| assert_eq!(show(&[span(operator, "m")]), expected);
        check(Operator::Eq, "<m m>");
        check(Operator::Gt, "m> end");
        check(Operator::Ge, "<m end");
        check(Operator::Lt, "< <m");
        check(Operator::Le, "< m>");
        assert_eq!(KeySpan::of(Operator::Ne, "m"), None);
        assert!(span(Operator::Lt, "").is_empty());
        assert_eq!(span(Operator::Ge, ""), KeySpan::ALL);
        assert_eq!(span(Operator::Ge, "m").intersect(&span(Operator::Le, "m")).pinned(), Some("m"));
        assert!(span(Operator::Gt, "m").intersect(&span(Operator::Le, "m")).is_empty());
    }

    #[test]
    fn edges_sort_by_utf16_unit() {
        assert!(KeyEdge::After("𝄞") < KeyEdge::Before("\u{ffff}"));
        assert!(KeyEdge::Before("a") < KeyEdge::After("a") && KeyEdge::After("a") < KeyEdge::Before("a\0"));
        assert!(KeyEdge::After("\u{ffff}") < KeyEdge::End);
    }

    #[test]
    fn lists_unite_and_intersect() {
        let points = ["c", "a", "b", "a"].map(|text| span(Operator::Eq, text)).to_vec();
        let united = unite(points);
        assert_eq!(show(&united), "<a a>, <b b>, <c c>");
        assert_eq!(show(&unite(vec![span(Operator::Lt, "b"), span(Operator::Ge, "b")])), "< end");
        assert_eq!(show(&intersect_lists(&united, &[span(Operator::Gt, "a")])), "<b b>, <c c>");
        assert_eq!(show(&intersect_lists(&united, &[])), "");
    }
}
