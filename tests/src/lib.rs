//! What tests of several binaries share: campaigns. The package contains tests and benches across crates.

pub mod campaign;
