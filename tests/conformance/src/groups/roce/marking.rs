//! ROCE-01, ROCE-02 and ROCE-04: which packets a switch marks.

use super::{OUT, bench_of_switch};
use crate::bench::Bench;
use crate::bench::devices::RATE;
use crate::bench::devices::ethernet::LOSSLESS;
use crate::bench::packets::ethernet::{ecn, frame, over_ipv6, plain, roce, with_ecn};
use crate::case::{Failure, Finding, ensure, same};
use proto::frame::Frame;
use proto::ids::Ecn;
use proto::wire::infiniband::{Aeth, Bth, ExtendedHeaders, Opcode, Syndrome};
use proto::wire::internet::Udp;
use proto::wire::roce::{NetworkHeaders, PacketBuilder};
use switchd::switch::Switch;

fn is_marked(frame: &Frame) -> bool {
    ecn(frame) == Ecn::CongestionExperienced
}

/// Frames of priority 3 wait for the way out.
fn fill(bench: &mut Bench<Switch>, frames: u64, sent: &Frame) {
    bench.pfc(OUT, 1 << LOSSLESS, u16::MAX);
    (0..frames).for_each(|_| bench.send(1, sent.clone()));
}

/// ROCE-01: a queue that stands still while a thousand frames go through it.
pub fn below_and_above() -> Finding {
    const THROUGH: usize = 1_000;
    const KMIN: u64 = 30;
    const KMAX: u64 = 31;
    let data = frame(&roce(1, OUT.into(), LOSSLESS, 0), 256);
    let size = data.line_size();
    let params =
        format!("kmin = \"{} B\"\nkmax = \"{} B\"", (size * KMIN).get(), (size * KMAX).get());
    let mut found = Vec::new();
    for (standing, share) in [(KMIN * 2 / 3, 0), (KMAX * 3 / 2 + 1, 100)] {
        let mut bench = bench_of_switch(&params)?;
        fill(&mut bench, standing, &data);
        bench.pfc(OUT, 1 << LOSSLESS, 0);
        // One comes whenever one has left.
        let more = frame(&roce(2, OUT.into(), LOSSLESS, 0), 256);
        let last = bench.stream(2, bench.now(), RATE, vec![more; THROUGH]);
        for _ in 0..THROUGH / 2 {
            bench.run_for(size.time_at(RATE) * 2);
            let now = bench.queued(OUT)[usize::from(LOSSLESS)] / size.get();
            same(format!("frames in a queue of {standing}"), now, standing)?;
        }
        bench.run_until(last);
        let marks = bench.packets(OUT).take(THROUGH).filter(|sent| is_marked(&sent.frame)).count();
        same(format!("hundredths marked at {standing} frames"), marks * 100 / THROUGH, share)?;
        found.push(format!("{share} % of {THROUGH} at {standing} frames"));
    }
    Ok(format!("Kmin {KMIN} and Kmax {KMAX} frames: {}", found.join(", ")))
}

/// Sizes and chance of ROCE-02, in octets and millionths.
const KMIN: u64 = 500_000;
const KMAX: u64 = 2_000_000;
const PMAX: f64 = 0.05;
const REPEATS: u64 = 200;
const BINS: usize = 20;
/// A chi-square of so many degrees of freedom is above this once in a thousand times.
const CHI_SQUARE_MAX: f64 = 45.315;

/// ROCE-02: the chance of a mark by what stands in the queue when a frame leaves, itself included.
pub fn curve() -> Finding {
    let params = format!("kmin = \"{KMIN} B\"\nkmax = \"{KMAX} B\"\npmax = {PMAX}");
    let mut bench = bench_of_switch(&params)?;
    let data = frame(&roce(1, OUT.into(), LOSSLESS, 0), 940);
    let size = data.line_size().get();
    let frames = KMAX / size + 10;
    let mut marks = vec![0u64; frames as usize];
    for _ in 0..REPEATS {
        bench.forget();
        fill(&mut bench, frames, &data);
        bench.pfc(OUT, 1 << LOSSLESS, 0);
        bench.run_for(data.line_size().time_at(RATE) * frames);
        same("frames that leave", bench.packets(OUT).count() as u64, frames)?;
        for (place, sent) in bench.packets(OUT).enumerate() {
            marks[place] += u64::from(is_marked(&sent.frame));
        }
    }
    let mut bins = [(0.0, 0.0, 0u64); BINS];
    for (place, found) in (0..frames).zip(&marks) {
        let queue = (frames - place) * size;
        if queue <= KMIN {
            same(format!("marks at {queue} octets"), *found, 0)?;
        } else if queue > KMAX {
            same(format!("marks at {queue} octets"), *found, REPEATS)?;
        } else {
            let above = (queue - KMIN) as f64 / (KMAX - KMIN) as f64;
            let bin = &mut bins[((above * BINS as f64) as usize).min(BINS - 1)];
            let chance = above * PMAX;
            bin.0 += REPEATS as f64 * chance;
            bin.1 += REPEATS as f64 * chance * (1.0 - chance);
            bin.2 += found;
        }
    }
    let square =
        |(mean, variance, found): &(f64, f64, u64)| (*found as f64 - mean).powi(2) / variance;
    let chi_square: f64 = bins.iter().map(square).sum();
    ensure(chi_square < CHI_SQUARE_MAX, || {
        format!("χ² over {BINS} bins is {chi_square:.1}, expected below {CHI_SQUARE_MAX}: {bins:?}")
    })?;
    let between: u64 = bins.iter().map(|bin| bin.2).sum();
    Ok(format!(
        "{REPEATS} queues of {frames} frames of {size} octets: {between} marks between Kmin and Kmax, χ² \
         {chi_square:.1} over {BINS} bins (p > 0.001 below {CHI_SQUARE_MAX}); none up to Kmin, all above Kmax"
    ))
}

