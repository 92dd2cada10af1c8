//! Fuzz target that calls `pausebed_fuzz::text::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::text::check(octets));
