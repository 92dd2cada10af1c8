//! Fuzz target that calls `pausebed_fuzz::offload::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::offload::check(octets));
