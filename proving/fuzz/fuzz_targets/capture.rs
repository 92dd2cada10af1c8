//! Fuzz target that calls `pausebed_fuzz::capture::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::capture::check(octets));
