//! The laboratory: shapes, scenarios, measures, launchers and reports behind the command `pausebed`.

pub mod calibration;
pub mod campaign;
pub mod check;
pub mod command;
pub mod compare;
pub mod deadlock;
pub mod dissect;
pub mod estimate;
pub mod experiment;
pub mod fabric;
pub mod frames;
pub mod graph;
pub mod keyfile;
pub mod launch;
pub mod measure;
pub mod names;
pub mod render;
pub mod replay;
pub mod routes;
pub mod run_directory;
pub mod scenario;
pub mod shapes;
pub mod terminal;
pub mod topology;
pub mod tune;
pub mod verify;
