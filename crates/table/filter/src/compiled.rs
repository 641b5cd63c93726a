//! A filter compiled for many rows: names become numbers, so that a row is searched once for all values the filter needs
//! and not once for each comparison. It gives the answers of `eval` (`tests/plan.rs`).

use model::{Value, ValueRef};

use crate::eval::order;
use crate::{Expr, Operator};

#[derive(Clone, Debug)]
pub struct CompiledFilter {
    names: Vec<String>,
    root: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Constant(bool),
    /// The property is the one with this number.
    Compare(usize, Operator, Value),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

impl CompiledFilter {
    pub fn new(expr: &Expr) -> Self {
        let names: Vec<String> = expr.properties().map(str::to_owned).collect();
        let root = compile(expr, &names);
        Self { names, root }
    }

    /// The properties that it reads, each once and sorted. The index in this list is the number of the property.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The answer for a row with these values; `None` is a property that the row does not have.
    #[inline]
    pub fn holds<'v>(&self, value: impl Fn(usize) -> Option<ValueRef<'v>>) -> bool {
        match &self.root {
            // Most filters.
            Node::Compare(number, operator, literal) => {
                value(*number).is_some_and(|stored| compare(stored, *operator, literal))
            }
            root => holds(root, &value),
        }
    }
}

fn compile(expr: &Expr, names: &[String]) -> Node {
    let all = |terms: &[Expr]| terms.iter().map(|term| compile(term, names)).collect();
    match expr {
        Expr::Constant(value) => Node::Constant(*value),
        Expr::Compare(comparison) => {
            let number = names.binary_search(&comparison.property);
            let number = number.expect("`properties` has every name of the expression, in order");
            Node::Compare(number, comparison.operator, comparison.literal.clone())
        }
        Expr::Not(inner) => Node::Not(Box::new(compile(inner, names))),
        Expr::And(terms) => Node::And(all(terms)),
        Expr::Or(terms) => Node::Or(all(terms)),
    }
}

fn holds<'v>(node: &Node, value: &impl Fn(usize) -> Option<ValueRef<'v>>) -> bool {
    match node {
        Node::Constant(constant) => *constant,
        Node::Compare(number, operator, literal) => {
            value(*number).is_some_and(|stored| compare(stored, *operator, literal))
        }
        Node::Not(inner) => !holds(inner, value),
        Node::And(terms) => terms.iter().all(|term| holds(term, value)),
        Node::Or(terms) => terms.iter().any(|term| holds(term, value)),
    }
}

#[inline]
fn compare(stored: ValueRef<'_>, operator: Operator, literal: &Value) -> bool {
    match (stored, operator, literal) {
        // Texts of different lengths are unequal without comparing their bytes.
        (ValueRef::String(a), Operator::Eq, Value::String(b)) => a == b,
        (ValueRef::String(a), Operator::Ne, Value::String(b)) => a != b,
        _ => operator.holds(order(stored, literal)),
    }
}
