//! PFC-06 to PFC-08 and PFC-16 to PFC-18 what is not obeyed, not forwarded, or no PFC at all.
//!
//! ```text
//!   port 1 ─▶ 2   a lossy priority that is paused        5 ─▶ 6   PFC that names no priority
//!        3 ─▶ 4   PAUSE, with PFC on                     7 ─▶ 8   MAC control of every kind, in slots
//! ```

use crate::ethernet::*;
use crate::prelude::*;
use proto::wire::ethernet::{MacAddress, MacControl, Pfc, plan};
use testbed::frames::ethernet::{PEER, control, damaged, data, pause, pfc, readdressed, tagged};

/// When lines are full and the frames of a storm come, so many and so far apart.
const STORM: (Instant, u64) = (ms(150), 100);
const STORM_EVERY: Duration = us(4_000);
/// Frames of a full line in that time.
const FRAMES: u64 = 240;
/// When the first slot begins, and how long one is.
const SLOTS: (Instant, Duration) = (ms(150), us(12_000));
/// A pause that ends well within its slot. Units: quanta.
const SHORT: u16 = 100;

static RUN: Shared<Record> = Shared::new(|on| {
    play(on, &star(8, "700 ms", "obeyed = [3]", &roomy("")), "s0", |script| {
        let empty = MacControl::Pfc(Pfc { reserved: 0, enabled: 0, times: [LONG; 8] });
        for (port, frame) in [(2, pfc(1 << 1, LONG)), (4, pause(LONG)), (6, control(empty))] {
            script.every(STORM.0, STORM_EVERY, STORM.1, move |bed, _| bed.send_frame(port, &frame));
        }
        script.at(STORM.0, |bed| {
            for psn in 0..FRAMES {
                let lanes = [(1, 1), (3, psn as u8 % 8), (5, LOSSLESS)];
                for (from, priority) in lanes {
                    let frame = data(from.into(), u16::from(from) + 1, priority, psn as u32);
                    bed.enqueue(from, frame.octets);
                }
            }
        });
        for (number, odd) in odd().into_iter().enumerate() {
            let at = slot(number);
            script.at(at, move |bed| bed.send_frame(8, &odd.frame));
            // Its last bit comes while a pause would hold.
            script.at(at, |bed| feed(bed, (7, 8), LOSSLESS, 1));
        }
    })
});

fn slot(number: usize) -> Instant {
    SLOTS.0 + SLOTS.1 * number as u64
}

/// All frames went from `port` to the next at the line's rate, and nothing was lost.
fn unmoved(record: &Record, port: u8) -> Result<()> {
    let (count, gap) = super::back_to_back(record, port, Instant::ZERO, Instant::NEVER);
    same(format!("frames out of port {port}"), count as u64, FRAMES)?;
    let ends = record.packets(port).times();
    let (first, last) = (ends.first().copied(), ends.last().copied());
    let took = last.zip(first).map_or(Duration::ZERO, |(last, first)| last.since(first));
    let line = FRAME_TIME * (FRAMES - 1);
    let most = line + record.within(Duration::from_ps(line.as_ps() / 100));
    lies(format!("port {port}, {gap} ns"), took, ..=most)?;
    same(format!("losses of port {port}"), record.lost(port), "nothing".to_owned())
}

/// PFC-06.
pub fn lossy_is_deaf(on: Level) -> Finding {
    let record = RUN.on(on)?;
    unmoved(&record, 2)?;
    same("rx_prio1_pause", record.named(2, "rx_prio1_pause"), STORM.1)?;
    same("rx_prio1_pause_duration", record.named(2, "rx_prio1_pause_duration"), 0)?;
    Ok(format!("{FRAMES} frames of priority 1 at line rate; {} of PFC counted", STORM.1))
}

/// PFC-07.
pub fn pause_is_ignored(on: Level) -> Finding {
    let record = RUN.on(on)?;
    unmoved(&record, 4)?;
    same("rx_global_pause", record.named(4, "rx_global_pause"), STORM.1)?;
    same("rx_pfc", record.named(4, "rx_pfc"), 0)?;
    Ok(format!("{FRAMES} frames of 8 priorities at line rate; {} of PAUSE counted apart", STORM.1))
}

/// PFC-08.
pub fn empty_vector(on: Level) -> Finding {
    let record = RUN.on(on)?;
    unmoved(&record, 6)?;
    same("rx_pfc", record.named(6, "rx_pfc"), STORM.1)?;
    for priority in 0..8 {
        let name = format!("rx_prio{priority}_pause");
        same(&name, record.named(6, &name), 0)?;
    }
    Ok(format!("{} frames counted as PFC, none as pause of a priority, none dropped", STORM.1))
}

