//! Fuzz target that calls `pausebed_fuzz::scenario::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::scenario::check(octets));
