//! How the modules of `edm` write and read fields: one way for each type of property.

use std::any::type_name;
use std::fmt::Display;
use std::str::FromStr;
use std::time::SystemTime;

use model::{DateTime, Guid};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::edm::Binary;
use super::field::Way;

macro_rules! whole {
    ($way:ident, $number:ty, $write:ident) => {
        #[derive(Debug)]
        pub struct $way;

        impl<T: Clone + TryInto<$number> + TryFrom<$number>> Way<T> for $way {
            fn write<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
                match value.clone().try_into() {
                    Ok(number) => serializer.$write(number),
                    Err(_) => Err(S::Error::custom(format!(
                        "a number of type {} does not fit into an Edm.{}",
                        type_name::<T>(),
                        stringify!($way)
                    ))),
                }
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
                let number = <$number>::deserialize(deserializer)?;
                T::try_from(number).map_err(|_| D::Error::custom(does_not_fit::<T>(number)))
            }
        }
    };
}

whole!(Int64, i64, serialize_i64);
whole!(Int32, i32, serialize_i32);

#[derive(Debug)]
pub struct Double;

macro_rules! double {
    ($($whole:ty),+ $(,)?) => {$(
        impl Way<$whole> for Double {
            fn write<S: Serializer>(value: &$whole, serializer: S) -> Result<S::Ok, S::Error> {
                let number = *value as f64;
                // Compared as i128, which holds every integer type: a cast back to the type itself would saturate.
                if number as i128 != *value as i128 {
                    return Err(S::Error::custom(format!("{value} can't be an Edm.Double, which is not as exact")));
                }
                serializer.serialize_f64(number)
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$whole, D::Error> {
                let number = f64::deserialize(deserializer)?;
                let whole = if number.fract() == 0.0 { <$whole>::try_from(number as i128).ok() } else { None };
                whole.ok_or_else(|| D::Error::custom(does_not_fit::<$whole>(number)))
            }
        }
    )+};
}

double! { i8, i16, i32, i64, isize, u8, u16, u32, u64, usize }

impl Way<f64> for Double {
    fn write<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(*value)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        f64::deserialize(deserializer)
    }
}

impl Way<f32> for Double {
    fn write<S: Serializer>(value: &f32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64((*value).into())
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
        f32::deserialize(deserializer)
    }
}

#[derive(Debug)]
pub struct Text;

impl<T: Display + FromStr<Err: Display>> Way<T> for Text {
    fn write<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|error| D::Error::custom(format!("'{text}' is no {}: {error}", type_name::<T>())))
    }
}

#[derive(Debug)]
pub struct Time;

impl<T: Clone + TryInto<SystemTime> + TryFrom<SystemTime>> Way<T> for Time {
    fn write<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        let time = value.clone().try_into().ok().and_then(DateTime::from_system_time);
        let refused =
            || S::Error::custom("a time is not between the years 1 and 9999, as an Edm.DateTime is");
        time.ok_or_else(refused)?.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let time = DateTime::deserialize(deserializer)?;
        let read = time.to_system_time().and_then(|time| T::try_from(time).ok());
        read.ok_or_else(|| D::Error::custom(does_not_fit::<T>(time)))
    }
}

#[derive(Debug)]
pub struct SixteenBytes;

impl<T: AsRef<[u8]> + TryFrom<Vec<u8>>> Way<T> for SixteenBytes {
    fn write<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = value.as_ref();
        let refused = |_| S::Error::custom(format!("an Edm.Guid has 16 bytes, not {}", bytes.len()));
        Guid(bytes.try_into().map_err(refused)?).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let guid = Guid::deserialize(deserializer)?;
        T::try_from(guid.0.to_vec()).map_err(|_| D::Error::custom(does_not_fit::<T>(guid)))
    }
}

#[derive(Debug)]
pub struct Bytes;

impl<T: AsRef<[u8]> + TryFrom<Vec<u8>>> Way<T> for Bytes {
    fn write<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(value.as_ref())
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let bytes = Binary::deserialize(deserializer)?.0;
        let length = bytes.len();
        let refused =
            |_| D::Error::custom(does_not_fit::<T>(format_args!("an Edm.Binary of {length} bytes")));
        T::try_from(bytes).map_err(refused)
    }
}

fn does_not_fit<T>(what: impl Display) -> String {
    format!("{what} does not fit into {}", type_name::<T>())
}
