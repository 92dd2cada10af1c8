//! What a switch marks: a hot output among neighbours, and an independent account of the queue that
//! each packet found when it came to the head of its own.

use crate::bench::Bench;
use crate::bench::devices::{FRAME_TIME, FULL_FRAME_BLOCKS, GROUP, MTU, OCTET, switch};
use crate::bench::packets::{frame, marked, parsed, send_only, with_opcode};
use crate::case::{Failure, Finding, ensure, same};
use proto::events::EventKind;
use proto::frame::Frame;
use proto::ids::{Lid, VirtualLane};
use proto::units::{Duration, Instant};
use proto::wire::infiniband::{Aeth, ExtendedHeaders, Opcode, PacketBuilder, Syndrome};
use std::collections::{BTreeMap, VecDeque};
use switchd::switch::Switch;

/// The hot output.
const OUT: u8 = 4;
/// Octets that a full frame occupies in a buffer.
const FULL_BUFFERED: u64 = FULL_FRAME_BLOCKS as u64 * 64;
/// One input buffer.
const BUFFER: u64 = 36 * FULL_BUFFERED;

/// A switch of four ports under the scheme with these parameters.
fn bench(params: &str) -> Result<Bench<Switch>, Failure> {
    let mut config = switch(OUT, 1);
    config.scheme.kind = "ib-cca".to_owned();
    config.scheme.params = params.parse().map_err(|error| format!("{params}: {error}"))?;
    Bench::up(Switch::new(config).map_err(|error| error.to_string())?, 1)
}

fn data(from: u8, psn: u32, payload: usize) -> Frame {
    frame(&send_only(from.into(), OUT.into(), psn), payload)
}

/// What is known of a packet that was sent through the hot output.
#[derive(Clone, Copy)]
struct Sent {
    from: u8,
    arrived: Instant,
}

/// Every packet that went to the hot output: when it came, when it left, whether it was marked.
struct Passage {
    arrivals: Vec<Sent>,
    departures: Vec<(u8, Instant, bool)>,
}

impl Passage {
    fn marks(&self) -> usize {
        self.departures.iter().filter(|(_, _, fecn)| *fecn).count()
    }

    /// Holds if exactly those packets are marked that found more than `limit` octets, their own
    /// included, when they came to the head of their queue: on arrival, or when their predecessor
    /// had left. Of what came at the instant of leaving, nothing had come yet.
    fn expect_marks_above(&self, limit: u64) -> Result<usize, Failure> {
        same("packets that left", self.departures.len(), self.arrivals.len())?;
        let mut waiting: BTreeMap<u8, VecDeque<usize>> = BTreeMap::new();
        for (index, sent) in self.arrivals.iter().enumerate() {
            waiting.entry(sent.from).or_default().push_back(index);
        }
        let mut last: BTreeMap<u8, Instant> = BTreeMap::new();
        for (number, (from, end, fecn)) in self.departures.iter().enumerate() {
            let index = waiting.get_mut(from).and_then(VecDeque::pop_front);
            let index =
                index.ok_or_else(|| format!("more packets of LID {from} left than came"))?;
            let arrived = self.arrivals[index].arrived;
            let (head_at, came) = match last.insert(*from, *end) {
                Some(left) if left > arrived => {
                    (left, self.arrivals.iter().filter(|sent| sent.arrived < left).count())
                }
                _ => (arrived, index + 1),
            };
            let left = self.departures.iter().filter(|(_, end, _)| *end <= head_at).count();
            let found = (came - left) as u64 * FULL_BUFFERED;
            ensure(*fecn == (found > limit), || {
                format!(
                    "packet {} of {} found {found} octets, limit {limit}: marked is {fecn}",
                    number + 1,
                    self.departures.len()
                )
            })?;
        }
        Ok(self.marks())
    }
}

/// `each` full frames from each of `inputs`, one every frame time, until all have left.
fn overload(bench: &mut Bench<Switch>, inputs: &[u8], each: u32) -> Result<Passage, Failure> {
    bench.forget();
    let mut arrivals = Vec::new();
    for psn in 0..each {
        for from in inputs.iter().copied() {
            arrivals.push(Sent { from, arrived: bench.now() });
            bench.send(from, data(from, psn, MTU));
        }
        bench.run_for(FRAME_TIME);
    }
    drained(bench, arrivals)
}

/// Waits until all that came has left, or nothing more leaves.
fn drained(bench: &mut Bench<Switch>, arrivals: Vec<Sent>) -> Result<Passage, Failure> {
    let mut left = usize::MAX;
    while left != bench.packets(OUT).count() && bench.packets(OUT).count() < arrivals.len() {
        left = bench.packets(OUT).count();
        bench.run_for(FRAME_TIME * 20);
    }
    let mut departures = Vec::new();
    for sent in bench.packets(OUT) {
        let (packet, bth) = parsed(&sent.frame)?;
        departures.push((packet.lrh.slid.get() as u8, sent.at, bth.fecn));
    }
    Ok(Passage { arrivals, departures })
}

