//! Entities and tables as Atom, which clients older than 2015-12-11 still speak; both ways.
//!
//! Knows XML and values. It does not know which version uses which dialect, nor what a request's properties mean.

mod markup;
mod read;
mod write;

pub use read::{read_properties, read_properties_without_keys};
pub use write::{AtomContext, AtomDialect, AtomEntry, AtomValue, FeedWriter, content_type, write_entry};

const ATOM: &str = "http://www.w3.org/2005/Atom";
const DATA: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices";
const METADATA: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata";
const SCHEME: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/scheme";
const GEORSS: &str = "http://www.georss.org/georss";
const GML: &str = "http://www.opengis.net/gml";
