//! Fuzz target that calls `pausebed_fuzz::packet::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::packet::check(octets));
