//! Entities and tables as JSON, at the three metadata levels, both ways.

mod decode;
mod encode;
mod members;
mod object;
mod shape;
mod text;
mod written_names;

pub use decode::{read_entity, read_entity_without_keys, read_table_name};
pub use encode::{
    EntityContext, EntityView, EntityWriter, write_body, write_entity, write_entity_set_end,
    write_entity_set_start, write_table, write_table_set,
};
pub use text::write_string;
