//! What people see in a terminal: progress while they wait, tables and small pictures when it is
//! over. Plain text where nobody looks.

pub mod lab;
pub mod progress;
pub mod replay;
pub mod sparkline;
pub mod spinner;
pub mod summary;
