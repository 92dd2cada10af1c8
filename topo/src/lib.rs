//! The laboratory: shapes, scenarios, measures, launchers and reports behind the command `pausebed`.

pub mod fabric;
pub mod measure;
pub mod run_directory;
