//! Hosts of a lab: virtual machines with Linux's soft-RoCE, their images, and commands in them.

pub mod build;
mod error;
pub mod exec;
pub mod image;
pub mod running;
pub mod text;
pub mod vm;

pub use error::HostError;