/// The switch's own count of marks at the hot output.
fn counted(bench: &mut Bench<Switch>) -> u64 {
    bench.reading().ports[usize::from(OUT) - 1].lanes[0].counters.marks
}

pub(super) fn threshold_zero_never_marks() -> Finding {
    let mut off = bench("threshold = 0")?;
    let marks = overload(&mut off, &[1, 2, 3], 36)?.marks();
    same("FECN in 108 packets at threshold 0", marks, 0)?;
    same("marks counted", counted(&mut off), 0)?;
    let mut on = bench("threshold = 15")?;
    let marks = overload(&mut on, &[1, 2, 3], 36)?.marks();
    ensure(marks > 0, || "the same overload marks nothing at threshold 15 either".to_owned())?;
    Ok(format!("no FECN in 108 packets of a threefold overload; {marks} at threshold 15"))
}

pub(super) fn each_threshold_step_marks_earlier() -> Finding {
    let mut marks = Vec::new();
    for threshold in 1..=15u64 {
        let limit = BUFFER * (90 - 6 * (threshold - 1)) / 100;
        let mut bench = bench(&format!("threshold = {threshold}"))?;
        let passage = overload(&mut bench, &[1, 2], 36)?;
        let n = passage.expect_marks_above(limit).map_err(|failure| match failure {
            Failure::Failed(reason) => Failure::Failed(format!("threshold {threshold}: {reason}")),
            other => other,
        })?;
        for event in &bench.events {
            if let EventKind::Mark { limit: told, .. } = event.kind {
                same(format!("the limit of threshold {threshold}"), told.get(), limit)?;
            }
        }
        same(format!("marks counted at threshold {threshold}"), counted(&mut bench), n as u64)?;
        marks.push(n);
    }
    ensure(marks.is_sorted() && marks[0] > 0, || format!("marks by threshold: {marks:?}"))?;
    Ok(format!(
        "thresholds 1 to 15 are {} to {} octets of a buffer of {BUFFER} and mark {marks:?} of 72",
        BUFFER * 90 / 100,
        BUFFER * 6 / 100
    ))
}

pub(super) fn a_root_is_marked_and_a_victim_only_under_the_mask() -> Finding {
    let limit = BUFFER * 6 / 100;
    let mut root = bench("threshold = 15")?;
    let as_root = overload(&mut root, &[1, 2], 36)?.expect_marks_above(limit)?;
    ensure(as_root > 0, || "the root was never above its threshold".to_owned())?;
    // The same load at an output that waits for credit before every packet.
    let starved = |params: &str| {
        let mut bench = bench(params)?;
        bench.offer(OUT, 0, 0);
        bench.run_for(Duration::from_us(1));
        bench.forget();
        let mut arrivals = Vec::new();
        for psn in 0..36 {
            for from in [1, 2] {
                arrivals.push(Sent { from, arrived: bench.now() });
                bench.send(from, data(from, psn, MTU));
                bench.run_for(OCTET);
            }
        }
        bench.offer(OUT, 0, FULL_FRAME_BLOCKS);
        drained(&mut bench, arrivals)
    };
    let victim = starved("threshold = 15")?;
    same("packets that left with credit for one at a time", victim.departures.len(), 72)?;
    same("FECN in them, mask clear", victim.marks(), 0)?;
    let masked = starved("threshold = 15\nvictim_mask = [4]")?.expect_marks_above(limit)?;
    let other = starved("threshold = 15\nvictim_mask = [1, 2, 3]")?.marks();
    same("FECN with the mask bits of other ports", other, 0)?;
    Ok(format!(
        "above {limit} octets: with credit {as_root} of 72 marked; waiting for credit none, under the mask {masked}"
    ))
}

/// An acknowledgement from LID 1 to the hot output.
fn acknowledgement(psn: u32) -> PacketBuilder {
    let aeth = Some(Aeth { syndrome: Syndrome::ACK, message_sequence_number: psn });
    let extended = ExtendedHeaders { aeth, ..ExtendedHeaders::NONE };
    PacketBuilder { extended, ..with_opcode(Opcode::RC_ACKNOWLEDGE, 1, OUT.into(), psn) }
}

