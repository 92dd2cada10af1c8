//! IBCC-02 and IBCC-03 on the virtual clock: marks compared with the queue that each packet found at the head
//! of its own.

use crate::prelude::*;
use std::collections::VecDeque;
use testbed::frames::infiniband::Packet;

/// Credit for one full frame. Units: blocks.
const ONE_FRAME: u16 = 33;
/// The hot output of the cases that account for every packet, on lines of 8 Gb/s.
const OUT: u8 = 4;
/// Time of an octet and of a full frame there.
const OCTET: Duration = Duration::from_ns(1);
const FRAME_TIME: Duration = Duration::from_ns(2_074);
/// Octets that a full frame occupies in a buffer, and one input buffer.
const FULL_BUFFERED: u64 = ONE_FRAME as u64 * 64;
const BUFFER: u64 = 36 * FULL_BUFFERED;

/// A switch of four ports under the scheme with these parameters, its links active.
fn bench(params: &str) -> Result<Bench> {
    let rest = format!(
        "switch = {{ buffer = \"{BUFFER} B\" }}\n[scheme]\nkind = \"ib-cca\"\nmarking_rate = 0\n\
         packet_size = 0\n{params}\n"
    );
    let star = Star { nics: OUT, rest: &rest, ..Star::FAST };
    Ok(Stage::new(Level::Engine, &star.text(), "s0")?.bench()?.up()?)
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
    fn expect_marks_above(&self, limit: u64) -> Result<usize> {
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
            same(format!("mark of packet {number}, {found} of {limit}"), *fecn, found > limit)?;
        }
        Ok(self.marks())
    }
}

/// `each` full frames from each of `inputs`, one every frame time, until all have left.
fn overload(bench: &mut Bench, inputs: &[u8], each: u32) -> Result<Passage> {
    bench.clear();
    let mut arrivals = Vec::new();
    for psn in 0..each {
        for from in inputs.iter().copied() {
            arrivals.push(Sent { from, arrived: bench.now() });
            bench.inject(from, Packet::full(from.into(), OUT.into(), psn).frame());
        }
        bench.run_for(FRAME_TIME);
    }
    drained(bench, arrivals)
}

/// Waits until all that came has left, or nothing more leaves.
fn drained(bench: &mut Bench, arrivals: Vec<Sent>) -> Result<Passage> {
    let mut left = usize::MAX;
    while left != bench.packets(OUT).count() && bench.packets(OUT).count() < arrivals.len() {
        left = bench.packets(OUT).count();
        bench.run_for(FRAME_TIME * 20);
    }
    let mut departures = Vec::new();
    for sent in bench.packets(OUT) {
        let headers = classify(FrameKind::Infiniband, &sent.frame.octets)?;
        departures.push((headers.source.number() as u8, sent.at, headers.fecn));
    }
    Ok(Passage { arrivals, departures })
}

/// The switch's own count of marks at the hot output.
fn counted(bench: &mut Bench) -> u64 {
    bench.reading().ports[usize::from(OUT) - 1].lanes[0].counters.marks
}

/// IBCC-02.
pub fn threshold_scale(_: Level) -> Finding {
    let mut marks = Vec::new();
    for threshold in 1..=15u64 {
        let limit = BUFFER * (90 - 6 * (threshold - 1)) / 100;
        let what = format!("threshold = {threshold}");
        let mut bench = bench(&what)?;
        let passage = overload(&mut bench, &[1, 2], 36)?;
        let n = passage.expect_marks_above(limit).map_err(|failure| failure.of(&what))?;
        for event in &bench.events {
            if let EventKind::Mark { limit: logged, flow, .. } = event.kind {
                same(format!("the limit of threshold {threshold}"), logged.get(), limit)?;
                let is_of_them =
                    [1, 2].contains(&flow.source) && flow.destination == u64::from(OUT);
                ensure!(is_of_them, "a mark is logged for {flow:?}");
            }
        }
        same(format!("marks counted at threshold {threshold}"), counted(&mut bench), n as u64)?;
        marks.push(n);
    }
    ensure!(marks.is_sorted() && marks[0] > 0, "marks by threshold: {marks:?}");
    Ok(format!("thresholds 1 to 15 mark {marks:?} of 72"))
}

/// IBCC-03, packet by packet.
pub fn root_and_victim() -> Finding {
    let limit = BUFFER * 6 / 100;
    let mut root = bench("threshold = 15")?;
    let as_root = overload(&mut root, &[1, 2], 36)?.expect_marks_above(limit)?;
    ensure!(as_root > 0, "the root was never above its threshold");
    // The same load at an output that waits for credit before every packet.
    let starved = |params: &str| {
        let mut bench = bench(params)?;
        bench.offer(OUT, 0, 0);
        bench.run_for(us(1));
        bench.clear();
        let mut arrivals = Vec::new();
        for psn in 0..36 {
            for from in [1, 2] {
                arrivals.push(Sent { from, arrived: bench.now() });
                bench.inject(from, Packet::full(from.into(), OUT.into(), psn).frame());
                bench.run_for(OCTET);
            }
        }
        bench.offer(OUT, 0, ONE_FRAME);
        drained(&mut bench, arrivals)
    };
    let victim = starved("threshold = 15")?;
    same("packets that left with credit for one at a time", victim.departures.len(), 72)?;
    same("FECN in them, mask clear", victim.marks(), 0)?;
    let masked = starved("threshold = 15\nvictim_mask = [4]")?.expect_marks_above(limit)?;
    let other = starved("threshold = 15\nvictim_mask = [1, 2, 3]")?.marks();
    same("FECN with the mask bits of other ports", other, 0)?;
    Ok(format!("with credit {as_root} of 72 marked; without none, under the mask {masked}"))
}
