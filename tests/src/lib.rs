//! Empty: this package contains tests and benches across crates.
