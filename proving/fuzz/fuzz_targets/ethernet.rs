//! Fuzz target that calls `pausebed_fuzz::ethernet::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::ethernet::check(octets));
