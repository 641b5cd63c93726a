//! The tree of a filter.
//!
//! `and` and `or` take any number of terms, so that a chain of thousands is one wide node and not a deep tree:
//! evaluating, cloning and dropping recurse only as deep as the parentheses of the text, which are bounded.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

use model::Value;

use crate::literal;

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Constant(bool),
    Compare(Comparison),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
}

/// A property compared with a literal. The property is on the left, also if the text has it on the right.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub property: String,
    pub operator: Operator,
    pub literal: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
}

impl Expr {
    /// All of the terms. Nested `and`s are flattened; one term is that term; no term is `true`.
    pub fn all(terms: Vec<Self>) -> Self {
        join(terms, true, Self::And, |term| match term {
            Self::And(inner) => Ok(inner),
            other => Err(other),
        })
    }

    /// Any of the terms. Nested `or`s are flattened; one term is that term; no term is `false`.
    pub fn any(terms: Vec<Self>) -> Self {
        join(terms, false, Self::Or, |term| match term {
            Self::Or(inner) => Ok(inner),
            other => Err(other),
        })
    }

    /// The opposite. Logic here is two-valued, so `not not x` is `x`.
    pub fn negate(self) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(!value),
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    /// The number of comparisons in it.
    pub fn comparisons(&self) -> usize {
        let (mut open, mut count) = (vec![self], 0);
        while let Some(expr) = open.pop() {
            match expr {
                Self::Constant(_) => {}
                Self::Compare(_) => count += 1,
                Self::Not(inner) => open.push(inner),
                Self::And(terms) | Self::Or(terms) => open.extend(terms),
            }
        }
        count
    }

    /// The names of the properties it reads, each once.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        let mut names = BTreeSet::new();
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            match expr {
                Self::Constant(_) => {}
                Self::Compare(comparison) => {
                    names.insert(comparison.property.as_str());
                }
                Self::Not(inner) => open.push(inner),
                Self::And(terms) | Self::Or(terms) => open.extend(terms),
            }
        }
        names.into_iter()
    }
}

fn join(
    terms: Vec<Expr>,
    of_none: bool,
    node: fn(Vec<Expr>) -> Expr,
    inner_terms: fn(Expr) -> Result<Vec<Expr>, Expr>,
) -> Expr {
    let mut terms = terms.into_iter().map(inner_terms);
    // Extends the list of the first term in place: the parser adds thousands of terms one at a time.
    let mut flat = match terms.next() {
        None => Vec::new(),
        Some(Ok(inner)) => inner,
        Some(Err(term)) => vec![term],
    };
    for term in terms {
        match term {
            Ok(inner) => flat.extend(inner),
            Err(term) => flat.push(term),
        }
    }
    match flat.pop() {
        None => Expr::Constant(of_none),
        Some(only) if flat.is_empty() => only,
        Some(last) => {
            flat.push(last);
            node(flat)
        }
    }
}

impl Operator {
    pub const ALL: [Self; 6] = [Self::Eq, Self::Ne, Self::Gt, Self::Ge, Self::Lt, Self::Le];

    pub fn word(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Gt => "gt",
            Self::Ge => "ge",
            Self::Lt => "lt",
            Self::Le => "le",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| operator.word() == word)
    }

    /// The operator with the same meaning when the sides are exchanged.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Eq | Self::Ne => self,
        }
    }

    /// The operator that holds exactly when this one does not, between values that have an order.
    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Eq => Self::Ne,
            Self::Ne => Self::Eq,
            Self::Gt => Self::Le,
            Self::Ge => Self::Lt,
            Self::Lt => Self::Ge,
            Self::Le => Self::Gt,
        }
    }

    /// Whether it holds between two values with this order. `None` is a NaN on either side, which is unequal to everything,
    /// and neither less nor greater, as in IEEE 754.
    pub(crate) fn holds(self, ordering: Option<Ordering>) -> bool {
        match (self, ordering) {
            (Self::Ne, None) => true,
            (_, None) => false,
            (Self::Eq, Some(ordering)) => ordering.is_eq(),
            (Self::Ne, Some(ordering)) => ordering.is_ne(),
            (Self::Gt, Some(ordering)) => ordering.is_gt(),
            (Self::Ge, Some(ordering)) => ordering.is_ge(),
            (Self::Lt, Some(ordering)) => ordering.is_lt(),
            (Self::Le, Some(ordering)) => ordering.is_le(),
        }
    }
}

/// Text that parses to an equal tree, as long as its parentheses stay within the depth the parser allows.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "{value}"),
            Self::Compare(comparison) => write!(f, "{comparison}"),
            Self::Not(inner) => write!(f, "not ({inner})"),
            Self::And(terms) => chain(f, terms, " and "),
            Self::Or(terms) => chain(f, terms, " or "),
        }
    }
}

fn chain(f: &mut fmt::Formatter<'_>, terms: &[Expr], word: &str) -> fmt::Result {
    for (i, term) in terms.iter().enumerate() {
        if i > 0 {
            f.write_str(word)?;
        }
        // `and` in `or` needs no parentheses, but is easier to read with them.
        match term {
            Expr::And(_) | Expr::Or(_) => write!(f, "({term})")?,
            _ => write!(f, "{term}")?,
        }
    }
    Ok(())
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.property, self.operator.word())?;
        literal::write(f, &self.literal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(property: &str) -> Expr {
        Expr::Compare(Comparison {
            property: property.to_owned(),
            operator: Operator::Eq,
            literal: Value::Int32(1),
        })
    }

    fn check(expr: &Expr, expected: &str) {
        assert_eq!(expr.to_string(), expected);
    }

    #[test]
    fn joining_keeps_trees_flat() {
        let (a, b, c) = (compare("a"), compare("b"), compare("c"));
        check(&Expr::all(vec![]), "true");
        check(&Expr::any(vec![]), "false");
        check(&Expr::all(vec![a.clone()]), "a eq 1");
        let and = Expr::all(vec![Expr::all(vec![a.clone(), b.clone()]), c.clone()]);
        assert_eq!(and, Expr::And(vec![a.clone(), b.clone(), c.clone()]));
        let or = Expr::any(vec![a.clone(), Expr::any(vec![b.clone(), c.clone()])]);
        assert_eq!(or, Expr::Or(vec![a.clone(), b.clone(), c.clone()]));
        check(&Expr::any(vec![a.clone(), Expr::all(vec![b, c])]), "a eq 1 or (b eq 1 and c eq 1)");
        check(&a.clone().negate(), "not (a eq 1)");
        check(&a.negate().negate(), "a eq 1");
        check(&Expr::Constant(true).negate(), "false");
    }

    #[test]
    fn names_are_listed_once() {
        let tree = Expr::any(vec![
            compare("b"),
            Expr::all(vec![compare("a"), compare("b")]).negate(),
            Expr::Constant(true),
        ]);
        assert_eq!(tree.properties().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn operators_agree_with_each_other() {
        for operator in Operator::ALL {
            assert_eq!(Operator::parse(operator.word()), Some(operator));
            for ordering in [Ordering::Less, Ordering::Equal, Ordering::Greater] {
                let holds = operator.holds(Some(ordering));
                assert_eq!(operator.mirrored().holds(Some(ordering.reverse())), holds);
                assert_eq!(operator.opposite().holds(Some(ordering)), !holds);
            }
        }
    }

    #[test]
    fn trees_travel_between_threads() {
        fn travels<T: Send + Sync + 'static>() {}
        travels::<Expr>();
        travels::<crate::Plan>();
        travels::<crate::FilterError>();
    }
}
