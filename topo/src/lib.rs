//! The laboratory: shapes, scenarios, measures, launchers and reports behind the command `pausebed`.

#[macro_use]
pub mod spoken;

pub mod calibration;
pub mod campaign;
pub mod chart;
pub mod check;
pub mod command;
pub mod compare;
pub mod deadlock;
pub mod dissect;
pub mod estimate;
pub mod experiment;
pub mod export;
pub mod fabric;
pub mod frames;
pub mod graph;
pub mod keyfile;
pub mod launch;
pub mod measure;
pub mod names;
pub mod render;
pub mod replay;
pub mod report;
pub mod routes;
pub mod run_directory;
pub mod saturation;
pub mod scenario;
pub mod serve;
pub mod shapes;
pub mod sweep;
pub mod terminal;
pub mod topology;
pub mod trace;
pub mod tune;
pub mod verify;
pub mod wireshark;
