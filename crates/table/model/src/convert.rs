//! Converts values to Rust's types.
//!
//! A number converts to every number type that holds it exactly. Other values convert only to their own type.

use crate::{DateTime, EdmType, Guid, Value};

/// A value does not have the requested type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueMismatch {
    /// Another type.
    #[error("{found} can't be read as {wanted}")]
    Kind {
        /// What it is.
        found: EdmType,
        /// Rust's name of what was asked for.
        wanted: &'static str,
    },
    /// A number that the requested type can't hold.
    #[error("{number}, an {found}, does not fit into {wanted}")]
    Range {
        /// What it is.
        found: EdmType,
        /// Which one.
        number: i64,
        /// Rust's name of what was asked for.
        wanted: &'static str,
    },
}

macro_rules! same {
    ($($target:ty => $variant:ident),+ $(,)?) => {$(
        impl TryFrom<Value> for $target {
            type Error = ValueMismatch;

            fn try_from(value: Value) -> Result<Self, ValueMismatch> {
                match value {
                    Value::$variant(inner) => Ok(inner),
                    other => Err(ValueMismatch::Kind { found: other.edm_type(), wanted: stringify!($target) }),
                }
            }
        }
    )+};
}

same! { String => String, bool => Boolean, DateTime => DateTime, Guid => Guid, Vec<u8> => Binary }

macro_rules! whole {
    ($($target:ty),+ $(,)?) => {$(
        impl TryFrom<Value> for $target {
            type Error = ValueMismatch;

            fn try_from(value: Value) -> Result<Self, ValueMismatch> {
                let wanted = stringify!($target);
                let found = value.edm_type();
                let number = match value {
                    Value::Int32(number) => i64::from(number),
                    Value::Int64(number) => number,
                    _ => return Err(ValueMismatch::Kind { found, wanted }),
                };
                Self::try_from(number).map_err(|_| ValueMismatch::Range { found, number, wanted })
            }
        }
    )+};
}

whole! { i8, i16, i32, i64, u8, u16, u32, u64 }

impl TryFrom<Value> for f64 {
    type Error = ValueMismatch;

    fn try_from(value: Value) -> Result<Self, ValueMismatch> {
        let (found, wanted) = (value.edm_type(), "f64");
        match value {
            Value::Double(number) => Ok(number),
            Value::Int32(number) => Ok(Self::from(number)),
            // An i128, because a cast of 2^63 to i64 would give i64::MAX.
            Value::Int64(number) if number as Self as i128 == i128::from(number) => Ok(number as Self),
            Value::Int64(number) => Err(ValueMismatch::Range { found, number, wanted }),
            _ => Err(ValueMismatch::Kind { found, wanted }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn check<T>(value: impl Into<Value>, expected: Result<T, &str>)
    where
        T: TryFrom<Value, Error = ValueMismatch> + Debug + PartialEq,
    {
        let value = value.into();
        let read = T::try_from(value.clone()).map_err(|error| error.to_string());
        assert_eq!(read, expected.map_err(str::to_owned), "{value:?}");
    }

    #[test]
    fn a_value_is_read_as_its_own_kind() {
        check("a", Ok("a".to_owned()));
        check(true, Ok(true));
        check(DateTime::MAX, Ok(DateTime::MAX));
        check(Guid([7; 16]), Ok(Guid([7; 16])));
        check(vec![1_u8], Ok(vec![1_u8]));
        check(5, Err::<String, _>("Edm.Int32 can't be read as String"));
        check("a", Err::<Vec<u8>, _>("Edm.String can't be read as Vec<u8>"));
        check(vec![1_u8], Err::<String, _>("Edm.Binary can't be read as String"));
        check("true", Err::<bool, _>("Edm.String can't be read as bool"));
    }

    #[test]
    fn a_number_is_read_as_whatever_holds_it() {
        check(5, Ok(5_u8));
        check(5_i64, Ok(5_i32));
        check(-5, Ok(-5_i64));
        check(5, Ok(5.0_f64));
        check(1_i64 << 53, Ok(9_007_199_254_740_992.0_f64));
        check(5_000_000_000_i64, Err::<i32, _>("5000000000, an Edm.Int64, does not fit into i32"));
        check(-1, Err::<u64, _>("-1, an Edm.Int32, does not fit into u64"));
        check((1_i64 << 53) + 1, Err::<f64, _>("9007199254740993, an Edm.Int64, does not fit into f64"));
        check(i64::MAX, Err::<f64, _>("9223372036854775807, an Edm.Int64, does not fit into f64"));
        check(5.0, Err::<i32, _>("Edm.Double can't be read as i32"));
        check("5", Err::<i64, _>("Edm.String can't be read as i64"));
    }
}
