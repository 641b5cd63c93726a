//! The operations on blobs.

mod append;
mod blocks;
mod change;
mod choose;
mod cleanup;
mod copy;
mod delete;
mod find;
mod list;
pub(crate) mod map_numbers;
mod moved;
mod page_maps;
mod page_ranges;
pub(crate) mod page_rows;
mod pages;
pub(crate) mod put;
mod read;
mod snapshot;
mod source;
pub(crate) mod state;
mod state_walk;
mod tags;