pub(super) fn packets_below_packet_size_are_not_marked() -> Finding {
    // By octets on the wire, LRH to VCRC.
    let mix = |psn: u32| {
        [
            frame(&acknowledgement(psn), 0),
            frame(&with_opcode(Opcode::CNP, 1, OUT.into(), psn), 16),
            data(1, psn, 64),
            data(1, psn, 484),
            data(1, psn, 488),
            data(1, psn, MTU),
        ]
    };
    let marks = |packet_size: u32| {
        let mut bench = bench(&format!("threshold = 15\npacket_size = {packet_size}"))?;
        // Far above the threshold before the first of the mix, and until after its last.
        (0..34).for_each(|psn| {
            [2, 3].into_iter().for_each(|from| bench.send(from, data(from, psn, MTU)))
        });
        let sent: Vec<Frame> = (0..5).flat_map(mix).collect();
        sent.iter().for_each(|frame| bench.send(1, frame.clone()));
        drained(&mut bench, vec![Sent { from: 1, arrived: Instant::ZERO }; 68 + sent.len()])?;
        let mut marks: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
        for departure in bench.packets(OUT) {
            let (packet, bth) = parsed(&departure.frame)?;
            if packet.lrh.slid == Lid::new(1) {
                marks.entry(departure.frame.octets.len()).or_default().push(bth.fecn);
            }
        }
        Ok::<_, Failure>(marks)
    };
    let expect = |packet_size: u32, expected: [(usize, bool); 6]| {
        let found = marks(packet_size)?;
        for (octets, fecn) in expected {
            let found = found.get(&octets).cloned().unwrap_or_default();
            let what = format!("FECN of 5 packets of {octets} octets at Packet_Size {packet_size}");
            same(what, format!("{found:?}"), format!("{:?}", [fecn; 5]))?;
        }
        Ok::<_, Failure>(())
    };
    expect(8, [(30, false), (42, false), (90, false), (510, false), (514, true), (2074, true)])?;
    expect(0, [(30, false), (42, false), (90, true), (510, true), (514, true), (2074, true)])?;
    Ok("at 8 × 64: of 30, 42, 90, 510, 514 and 2074 octets the last two are marked, each of 5; at 0 all but ACK and CN".to_owned())
}

pub(super) fn a_switch_never_clears_fecn() -> Finding {
    let group = PacketBuilder { dlid: Lid::new(GROUP), ..send_only(1, 2, 0) };
    let kinds = [
        ("data", send_only(1, 2, 0), 256),
        ("ACK", PacketBuilder { dlid: Lid::new(2), ..acknowledgement(0) }, 0),
        ("CN", with_opcode(Opcode::CNP, 1, 2, 0), 16),
        ("multicast", group, 256),
    ];
    for (threshold, lane) in [(0, 0), (0, 1), (1, 0)] {
        let mut config = switch(OUT, 2);
        config.scheme.kind = "ib-cca".to_owned();
        config.scheme.params.insert("threshold".to_owned(), toml::Value::Integer(threshold));
        let switch = Switch::new(config).map_err(|error| error.to_string())?;
        let mut bench = Bench::up(switch, 2)?;
        for (kind, builder, payload) in kinds {
            bench.forget();
            // The level goes by lane 0: a packet from lane 1 has its LRH rewritten.
            let virtual_lane = VirtualLane::truncate(lane);
            let sent = frame(&marked(PacketBuilder { virtual_lane, ..builder }, true), payload);
            bench.send(1, sent.clone());
            bench.run_for(FRAME_TIME);
            let left: Vec<_> = bench.packets(2).collect();
            same(format!("copies of the {kind} packet"), left.len(), 1)?;
            let (_, bth) = parsed(&left[0].frame)?;
            ensure(bth.fecn, || format!("the {kind} packet left lane {lane} without FECN"))?;
            let unchanged = left[0].frame.octets == sent.octets;
            ensure(unchanged == (lane == 0), || {
                format!("the {kind} packet from lane {lane}: octets unchanged is {unchanged}")
            })?;
        }
    }
    Ok("data, ACK, CN and multicast keep FECN, also where the lane and with it the VCRC changes"
        .to_owned())
}

pub(super) fn at_marking_rate_zero_every_eligible_packet_is_marked() -> Finding {
    const ELIGIBLE: u32 = 10_000;
    const PAYLOAD: usize = 256;
    let mut bench = bench("threshold = 15\nmarking_rate = 0")?;
    bench.forget();
    // First a queue that stands well above the threshold; then what leaves is replaced.
    for psn in 0..50 {
        (1..=3).for_each(|from| bench.send(from, data(from, psn, PAYLOAD)));
    }
    let first = 50;
    for n in 0..ELIGIBLE + 300 {
        let from = (n % 3) as u8 + 1;
        bench.send(from, data(from, first + n / 3, PAYLOAD));
        bench.run_for(OCTET * (PAYLOAD as u64 + 26));
    }
    bench.run_for(FRAME_TIME * 100);
    let (mut eligible, mut found) = (0, 0);
    for departure in bench.packets(OUT) {
        let (packet, bth) = parsed(&departure.frame)?;
        let Some(turn) = bth.psn.get().checked_sub(first) else { continue };
        if turn * 3 + u32::from(packet.lrh.slid.get()) <= ELIGIBLE {
            eligible += 1;
            found += u32::from(bth.fecn);
        }
    }
    same("eligible packets that left", eligible, ELIGIBLE)?;
    same("marked ones among them", found, ELIGIBLE)?;
    Ok(format!("{found} of {eligible} packets that found more than {} octets", BUFFER * 6 / 100))
}
