//! The star of Ethernet: 10 Mb/s, priority 3 lossless and known by its DSCP.

use super::star::{Star, us};
use proto::units::{BitRate, Duration, Instant};
use testbed::Bed;
use testbed::frames::ethernet::data;

/// The table `[scheme]` of DCQCN with these parameters, a line each.
pub fn dcqcn(params: &str) -> String {
    format!("[scheme]\nkind = \"dcqcn\"\n{params}\n")
}

/// The lossless priority.
pub const LOSSLESS: u8 = 3;
/// A full frame, DA to FCS: its octets in a buffer and on the line.
pub const FRAME: u64 = 14 + 20 + 8 + 12 + 2048 + 4 + 4;
/// Full frames that one port and priority shares before its neighbour is paused.
pub const SHARED_FRAMES: u64 = 8;
/// Full frames that its headroom holds.
pub const HEADROOM_FRAMES: u64 = 4;
/// How many full frames below the threshold the neighbour may send again.
pub const HYSTERESIS_FRAMES: u64 = 3;
/// The line rate of the cases.
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

/// A host beside the star, at port 9 of its switch: with it NICs have a host stack.
pub const ATTACHED: &str =
    "[lab]\nattach = [{ port = \"s0:9\", socket = \"v1\", pause = \"none\" }]\n";

/// Full frames that each port and priority shares in a roomy switch. All together can fill the shared part.
const ROOMY_FRAMES: u64 = 1_900;
/// The largest frame: a full one with two tags, IPv6 and the longest extended headers.
const LARGEST: u64 = FRAME + 8 + 20 + 28;

/// Room for everything that a case keeps waiting: no pause, no loss.
pub fn roomy(switch: &str) -> String {
    memory((ROOMY_FRAMES, HEADROOM_FRAMES), switch, "")
}

/// The same beside neighbours that obey a pause after `response`. Headroom holds what comes until then: 802.1Q annex N, and
/// the frame that finds the shared part full (docs/spec/algorithms.md, 7).
pub fn roomy_for(response: Duration) -> String {
    let on_its_way = RATE.octets_in(DELAY * 2 + response).get();
    let needed = on_its_way + 2 * LARGEST + 64 + LARGEST;
    memory((ROOMY_FRAMES, needed.div_ceil(FRAME)), "", "")
}

/// How far apart two instants are.
pub fn apart(a: Instant, b: Instant) -> Duration {
    if a > b { a.since(b) } else { b.since(a) }
}

/// The same for lines of up to 10 Gb/s, where much is under way on the cables of the star.
pub fn vast() -> String {
    memory((1_000, 300), "", "")
}

/// `count` full frames of `priority` from the neighbour at `from` to adapter `to`, back to back, now.
pub fn feed(bed: &mut dyn Bed, (from, to): (u8, u8), priority: u8, count: u64) {
    for psn in 0..count {
        bed.send_frame(from, &data(from.into(), to.into(), priority, psn as u32));
    }
}
