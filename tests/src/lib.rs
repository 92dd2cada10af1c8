//! Nothing: this member only holds tests across crates.