/// A frame of MAC control at port 8, and what must become of it.
struct Odd {
    case: &'static str,
    what: String,
    frame: Frame,
    obeyed: bool,
    counted: Option<DropReason>,
}

fn odd() -> Vec<Odd> {
    let frame = pfc(1 << LOSSLESS, SHORT);
    let mut all = Vec::new();
    let mut add = |case, what: &str, frame, obeyed, counted| {
        all.push(Odd { case, what: what.to_owned(), frame, obeyed, counted });
    };
    let to = |address| readdressed(frame.clone(), address, PEER);
    let from = |number| {
        let source = MacAddress::from_number(number);
        readdressed(frame.clone(), MacAddress::MAC_CONTROL, source)
    };
    let all_ones = MacAddress::from_number((1 << 48) - 1);
    let elsewhere = Some(DropReason::MacControlAddress);
    add("PFC-16", "to the group", to(MacAddress::MAC_CONTROL), true, None);
    let own = plan::port_mac(Lid::new(9), PortNumber::from_index(7));
    add("PFC-16", "to the port itself", to(own), true, None);
    add("PFC-16", "to another adapter", to(plan::mac(Lid::new(3))), false, elsewhere);
    add("PFC-16", "to broadcast", to(all_ones), false, elsewhere);
    let unknown = control(MacControl::Unknown(0x0102));
    add("PFC-16", "PAUSE, with PFC on", pause(LONG), false, None);
    add("PFC-16", "of another opcode", unknown, false, Some(DropReason::MacControlOpcode));
    add("PFC-17", "from zero", from(0), true, None);
    add("PFC-17", "from a valid address", from(0x0200_0000_f00d), true, None);
    add("PFC-17", "from a group", from(0x0180_c200_0001), true, None);
    add("PFC-17", "from all ones", from((1 << 48) - 1), true, None);
    let mut short = frame.clone();
    short.octets.truncate(59);
    let mut opcode = frame.clone();
    opcode.octets[15] = 0x77;
    let bad = [
        ("short", short, DropReason::MacControlLength),
        ("tagged", tagged(frame.clone(), LOSSLESS), DropReason::MacControlTag),
        ("of an unknown opcode", opcode, DropReason::MacControlOpcode),
        ("with a bad FCS", damaged(frame.clone()), DropReason::MacControlAborted),
    ];
    for (what, frame, reason) in bad {
        add("PFC-18", what, frame, false, Some(reason));
    }
    let times = std::array::from_fn(|p| if p == usize::from(LOSSLESS) { SHORT } else { 0 });
    let above = Pfc { reserved: 0xff, enabled: 1 << LOSSLESS, times };
    let above = control(MacControl::Pfc(above));
    add("PFC-18", "with reserved bits", above, true, Some(DropReason::PfcVector));
    all
}

/// What became of the frames of `case`, one by one; how many there were.
fn judge(on: Level, case: &str) -> Result<usize> {
    let record = RUN.on(on)?;
    let mut count = 0;
    for (number, odd) in odd().into_iter().enumerate().filter(|(_, odd)| odd.case == case) {
        let (from, to) = (slot(number), slot(number + 1));
        let came = from + FRAME_TIME + DELAY;
        let over = from + CONTROL_TIME + DELAY + QUANTUM * u64::from(SHORT);
        let left = record.data(8, LOSSLESS).starts(RATE).into_iter();
        let left = left.filter(|at| *at >= from && *at < to).min().unwrap_or(Instant::NEVER);
        let due = if odd.obeyed { over } else { came };
        let early = Instant::from_ps(due.as_ps() - record.within(us(20)).as_ps());
        lies(format!("frame after PFC {}", odd.what), left, early..=due + record.within(us(200)))?;
        let counted = record.dropped(8, (from, to));
        let expected: Vec<DropReason> = odd.counted.into_iter().collect();
        ensure!(counted == expected, "PFC {}: counted as {counted:?}", odd.what);
        count += 1;
    }
    Ok(count)
}

/// PFC-16.
pub fn never_forwarded(on: Level) -> Finding {
    let count = judge(on, "PFC-16")?;
    let record = RUN.on(on)?;
    let copies = (1..=8).map(|port| record.control(port).count()).sum::<usize>();
    same("frames of MAC control out of any port", copies, 0)?;
    same("frames out of port 7", record.packets(7).count(), 0)?;
    Ok(format!("{count} kinds, and {} frames of storms: 0 copies", 3 * STORM.1))
}

/// PFC-17.
pub fn any_source(on: Level) -> Finding {
    Ok(format!("obeyed from each of {} sources", judge(on, "PFC-17")?))
}

/// PFC-18.
pub fn malformed(on: Level) -> Finding {
    let count = judge(on, "PFC-18")?;
    Ok(format!("{} kinds dropped, each for its reason; reserved bits ignored", count - 1))
}
