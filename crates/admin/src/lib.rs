//! The administration of a running server, on a listener of its own: status, commands, sessions, and the API that the
//! console uses.
//!
//! Read `door.rs` first: the checks of every request, then where it goes. Data is never read here past the services: a
//! session's requests go through the front's ordinary pipeline (`forward.rs`), signed with what the session signed in with.

mod assets;
mod attempts;
mod cluster;
mod command;
mod door;
mod endpoint;
mod events;
mod forward;
mod host;
mod inventory;
mod local_user;
mod origin;
mod prometheus;
mod pulse;
mod refusal;
mod reply;
pub mod sas;
mod sas_api;
mod secret;
mod service_answer;
mod session_api;
mod sessions;
mod settings;
mod sign_in;
mod signer;
mod status;
mod stored_content;
mod streams;
mod who;

pub use cluster::{ClusterNode, ClusterSource, ClusterStatus, DirectorySegments, FrontEnd};
pub use command::{Command, CommandError, Commands, Done, MigrationCheck};
pub use door::{Admin, AdminParts, bounds};
pub use endpoint::ServiceEndpoint;
pub use host::{HostName, HostNameError};
pub use secret::{AdminToken, TokenError};
pub use settings::{Setting, SettingSource};
pub use status::{Program, StoreKind, StorePlace};
