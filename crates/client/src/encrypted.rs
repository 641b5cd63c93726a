//! Marks a field of a user's struct for encryption, which [`EntityEncryption`](crate::EntityEncryption) does.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that is always encrypted before it is stored, even if the policy does not name its property. A table without
/// encryption refuses it.
///
/// It must serialize to a string. `Debug` does not show it.
///
/// ```
/// use partita_client::Encrypted;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// #[serde(rename_all = "PascalCase")]
/// struct Order {
///     partition_key: String,
///     row_key: String,
///     item: String,
///     card: Encrypted<String>,
/// }
///
/// let card: Encrypted<String> = "4000 1234 5678 9010".into();
/// assert_eq!(card.len(), 19);
/// assert_eq!(format!("{card:?}"), "Encrypted(..)");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Encrypted<T>(pub T);

impl Encrypted<()> {
    /// The name of the newtype struct that it serializes as. The serializer recognizes the mark by it.
    pub const NAME: &'static str = "$Encrypted";
}

impl<T> Encrypted<T> {
    /// The value without its mark.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Encrypted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Encrypted<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for Encrypted<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl From<&str> for Encrypted<String> {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl<T> fmt::Debug for Encrypted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encrypted(..)")
    }
}

impl<T: Serialize> Serialize for Encrypted<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(Encrypted::NAME, &self.0)
    }
}

/// Reads the plain value: entities are decrypted before they are deserialized.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Encrypted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}
