//! The registry: one row a scheme.
