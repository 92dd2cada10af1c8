//! What live cases of Ethernet share: the star, its numbers, and what frames take there.
//!
//! 10 Mb/s, priority 3 lossless and known by its DSCP; what frames hold is as on the virtual clock
//! ([`crate::bench::devices::ethernet`]), an octet lasts 800 ns in place of one.

use super::tester::Seen;
use super::{Star, us};
use proto::units::{BitRate, Duration, Instant};

pub use crate::bench::devices::ethernet::{
    FRAME, HEADROOM_FRAMES, HYSTERESIS_FRAMES, LOSSLESS, SHARED_FRAMES,
};

/// The line.
pub const RATE: BitRate = BitRate::mbps(10);
/// An octet on it.
pub const OCTET: Duration = Duration::from_ns(800);
/// Time a full frame takes on the line.
pub const FRAME_TIME: Duration = Duration::from_ns(FRAME * 800);
/// One quantum: 512 bit times.
pub const QUANTUM: Duration = Duration::from_ns(51_200);
/// Time a frame of MAC control takes on the line.
pub const CONTROL_TIME: Duration = QUANTUM;
/// What every cable takes one way.
pub const DELAY: Duration = us(200);
/// Quanta that outlast most runs.
pub const LONG: u16 = u16::MAX;

/// The star of Ethernet: adapters h1 to h`nics` at ports 1 to `nics` of the switch s0.
pub const STAR: Star<'static> = Star {
    technology: ("technology = \"ethernet\"\n", "pause = \"pfc\""),
    delays: &["200 us"; 16],
    ..Star::PROFILE
};

/// A star of Ethernet with further keys of its link, and further lines of `[fabric]` and tables.
pub fn star(nics: u8, duration: &str, link: &str, rest: &str) -> String {
    // One bin: watermarks are those of the whole run.
    Star { nics, duration, link, rest, run: "sample = \"60 s\"", ..STAR }.text()
}

/// The line of `[fabric]` that gives a switch one memory without reserves: each port and priority
/// shares `shared` full frames and has `headroom` of them; and further keys of switch and pool, each
/// with a comma before it.
pub fn memory((shared, headroom): (u64, u64), switch: &str, pool: &str) -> String {
    format!(
        "switch = {{ memory = \"shared-pool\", headroom = \"{} B\", jitter = \"0 ns\", \
         pool = {{ reserve = \"0 B\", threshold = \"{} B\", hysteresis = \"{} B\"{pool} }}{switch} }}\n",
        headroom * FRAME,
        shared * FRAME,
        HYSTERESIS_FRAMES * FRAME
    )
}

/// Room for everything that a case keeps waiting: nobody is silenced, nothing lost.
pub fn roomy(switch: &str) -> String {
    memory((1_900, HEADROOM_FRAMES), switch, "")
}

/// When the first bit of what was seen left.
pub fn start(seen: &Seen) -> Instant {
    Instant::from_ps(seen.at.as_ps() - seen.frame.line_size().time_at(RATE).as_ps())
}

/// How far apart two instants are.
pub fn apart(a: Instant, b: Instant) -> Duration {
    if a > b { a.since(b) } else { b.since(a) }
}
