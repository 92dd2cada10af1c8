//! Output for people: progress while they wait, tables and small pictures at the end. Plain text without a terminal.

pub mod counters;
pub mod keys;
pub mod lab;
pub mod progress;
pub mod replay;
mod sparkline;
pub mod summary;
pub mod table;
