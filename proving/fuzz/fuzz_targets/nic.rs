//! Fuzz target that calls `pausebed_fuzz::nic::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::nic::check(octets));
