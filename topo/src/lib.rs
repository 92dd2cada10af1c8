//! The laboratory: shapes, scenarios, measures, launchers and reports behind the command `pausebed`.

pub mod fabric;
pub mod measure;
pub mod run_directory;
pub mod frames;
pub mod graph;
pub mod keyfile;
pub mod names;
pub mod render;
pub mod routes;
pub mod scenario;
pub mod shapes;
pub mod topology;
