//! Fuzz target that calls `pausebed_fuzz::join::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::join::check(octets));
