//! Fuzz target that calls `pausebed_fuzz::http::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::http::check(octets));
