//! PFC-20 to PFC-23: lines with more than they can carry, lossless and lossy at once, and a pause
//! that comes and goes. Whole fabrics, but for the throttling, which needs a played neighbour.

use crate::ethernet::*;
use crate::prelude::*;
use testbed::frames::ethernet::data;

static OVER: Shared<Fabric> = Shared::new(|on| loaded(on, "", [0.30, 0.25]));
static LOSSY: Shared<Fabric> =
    Shared::new(|on| loaded(on, ", lossy_queue = \"4 mtu\"", [0.24, 0.30]));

/// How long lines are loaded. Units: seconds.
const LOADED: u64 = 4;
/// Lossless and lossy priorities of h1 and h2.
const FLOWS: [(&str, [u8; 2]); 2] = [("h1", [3, 1]), ("h2", [4, 2])];

/// h1 and h2 send a lossless and a lossy priority each to h3, at these shares of the line; h4 is by.
fn loaded(on: Level, pool: &str, [lossless, lossy]: [f64; 2]) -> Result<Fabric> {
    // A sender reads XOFF when its process wakes: room for 30 ms of that.
    let mut rest = memory((8, 20), "", pool);
    for (from, [first, second]) in FLOWS {
        for (priority, load) in [(first, lossless), (second, lossy)] {
            let keys = format!("load = {load}\narrivals = \"paced\"");
            rest += &item(&format!("p{priority}"), from, priority, &keys);
        }
    }
    rest += &item("by", "h4", 3, "load = 0.01\narrivals = \"paced\"");
    let duration = format!("{LOADED} s");
    let star =
        Star { nics: 4, duration: &duration, link: "lossless = [3, 4]", rest: &rest, ..STAR };
    Fabric::run(on, &star.text(), 1)
}

fn item(name: &str, from: &str, priority: u8, keys: &str) -> String {
    let keys = format!("sl = {priority}\nsize = \"2048 B\"\ntransport = \"uc\"\n{keys}");
    traffic(name, from, "h3", &keys)
}

/// The counters of one priority at one port.
fn lane(fabric: &Fabric, node: &str, port: usize, of: u8) -> Result<LaneCounters> {
    Ok(fabric.port(node, port)?.lanes[usize::from(of)].counters)
}

/// Hundredths of the line that each priority has had at the way out to h3.
fn shares(fabric: &Fabric) -> Result<Vec<(u8, f64)>> {
    let line = RATE.octets_in(Duration::from_us(LOADED * 1_000_000)).get() as f64;
    let of = |of| Ok((of, lane(fabric, "s0", 3, of)?.tx_bytes as f64 * 100.0 / line));
    (1..=4).map(of).collect()
}

fn percentages(shares: &[(u8, f64)]) -> String {
    let each = shares.iter().map(|(priority, share)| format!("p{priority} {share:.1} %"));
    each.collect::<Vec<_>>().join(", ")
}

/// Lossless frames are lost nowhere, and none is out of order.
fn intact(fabric: &Fabric) -> Result<()> {
    let reading = fabric.reading("h3")?;
    // Of each sender the first class is lossless, and behind a lost frame the next is out of order.
    let lossless = reading.receptions.iter().filter(|flow| flow.flow.class % 2 == 0);
    let reordered: u64 = lossless.map(|flow| flow.reordered).sum();
    same("frames out of order", reordered, 0)?;
    for (number, (_, [priority, _])) in (1..).zip(FLOWS) {
        let came = lane(fabric, "s0", number, priority)?;
        let sent = lane(fabric, &format!("h{number}"), 1, priority)?;
        // One may be on its way when the run ends.
        lies("frames sent", sent.tx_frames, came.rx_frames..=came.rx_frames + 1)?;
        let left = lane(fabric, "s0", 3, priority)?.tx_frames;
        // What stands in the switch when the run ends is the rest.
        let rest = (came.in_queue.value).div_ceil(FRAME);
        ensure!(left + rest >= came.rx_frames, "of {} {left} left, {rest} wait", came.rx_frames);
    }
    Ok(())
}

/// PFC-20.
pub fn oversubscription(on: Level) -> Finding {
    let fabric = OVER.on(on)?;
    intact(&fabric)?;
    same("frames dropped", fabric.dropped(), 0)?;
    let shares = shares(&fabric)?;
    shares.iter().try_for_each(|(_, share)| lies("% of the line", *share, 22.0..=28.0))?;
    let mut parts = Vec::new();
    // Port 1 pauses priority 3 and port 2 pauses priority 4; no other port pauses either.
    for (port, priority) in (1..=4).flat_map(|port| [(port, 3), (port, 4)]) {
        let count = fabric.named("s0", port, &format!("tx_prio{priority}_pause"))?;
        let pauses = priority == port + 2;
        ensure!((count > 0) == pauses, "{count} PFC for {priority} at port {port}");
        parts.extend(pauses.then(|| format!("{count} for p{priority} at port {port}")));
    }
    Ok(format!("110 %: {}; nothing lost; PFC {}", percentages(&shares), parts.join(", ")))
}

