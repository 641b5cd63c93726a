//! The modules of `edm`: what they write, that they read it back, and that each works with an `Option`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroI64;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{check, guid, stored, time};
use crate::typed::{from_entity, to_entity};
use crate::{DateTime, Entity, Value};

/// Checks a value in a field, in an `Option`, as `None`, and each of these behind a `flatten`.
macro_rules! check_way {
    ($with:literal, $kind:ty, $value:expr, $property:expr) => {{
        #[derive(Debug, Deserialize, PartialEq, Serialize)]
        struct Fields {
            #[serde(with = $with)]
            required: $kind,
            #[serde(default, with = $with)]
            some: Option<$kind>,
            #[serde(default, with = $with)]
            none: Option<$kind>,
        }
        #[derive(Debug, Deserialize, PartialEq, Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Flat {
            partition_key: String,
            row_key: String,
            #[serde(flatten)]
            fields: Fields,
        }
        let entity = Entity::new("a", "b").with("required", $property).with("some", $property);
        assert_eq!(from_entity::<Fields>(stored(entity.clone())).unwrap().required, $value, "read directly");
        let fields = Fields { required: $value, some: Some($value), none: None };
        check(Flat { partition_key: "a".into(), row_key: "b".into(), fields }, entity);
    }};
}

#[test]
fn numbers_are_written_as_the_type_of_their_module() {
    check_way!("crate::edm::int64", i32, -5, -5_i64);
    check_way!("crate::edm::int64", usize, 5, 5_i64);
    check_way!("crate::edm::int64", u64, i64::MAX as u64, i64::MAX);
    check_way!("crate::edm::int64", NonZeroI64, NonZeroI64::MIN, i64::MIN);
    check_way!("crate::edm::int32", i64, -5, -5);
    check_way!("crate::edm::int32", u64, 5, 5);
    check_way!("crate::edm::double", i32, -5, -5.0);
    check_way!("crate::edm::double", u64, 1 << 63, 9_223_372_036_854_775_808.0);
    check_way!("crate::edm::double", f32, 0.5, 0.5);
    check_way!("crate::edm::double", f64, 0.1, 0.1);
}

#[test]
fn texts_are_written_as_the_type_of_their_module() {
    check_way!("crate::edm::string", u64, u64::MAX, "18446744073709551615");
    check_way!("crate::edm::string", IpAddr, "::1".parse::<IpAddr>().unwrap(), "::1");
    check_way!("crate::edm::json", Vec<i32>, vec![1, 2], "[1,2]");
    check_way!(
        "crate::edm::json",
        (Value, DateTime),
        (Value::Int32(-5), time("2021-05-06")),
        "[-5,\"2021-05-06T00:00:00Z\"]"
    );
    check_way!("crate::edm::json", BTreeMap<String, Option<u8>>, BTreeMap::from([("a".to_owned(), None)]), "{\"a\":null}");
}

#[test]
fn bytes_are_written_as_the_type_of_their_module() {
    check_way!("crate::edm::binary", Vec<u8>, vec![1, 2], vec![1_u8, 2]);
    check_way!("crate::edm::binary", [u8; 2], [1, 2], vec![1_u8, 2]);
    check_way!("crate::edm::binary", Box<[u8]>, [1, 2].into(), vec![1_u8, 2]);
    check_way!("crate::edm::guid", [u8; 16], guid().0, guid());
    check_way!("crate::edm::guid", Vec<u8>, guid().0.to_vec(), guid());
    check_way!("crate::edm::guid", uuid::Uuid, uuid::Uuid::from_bytes(guid().0), guid());
    assert_eq!(uuid::Uuid::from_bytes(guid().0).to_string(), guid().to_string());
}

#[test]
fn times_are_written_as_the_type_of_their_module() {
    let second = Duration::from_secs(1);
    check_way!(
        "crate::edm::date_time",
        SystemTime,
        SystemTime::UNIX_EPOCH + second,
        time("1970-01-01T00:00:01Z")
    );
    check_way!(
        "crate::edm::date_time",
        SystemTime,
        SystemTime::UNIX_EPOCH - second,
        time("1969-12-31T23:59:59Z")
    );
    type Utc = chrono::DateTime<chrono::Utc>;
    let text = "2021-05-06T07:08:09.1234567Z";
    check_way!("crate::edm::date_time", Utc, text.parse::<Utc>().unwrap(), time(text));
}

macro_rules! refuses {
    (write $with:literal, $kind:ty, $value:expr, $expected:expr) => {{
        #[derive(Serialize)]
        struct Fields {
            #[serde(rename = "P", with = $with)]
            field: $kind,
        }
        let error = to_entity(&Fields { field: $value }).unwrap_err().to_string();
        assert!(error.ends_with(concat!(": property P: ", $expected)), "{error}");
    }};
    (read $with:literal, $kind:ty, $property:expr, $expected:expr) => {{
        #[derive(Debug, Deserialize)]
        struct Fields {
            #[serde(rename = "P", with = $with)]
            _field: $kind,
        }
        let entity = stored(Entity::new("a", "b").with("P", $property));
        let error = from_entity::<Fields>(entity).unwrap_err().to_string();
        assert!(error.ends_with(concat!(": property P: ", $expected)), "{error}");
    }};
}

#[test]
fn values_that_do_not_fit_are_not_written() {
    refuses!(write "crate::edm::int64", u64, u64::MAX, "a number of type u64 does not fit into an Edm.Int64");
    refuses!(write "crate::edm::int32", i64, 1 << 31, "a number of type i64 does not fit into an Edm.Int32");
    refuses!(write "crate::edm::double", u64, u64::MAX,
        "18446744073709551615 can't be an Edm.Double, which is not as exact");
    refuses!(write "crate::edm::double", i64, i64::MAX,
        "9223372036854775807 can't be an Edm.Double, which is not as exact");
    refuses!(write "crate::edm::guid", Vec<u8>, vec![1], "an Edm.Guid has 16 bytes, not 1");
    refuses!(write "crate::edm::date_time", SystemTime, SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40),
        "a time is not between the years 1 and 9999, as an Edm.DateTime is");
    refuses!(write "crate::edm::json", BTreeMap<(), ()>, BTreeMap::from([((), ())]), "key must be a string");
}

#[test]
fn values_that_do_not_fit_are_not_read() {
    refuses!(read "crate::edm::int64", u8, 256_i64, "256 does not fit into u8");
    refuses!(read "crate::edm::int32", i64, 1_i64 << 31, "invalid value: integer `2147483648`, expected i32");
    refuses!(read "crate::edm::double", i32, 0.5, "0.5 does not fit into i32");
    refuses!(read "crate::edm::double", i32, f64::NAN, "NaN does not fit into i32");
    refuses!(read "crate::edm::string", u8, "256", "'256' is no u8: number too large to fit in target type");
    refuses!(read "crate::edm::json", Vec<u8>, "{", "not the JSON expected: invalid type: map, expected a sequence at line 1 column 0");
    refuses!(read "crate::edm::json", Vec<u8>, 5, "invalid type: Edm.Int32, expected a string");
    refuses!(read "crate::edm::binary", [u8; 2], vec![1_u8], "an Edm.Binary of 1 bytes does not fit into [u8; 2]");
    refuses!(read "crate::edm::guid", [u8; 15], guid(),
        "0f8fad5b-d9cb-469f-a165-70867728950e does not fit into [u8; 15]");
    refuses!(read "crate::edm::date_time", SystemTime, 5,
        "invalid type: Edm.Int32, expected a time such as 2021-05-06T07:08:09Z");
}
