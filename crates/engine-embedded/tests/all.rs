//! All tests of this folder in one program, because linking each program takes long.

mod absence;
mod check;
mod checkpoint;
mod content;
mod costs;
mod crashes;
mod damage;
mod drops;
mod format;
mod groups;
mod monitor;
mod objects;
mod refusals;
mod reopen;
mod salvage;
mod services;
mod sharing;
mod suite;
mod support;
mod tables;
mod turns;
