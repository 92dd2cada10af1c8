//! What tests of several binaries share: the ledger of campaigns. The package contains tests and benches across crates.

pub mod ledger;
