//! What a filter asks of which properties, without its literals: what the rules of advice look at.

use filter::{Comparison, Expr, Operator};

/// Names that are kept of each kind, and letters of each. Advice for more could not be read.
const NAMES_MAX: usize = 4;
const NAME_LETTERS_MAX: usize = 64;

/// How a filter uses one property.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    #[default]
    Unused,
    /// Between bounds, or beyond one.
    Range,
    /// Equal to a value, or to one of several.
    Point,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    pub partition: Use,
    pub row: Use,
    pub timestamp: Use,
    /// Other properties that are equal to a value, or to one of several.
    pub equal: Vec<String>,
    /// Other properties between bounds.
    pub ranged: Vec<String>,
    /// Other properties that must not have a value: `ne`, or anything below `not`.
    pub excluded: Vec<String>,
    /// Properties of which one or another must match: `Email eq 'a' or Phone eq 'b'`.
    pub alternatives: Vec<String>,
}

impl Outline {
    pub fn of(filter: &Expr) -> Self {
        let mut outline = Self::default();
        match filter {
            Expr::And(terms) => terms.iter().for_each(|term| outline.add(term)),
            other => outline.add(other),
        }
        // A term of each kind on one property: equality says more than bounds.
        outline.ranged.retain(|name| !outline.equal.contains(name));
        outline
    }

    fn add(&mut self, term: &Expr) {
        match term {
            Expr::Constant(_) | Expr::And(_) => {}
            Expr::Compare(comparison) => self.compare(comparison),
            Expr::Not(inner) => {
                for name in inner.properties().take(NAMES_MAX) {
                    keep(&mut self.excluded, name);
                }
            }
            Expr::Or(terms) => {
                let mut names = term.properties();
                match (names.next(), names.next()) {
                    // A list of values, or of bounds, of one property.
                    (Some(_), None) => terms.iter().for_each(|term| self.add(term)),
                    _ => {
                        for name in term.properties().take(NAMES_MAX) {
                            keep(&mut self.alternatives, name);
                        }
                    }
                }
            }
        }
    }

    fn compare(&mut self, Comparison { property, operator, .. }: &Comparison) {
        let used = match operator {
            Operator::Eq => Use::Point,
            Operator::Gt | Operator::Ge | Operator::Lt | Operator::Le => Use::Range,
            Operator::Ne => Use::Unused,
        };
        match (property.as_str(), used) {
            ("PartitionKey", used) => self.partition = self.partition.max(used),
            ("RowKey", used) => self.row = self.row.max(used),
            ("Timestamp", used) => self.timestamp = self.timestamp.max(used),
            (name, Use::Point) => keep(&mut self.equal, name),
            (name, Use::Range) => keep(&mut self.ranged, name),
            (name, Use::Unused) => keep(&mut self.excluded, name),
        }
    }
}

fn keep(names: &mut Vec<String>, name: &str) {
    let name: String = name.chars().take(NAME_LETTERS_MAX).collect();
    if names.len() < NAMES_MAX && !names.contains(&name) {
        names.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(filter: &str) -> Outline {
        Outline::of(&filter::parse(filter).unwrap().unwrap())
    }

    #[test]
    fn each_term_is_sorted_by_what_it_asks() {
        let found = outline(
            "PartitionKey eq 'a' and RowKey ge 'b' and Timestamp lt datetime'2026-01-01T00:00:00Z' and A eq 1 \
             and B gt 2 and B le 5 and C ne 3 and not (D eq 4) and (E eq 1 or F eq 2) and (G eq 1 or G eq 2)",
        );
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let expected = Outline {
            partition: Use::Point,
            row: Use::Range,
            timestamp: Use::Range,
            equal: names(&["A", "G"]),
            ranged: names(&["B"]),
            excluded: names(&["C", "D"]),
            alternatives: names(&["E", "F"]),
        };
        assert_eq!(found, expected);
        let listed = outline("(PartitionKey eq 'a' or PartitionKey eq 'b') and RowKey eq 'x'");
        assert_eq!((listed.partition, listed.row), (Use::Point, Use::Point));
        assert_eq!(outline("Paid").equal, ["Paid"]);
    }

    #[test]
    fn long_filters_leave_short_outlines() {
        let terms: Vec<_> = (0..1000).map(|n| format!("Property{n} eq {n}")).collect();
        assert_eq!(outline(&terms.join(" and ")).equal.len(), NAMES_MAX);
        assert_eq!(outline(&terms.join(" or ")).alternatives.len(), NAMES_MAX);
        assert_eq!(outline(&format!("{} eq 1", "N".repeat(4000))).equal[0].len(), NAME_LETTERS_MAX);
    }
}
