//! Patterns of table design, ready to use: what a store without joins, second indexes and transactions across partitions
//! needs. Each is made of what a [`Table`](partita_client::Table) offers, and can be used without the others.
//!
//! | for | use |
//! |---|---|
//! | keys of several parts, of numbers and times, in an order of your choice; a partition spread over many | [`keys`] |
//! | writing, deleting or reading many entities | [`bulk`] |
//! | many values of one kind over time, few entities | [`series`] |
//! | an entity of more than 252 properties or 1 MiB | [`wide`] |
//! | bytes of any length | [`large`] |
//! | a table for each day, dropped as a whole | [`daily`] |
//! | changes of several partitions or tables, none of which may be left out | [`outbox`], [`archive`] |
//! | work to be done later, once, by somebody | [`queue`], [`worker`] |
//!
//! To find entities by other values than their keys:
//!
//! | | where the index is | when it follows |
//! |---|---|---|
//! | [`intra_index`] | copies in the same partition | at once |
//! | [`index_entities::PartitionLists`] | lists in the same partition | at once |
//! | [`inter_index`] | copies in other partitions or tables | in the end |
//! | [`index_entities::ListIndex`] | lists in other partitions or tables | in the end |
//!
//! What follows in the end does so by an [`outbox`]: a change of one partition, and the intent to change others, in one
//! transaction; whoever dies in between, somebody carries it out. An [`archive`] moves entities between tables that way. It
//! is built on a [`queue`] in a table and its [`worker`], which are of use by themselves.

pub mod archive;
pub mod bulk;
mod clock;
mod collect;
pub mod daily;
mod ids;
pub mod index_entities;
pub mod index_key;
pub mod indexed;
pub mod inter_index;
pub mod intra_index;
mod key_list;
pub mod keys;
pub mod large;
mod long_text;
pub mod outbox;
mod parts;
pub mod queue;
pub mod series;
pub mod steps;
pub mod wide;
pub mod worker;
