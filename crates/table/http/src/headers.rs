//! Headers that only the Table service has, as constants, so that a look-up does not parse the name.

use http::HeaderName;
use wire::names;

pub static X_HTTP_METHOD: HeaderName = HeaderName::from_static(names::X_HTTP_METHOD);
pub static DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static(names::DATA_SERVICE_VERSION);
pub static MAX_DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static(names::MAX_DATA_SERVICE_VERSION);
pub static X_PARTITA_EXAMINED: HeaderName = HeaderName::from_static(names::X_PARTITA_EXAMINED);
pub static X_PARTITA_EXPLAIN: HeaderName = HeaderName::from_static(names::X_PARTITA_EXPLAIN);
pub static X_PARTITA_MAX_EXAMINED: HeaderName = HeaderName::from_static(names::X_PARTITA_MAX_EXAMINED);
pub static PREFER: HeaderName = HeaderName::from_static(names::PREFER);
