//! Every test of this folder in one program: each program more is linked for long.

mod check;
mod checkpoint;
mod costs;
mod crashes;
mod damage;
mod drops;
mod format;
mod groups;
mod refusals;
mod reopen;
mod salvage;
mod sharing;
mod suite;
mod support;
mod tables;
mod turns;
