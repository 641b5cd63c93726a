//! The shape of a filter: its text with a type in place of every literal, such as `Email eq String and Age gt Int32`.
//!
//! Filters of one program differ mostly in their literals, so they share a shape. Literals are data, and a shape has none: it
//! can be logged, counted and shown. Names of properties stay.

use std::collections::HashSet;

use crate::{Comparison, Expr};

/// A longer shape is cut, and ends with [`CUT`].
pub const SHAPE_BYTES_MAX: usize = 512;

/// In place of what is left out: the rest of a long shape, or terms that look like one before them.
const CUT: &str = "…";

/// Terms with the same shape are shown once, so that `RowKey eq 'a' or RowKey eq 'b'` has the same shape as a list of a
/// thousand row keys.
pub fn shape(filter: &Expr) -> String {
    let mut shape = write(filter);
    if shape.len() > SHAPE_BYTES_MAX {
        let mut end = SHAPE_BYTES_MAX - CUT.len();
        while !shape.is_char_boundary(end) {
            end -= 1;
        }
        shape.truncate(end);
        shape.push_str(CUT);
    }
    shape
}

/// Of a long filter only the beginning. Recurses as deep as the parser allows parentheses.
fn write(expr: &Expr) -> String {
    match expr {
        Expr::Constant(_) => "Boolean".to_owned(),
        Expr::Compare(Comparison { property, operator, literal }) => {
            let name = literal.edm_type().name();
            let type_name = name.strip_prefix("Edm.").unwrap_or(name);
            [property, " ", operator.word(), " ", type_name].concat()
        }
        Expr::Not(inner) => ["not (", &write(inner), ")"].concat(),
        Expr::And(terms) => chain(terms, " and "),
        Expr::Or(terms) => chain(terms, " or "),
    }
}

fn chain(terms: &[Expr], word: &str) -> String {
    let mut shape = String::new();
    let mut shown = HashSet::new();
    let mut repeats = false;
    for term in terms {
        let text = write(term);
        let text = match term {
            Expr::And(_) | Expr::Or(_) => ["(", &text, ")"].concat(),
            _ => text,
        };
        if shown.contains(&text) {
            repeats = true;
            continue;
        }
        if !shape.is_empty() {
            shape.push_str(word);
        }
        shape.push_str(&text);
        if shape.len() > SHAPE_BYTES_MAX {
            return shape;
        }
        shown.insert(text);
    }
    if repeats {
        shape.push_str(word);
        shape.push_str(CUT);
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(filter: &str, expected: &str) {
        let parsed = crate::parse(filter).unwrap().unwrap();
        assert_eq!(shape(&parsed), expected, "{filter}");
    }

    #[test]
    fn every_literal_becomes_its_type() {
        check("Email eq 'ann@example.com' and Age gt 30", "Email eq String and Age gt Int32");
        check("A eq 5L or B lt 1.5", "A eq Int64 or B lt Double");
        check("Paid and not (Late eq true)", "Paid eq Boolean and not (Late eq Boolean)");
        check("5 lt Age", "Age gt Int32");
        check(
            "A eq datetime'2026-01-01T00:00:00Z' and B eq guid'00000000-0000-0000-0000-000000000000' and C ne X'00'",
            "A eq DateTime and B eq Guid and C ne Binary",
        );
        check("(A eq 1 or B eq 2) and C eq 3", "(A eq Int32 or B eq Int32) and C eq Int32");
    }

    #[test]
    fn a_list_has_the_same_shape_whatever_its_length() {
        let list = |n: usize| {
            let terms: Vec<_> = (0..n).map(|i| format!("RowKey eq '{i}'")).collect();
            format!("PartitionKey eq 'p' and ({})", terms.join(" or "))
        };
        let expected = "PartitionKey eq String and (RowKey eq String or …)";
        check(&list(2), expected);
        check(&list(500), expected);
        check("RowKey eq 'a'", "RowKey eq String");
    }

    #[test]
    fn a_long_shape_is_cut() {
        for name in ["Property", "é"] {
            let terms: Vec<_> = (0..2000).map(|i| format!("{name}{i} eq {i}")).collect();
            let filter = terms.join(" or ");
            let cut = shape(&crate::parse(&filter).unwrap().unwrap());
            assert!(cut.len() <= SHAPE_BYTES_MAX && cut.len() > SHAPE_BYTES_MAX - 16, "{}", cut.len());
            assert!(cut.ends_with('…'), "{cut}");
        }
        let long_name = format!("{} eq 1", "N".repeat(5_000));
        assert_eq!(shape(&crate::parse(&long_name).unwrap().unwrap()).len(), SHAPE_BYTES_MAX);
    }
}
