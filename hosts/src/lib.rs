//! Hosts of a lab: virtual machines with Linux's soft-RoCE, namespaces and containers for programs, and commands in them.

pub mod build;
pub mod container;
mod error;
pub mod exec;
pub mod image;
pub mod interface;
pub mod local;
pub mod namespace;
mod process;
pub mod running;
mod streams;
pub mod text;
pub mod vm;

pub use error::HostError;
