//! Filters as trees: their text, and which rows they keep.

use std::cmp::Ordering;

use super::{Row, Value};

#[derive(Clone, Debug)]
pub enum Filter {
    Compare { property: String, operator: &'static str, literal: Value, literal_first: bool },
    Property(String),
    Constant(bool),
    Not(Box<Filter>),
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
}

pub const OPERATORS: [&str; 6] = ["eq", "ne", "gt", "ge", "lt", "le"];

impl Filter {
    pub fn keeps(&self, row: &Row) -> bool {
        match self {
            Self::Compare { property, operator, literal, literal_first } => {
                let Some(value) = row.property(property) else { return false };
                let order = value.against(literal);
                match if *literal_first { mirrored(operator) } else { operator } {
                    "eq" => order == Ordering::Equal,
                    "ne" => order != Ordering::Equal,
                    "gt" => order == Ordering::Greater,
                    "ge" => order != Ordering::Less,
                    "lt" => order == Ordering::Less,
                    _ => order != Ordering::Greater,
                }
            }
            Self::Property(name) => row.property(name) == Some(Value::Boolean(true)),
            Self::Constant(value) => *value,
            Self::Not(inner) => !inner.keeps(row),
            Self::And(left, right) => left.keeps(row) && right.keeps(row),
            Self::Or(left, right) => left.keeps(row) || right.keeps(row),
        }
    }

    /// With parentheses only where precedence needs them.
    pub fn text(&self) -> String {
        match self {
            Self::Compare { property, operator, literal, literal_first } => {
                let literal = literal.literal();
                let (left, right) = if *literal_first { (&literal, property) } else { (property, &literal) };
                format!("{left} {operator} {right}")
            }
            Self::Property(name) => name.clone(),
            Self::Constant(value) => value.to_string(),
            Self::Not(inner) => format!("not ({})", inner.text()),
            Self::And(left, right) => format!("{} and {}", left.within_and(), right.within_and()),
            Self::Or(left, right) => format!("{} or {}", left.text(), right.text()),
        }
    }

    fn within_and(&self) -> String {
        if matches!(self, Self::Or(..)) { format!("({})", self.text()) } else { self.text() }
    }
}

fn mirrored(operator: &'static str) -> &'static str {
    match operator {
        "gt" => "lt",
        "ge" => "le",
        "lt" => "gt",
        "le" => "ge",
        same => same,
    }
}