/// A packet by what it is, with this code point.
pub type Kind = (&'static str, fn(Ecn) -> PacketBuilder<'static>);

/// What carries a code point.
pub const KINDS: [Kind; 5] = [
    ("RoCEv2 over IPv4", |ecn| with_ecn(&roce(1, 4, LOSSLESS, 7), ecn)),
    ("RoCEv2 over IPv6", |ecn| over_ipv6(&with_ecn(&roce(1, 4, LOSSLESS, 7), ecn))),
    ("tagged RoCEv2", |ecn| {
        let tag = Some(crate::bench::packets::ethernet::tag(LOSSLESS));
        PacketBuilder { tag, ..with_ecn(&roce(1, 4, LOSSLESS, 7), ecn) }
    }),
    ("UDP to another port", |ecn| {
        let builder = with_ecn(&roce(1, 4, LOSSLESS, 7), ecn);
        let NetworkHeaders::Ipv4(ip, options, udp) = builder.network else { return builder };
        let udp = Udp { destination_port: 53, ..udp };
        PacketBuilder { network: NetworkHeaders::Ipv4(ip, options, udp), ..builder }
    }),
    ("an acknowledgement", |ecn| {
        let data = with_ecn(&roce(1, 4, LOSSLESS, 7), ecn);
        let bth = Bth { opcode: Opcode::RC_ACKNOWLEDGE, ..data.bth };
        let aeth = Some(Aeth { syndrome: Syndrome::ACK, message_sequence_number: 1 });
        PacketBuilder { bth, extended: ExtendedHeaders { aeth, ..ExtendedHeaders::NONE }, ..data }
    }),
];

/// A frame of this kind with this code point; an acknowledgement has no payload.
pub fn of_kind((_, builder): Kind, code_point: Ecn) -> Frame {
    let builder = builder(code_point);
    let is_answer = builder.bth.opcode == Opcode::RC_ACKNOWLEDGE;
    frame(&builder, if is_answer { 0 } else { 256 })
}

/// ROCE-04: each code point through a port that marks everything it may.
pub fn code_points() -> Finding {
    let mut bench = bench_of_switch(MARKS_ALL)?;
    let ce = Ecn::CongestionExperienced;
    for kind in KINDS {
        for code_point in [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, ce] {
            let expected = if code_point == Ecn::NotCapable { code_point } else { ce };
            let left = through(&mut bench, of_kind(kind, code_point))?;
            ensure(left == of_kind(kind, expected), || {
                let (kind, _) = kind;
                format!(
                    "{kind} of {code_point:?} leaves with {:?} or changed otherwise",
                    ecn(&left)
                )
            })?;
        }
    }
    let plain = plain(1, OUT.into(), None, 200);
    let left = through(&mut bench, plain.clone())?;
    ensure(left == plain, || "what is not IP leaves changed".to_owned())?;
    Ok("over IPv4 and IPv6, tagged, to other UDP ports, and of acknowledgements: Not-ECT stays, ECT(0) and \
        ECT(1) become CE, CE stays, and not a bit else changes but the IPv4 checksum; what is not IP leaves \
        as it came"
        .to_owned())
}

/// Whatever stands in the queue is too much.
pub(super) const MARKS_ALL: &str = "kmin = \"0 B\"\nkmax = \"0 B\"";

/// What becomes of a frame on its way through the switch.
pub(super) fn through(bench: &mut Bench<Switch>, sent: Frame) -> Result<Frame, Failure> {
    bench.forget();
    let time = sent.line_size().time_at(RATE);
    bench.send(1, sent);
    bench.run_for(time);
    let left = bench.packets(OUT).next().map(|sent| sent.frame.clone());
    Ok(left.ok_or_else(|| "a frame does not leave the switch".to_owned())?)
}
