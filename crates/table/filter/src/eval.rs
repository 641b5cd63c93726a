//! The meaning of a filter: its answer for one row. The planner gives the same answers, faster.
//!
//! Two-valued logic: a comparison with a property the row lacks is false whatever the operator, and `not` of it
//! is true. Stored data never makes a filter fail (spec: 5.3).

use std::cmp::Ordering;

use model::{Value, ValueRef, ordinal_cmp};

use crate::{Comparison, Expr};

/// Where a filter finds the values of properties: an entity, a table.
pub trait PropertyLookup {
    /// The value of a property, PartitionKey, RowKey and Timestamp included.
    fn property(&self, name: &str) -> Option<ValueRef<'_>>;
}

pub fn eval(expr: &Expr, row: &(impl PropertyLookup + ?Sized)) -> bool {
    match expr {
        Expr::Constant(value) => *value,
        Expr::Compare(Comparison { property, operator, literal }) => {
            row.property(property).is_some_and(|stored| operator.holds(order(stored, literal)))
        }
        Expr::Not(inner) => !eval(inner, row),
        Expr::And(terms) => terms.iter().all(|term| eval(term, row)),
        Expr::Or(terms) => terms.iter().any(|term| eval(term, row)),
    }
}

/// The order of a stored value and a literal. The literal is widened to the stored type if that is a wider number type;
/// between other different types the stored value is less. `None` if one of two numbers is NaN.
#[inline]
pub(crate) fn order(stored: ValueRef<'_>, literal: &Value) -> Option<Ordering> {
    use ValueRef as Stored;
    match (stored, literal) {
        (Stored::String(a), Value::String(b)) => Some(ordinal_cmp(a, b)),
        (Stored::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (Stored::Int32(a), Value::Int32(b)) => Some(a.cmp(b)),
        (Stored::Int64(a), Value::Int32(b)) => Some(a.cmp(&i64::from(*b))),
        (Stored::Int64(a), Value::Int64(b)) => Some(a.cmp(b)),
        (Stored::Double(a), Value::Int32(b)) => a.partial_cmp(&f64::from(*b)),
        (Stored::Double(a), Value::Int64(b)) => order_of_double_and_integer(a, *b),
        (Stored::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Stored::DateTime(a), Value::DateTime(b)) => Some(a.cmp(b)),
        (Stored::Guid(a), Value::Guid(b)) => Some(a.cmp(b)),
        (Stored::Binary(a), Value::Binary(b)) => Some(a.cmp(b.as_slice())),
        _ => Some(Ordering::Less),
    }
}

/// Compares without rounding: an f64 does not hold every i64, and 2^53 must not equal 2^53 + 1.
fn order_of_double_and_integer(double: f64, integer: i64) -> Option<Ordering> {
    const INTEGER_END: f64 = 9_223_372_036_854_775_808.0; // 2^63, the first double above every i64
    if double.is_nan() {
        return None;
    }
    if double >= INTEGER_END {
        return Some(Ordering::Greater);
    }
    if double < -INTEGER_END {
        return Some(Ordering::Less);
    }
    let whole = double.trunc();
    // In range, as checked above, so the cast is exact. The fraction decides between equal whole parts.
    (whole as i64).cmp(&integer).then_with(|| double.total_cmp(&whole)).into()
}

#[cfg(test)]
mod tests;
