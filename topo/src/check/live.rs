//! Live programs: real daemons over real cables, in wall-clock time.
//!
//! Two instruments. A [`stage`] is one daemon whose neighbours are played by a [`tester`], which can
//! send anything at any time and sees everything that comes out. A whole fabric is a small scenario
//! through the ordinary launcher ([`fabrics`]). One run serves several cases: it is [`cached`], and
//! the programs, a file a group, only look at it.
//!
//! A program is inconclusive when its run's own fidelity verdict is, and never otherwise.

pub mod cached;
pub mod frames;
pub mod ibarb;
pub mod ibcc;
pub mod ibcc_nic;
pub mod ibfc;
pub mod ibrx;
pub mod neighbour;
pub mod record;
pub mod stage;
pub mod stimulus;
pub mod tester;

use proto::units::{Duration, Instant};

/// By how much all live cases are slowed down beyond their profile: for a busy host, and for
/// developing on one. A whole number.
const SLOWER: &str = "PAUSEBED_CHECK_DILATION";

/// `profile`, slowed down as the environment wishes.
pub fn dilation(profile: u64) -> u64 {
    let factor = std::env::var(SLOWER).ok().and_then(|text| text.parse().ok());
    profile * factor.unwrap_or(1).max(1)
}

/// An instant in milliseconds of fabric time.
pub const fn ms(ms: u64) -> Instant {
    Instant::from_ps(ms * 1_000_000_000)
}

/// A length in microseconds of fabric time.
pub const fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

/// A star as text of a scenario: adapters h1 to h`nics`, LIDs 1 to `nics`, at ports 1 to `nics` of
/// the switch s0, at 10 Mb/s of one lane each, so that a full frame lasts 1.66 ms and a symbol
/// 0.8 µs. `link` are further keys of the link, `rest` further lines of `[fabric]` and other tables.
///
/// Source: preface of the conformance cases ("Live profile").
pub fn star(nics: u8, duration: &str, link: &str, rest: &str) -> String {
    let names = (1..=nics).map(|nic| format!("{{ name = \"h{nic}\", kind = \"nic\" }}, "));
    let cables = (1..=nics).map(|nic| format!("{{ a = \"h{nic}:1\", b = \"s0:{nic}\" }}, "));
    format!(
        "schema = 1\nname = \"star\"\nsource = \"live conformance cases\"\n\
         [run]\nseed = 7\nduration = \"{duration}\"\nbackend = \"udp\"\n\
         [fabric]\nnodes = [{}{{ name = \"s0\", kind = \"switch\" }}]\nlinks = [{}]\n\
         link = {{ rate = \"10 Mbps\", delay = \"0 ns\", lanes = 1{}{link} }}\n{rest}\n",
        names.collect::<String>(),
        cables.collect::<String>(),
        if link.is_empty() { "" } else { ", " },
    )
}
