//! The laboratory: shapes, scenarios, measures, launchers and reports behind the command `pausebed`.

pub mod measure;
