//! Fuzz target that calls `pausebed_fuzz::switch::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::switch::check(octets));