/// PFC-21.
pub fn lossy_overload(on: Level) -> Finding {
    let fabric = LOSSY.on(on)?;
    intact(&fabric)?;
    let pauses: u64 = (1..=4).map(|port| fabric.named("s0", port, "tx_pfc")).sum::<Result<_>>()?;
    same("frames of PFC", pauses, 0)?;
    let lost = fabric.dropped();
    let full =
        fabric.experiment.result.conservation.dropped.get("queue_full").copied().unwrap_or(0);
    ensure!(lost > 0 && lost == full, "{lost} dropped, {full} of full queues");
    Ok(format!("108 %: {}; {lost} lossy frames dropped, 0 PFC", percentages(&shares(&fabric)?)))
}

/// A frame is paused away so often, for so many quanta: a tenth of the time, and half a frame's time on
/// average for the one under way.
const THROTTLE_EVERY: Duration = us(100_000);
const THROTTLE: u16 = 212;
/// When that is measured.
const BUSY: (Instant, Instant) = (ms(300), ms(2_300));

static THROTTLED: Shared<Record> = Shared::new(|on| {
    let guard = ", watchdog = { detection = \"50 ms\", restoration = \"50 ms\", poll = \"10 ms\" }";
    play(on, &star(4, "2600 ms", "", &roomy(guard)), "s0", |script| {
        let count = BUSY.1.since(BUSY.0).as_ps() / FRAME_TIME.as_ps() + 120;
        script.at(ms(150), move |bed| {
            for (from, to) in [(1, 2), (3, 4)] {
                let frames = (0..count as u32).map(|psn| data(from.into(), to, LOSSLESS, psn));
                bed.queue(from, &mut { frames });
            }
        });
        let count = BUSY.1.since(ms(200)).as_ps().div_ceil(THROTTLE_EVERY.as_ps());
        script.every(ms(200), THROTTLE_EVERY, count, |bed, _| {
            bed.pfc(2, 1 << LOSSLESS, THROTTLE);
            // A little of another priority by the way in that has nothing else to do.
            feed(bed, (4, 2), 1, 1);
        });
    })
});

/// PFC-22.
pub fn throttled_to_ninety(on: Level) -> Finding {
    let record = THROTTLED.on(on)?;
    let line = BUSY.1.since(BUSY.0).as_ps() / FRAME_TIME.as_ps();
    let share = |port| record.data_within(port, LOSSLESS, BUSY) * 1_000 / line;
    let (paused, free) = (share(2), share(4));
    ensure!((870..=930).contains(&paused), "priority 3 has {paused} ‰ of the line");
    ensure!(free >= 980, "priority 3 of another port has {free} ‰ of its line");
    let pauses = record.named(2, "rx_pfc");
    same("frames of another priority", record.data(2, 1).total(), pauses)?;
    same("storms", record.named(2, &format!("queue{LOSSLESS}_deadlock_detected")), 0)?;
    record.nothing_lost(&[])?;
    Ok(format!("{pauses} pauses: priority 3 at {paused} ‰, another port at {free} ‰, no storm"))
}

/// Octets: a megabyte live, which takes 4 s at 2 Mb/s, and ten on the virtual clock.
fn burst(on: Level) -> u64 {
    if on == Level::Live { 1_000_000 } else { 10_000_000 }
}

static STEP: Shared<Fabric> = Shared::new(|on| {
    let (burst, duration) = (burst(on), if on == Level::Live { "5 s" } else { "50 s" });
    let keys = format!(
        "sl = 3\ntransport = \"uc\"\narrivals = \"backlog\"\nsize = \"{burst} B\"\nmessages = 1"
    );
    let rest = memory((8, 20), "", "") + &traffic("burst", "h1", "h2", &keys);
    let text = Star { nics: 2, duration, rest: &rest, ..STAR }.text();
    let text = text.replace("a = \"h2:1\",", "a = \"h2:1\", rate = \"2 Mbps\",");
    Fabric::run(on, &text, 1)
});

/// PFC-23.
pub fn byte_exact(on: Level) -> Finding {
    let fabric = STEP.on(on)?;
    let lane = |node, port| lane(&fabric, node, port, LOSSLESS);
    let (sent, into) = (lane("h1", 1)?.tx_bytes, lane("s0", 1)?.rx_bytes);
    let (out, received) = (lane("s0", 2)?.tx_bytes, lane("h2", 1)?.rx_bytes);
    for (what, octets) in [("into the switch", into), ("out of it", out), ("received", received)] {
        same(format!("octets {what}"), octets, sent)?;
    }
    let reading = fabric.reading("h2")?;
    let delivered: u64 = reading.receptions.iter().map(|flow| flow.delivered_bytes).sum();
    same("octets delivered", delivered, burst(on))?;
    same("frames dropped", fabric.dropped(), 0)?;
    let pauses = fabric.named("s0", 1, "tx_prio3_pause")?;
    ensure!(pauses > 0, "nothing was paused: the case proves nothing");
    Ok(format!("{sent} octets in and out, {} of them delivered, {pauses} frames of PFC", burst(on)))
}
