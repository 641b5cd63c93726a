//! Patterns of table design, ready to use, for a store without joins, secondary indexes and transactions across partitions.
//! Each uses only the operations of a [`Table`](partita_client::Table), and works without the others.
//!
//! | for | use |
//! |---|---|
//! | keys of several parts, of numbers and times, in an order of your choice; a partition spread over many | [`keys`] |
//! | writing, deleting or reading many entities | [`bulk`] |
//! | many values of one kind over time, few entities | [`series`] |
//! | an entity of more than 252 properties or 1 MiB | [`wide`] |
//! | bytes of any length | [`large`] |
//! | a table for each day, dropped as a whole | [`daily`] |
//! | changes of several partitions or tables that must all be done in the end | [`outbox`], [`archive`]; with a queue of the Queue service [`queued_outbox`] |
//! | work to be done later, by one of several workers | [`queue`], [`worker`] |
//!
//! To find entities by other values than their keys:
//!
//! | | where the index is | when it is updated |
//! |---|---|---|
//! | [`intra_index`] | copies in the same partition | at once |
//! | [`index_entities::PartitionLists`] | lists in the same partition | at once |
//! | [`inter_index`] | copies in other partitions or tables | eventually |
//! | [`index_entities::ListIndex`] | lists in other partitions or tables | eventually |
//!
//! Eventual updates use an [`outbox`]: one transaction changes a partition and records the changes of other partitions. If
//! the process dies before it makes those, another process makes them. An [`archive`] moves entities between tables that
//! way. The outbox uses a [`queue`] in a table and its [`worker`], which you can also use directly. A [`queued_outbox`] uses a
//! queue of the Queue service, so that its workers need not read tables to find what dead processes have left.

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
pub mod queued_outbox;
pub mod series;
pub mod steps;
pub mod wide;
pub mod worker;
