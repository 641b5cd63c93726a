//! Makes the modules of `edm` work for a type and for an `Option` of it.
//!
//! Public because the signatures of the modules need it, but not exported: users can't name or implement these traits.

use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A way to write and read values of a type.
pub trait Way<T> {
    fn write<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error>;
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>;
}

/// A field that is written and read in a way. `M` says whether it is an `Option`, and is always inferred. Without it the
/// two implementations below would overlap: the compiler can't know that no `Option` implements `Way`.
pub trait Field<W, M>: Sized {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

#[derive(Debug)]
pub struct Required;

#[derive(Debug)]
pub struct Optional;

impl<W: Way<T>, T> Field<W, Required> for T {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        W::write(self, serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        W::read(deserializer)
    }
}

impl<W: Way<T>, T> Field<W, Optional> for Option<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => serializer.serialize_some(&InWay(value, PhantomData::<W>)),
            None => serializer.serialize_none(),
        }
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Option::<InWay<T, W>>::deserialize(deserializer)?;
        Ok(read.map(|InWay(value, _)| value))
    }
}

struct InWay<T, W>(T, PhantomData<W>);

impl<T, W: Way<T>> Serialize for InWay<&T, W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        W::write(self.0, serializer)
    }
}

impl<'de, T, W: Way<T>> Deserialize<'de> for InWay<T, W> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        W::read(deserializer).map(|value| Self(value, PhantomData))
    }
}
