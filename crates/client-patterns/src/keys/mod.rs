//! Makes keys with several parts, and keys that sort by numbers or times.
//!
//! A service orders entities by their keys, as text, and has no other index. So put into the keys what queries need in order
//! or by range: several parts ([`join`], [`split`]), numbers ([`signed`], [`unsigned`]), times with the newest first
//! ([`newest_first`], [`log_tail`]), the day or hour of a time ([`day`], [`hour`]). A partition with too many writes can be
//! spread over several ([`Spread`]).
//!
//! ```
//! use partita_client_patterns::keys;
//!
//! let key = keys::join(["eu/west", "000223"]);
//! assert_eq!(key, "eu.~west!000223");
//! assert_eq!(keys::split(&key)?, ["eu/west", "000223"]);
//! # Ok::<(), partita_client::Error>(())
//! ```

mod composite;
mod numbers;
mod spread;
mod times;

pub use composite::{SEPARATOR, join, next_part_starts_with, split, within};
pub use numbers::{
    parse_signed, parse_signed_inverted, parse_unsigned, parse_unsigned_inverted, signed, signed_inverted,
    unsigned, unsigned_inverted,
};
pub use spread::Spread;
pub use times::{
    day, day_start, hour, log_between, log_tail, log_time, newest_first, oldest_first, parse_newest_first,
    parse_oldest_first,
};

pub(crate) use times::{TICKS_PER_DAY, start_of_day};
