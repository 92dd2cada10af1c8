//! ROCE-01 to ROCE-04, and what ROCE-06 and ROCE-16 require of a switch: which packets it marks.

use crate::ethernet::dcqcn;
use crate::ethernet::*;
use crate::odd::{CE, odd};
use crate::prelude::*;
use crate::stimulus::{Expected, Stimulus, judge, schedule};
use proto::wire::infiniband::{Aeth, Bth, ExtendedHeaders, Opcode, Syndrome};
use proto::wire::internet::{Udp, checksum};
use proto::wire::roce::{NetworkHeaders, PacketBuilder};
use testbed::frames::ethernet::{
    cnp, data, ecn, frame, is_cnp, over_ipv6, plain, roce, tag, with_ecn,
};

/// The way out, and whose frames go there.
const OUT: u8 = 4;

fn is_marked(frame: &Frame) -> bool {
    ecn(frame) == CE
}

/// What reaches a switch that marks all it may, and what must leave it.
fn stimuli() -> Vec<Stimulus> {
    let mut all = Vec::new();
    let mut add = |case, what, comes: Frame, expected| {
        all.push(Stimulus::new(case, what, comes.octets, expected));
    };
    let leaves = |frame: Frame| Expected::Sent(OUT, frame.octets);
    for kind in KINDS {
        for code in [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, CE] {
            let expected = if code == Ecn::NotCapable { code } else { CE };
            let what = format!("{} of {code:?}", kind.0);
            add("ROCE-04", what, of_kind(kind, code), leaves(of_kind(kind, expected)));
        }
    }
    let plain = plain(1, OUT.into(), None, 200);
    add("ROCE-04", "a packet that is not IP".to_owned(), plain.clone(), leaves(plain));
    for odd in odd() {
        let expected = odd.at_switch.map_or_else(|| leaves(odd.frame.clone()), Expected::Lost);
        add("ROCE-16", format!("a packet {}", odd.what), odd.frame, expected);
    }
    all
}

/// When data is queued for a port, how much of it, and how many CNPs come beside it, how far apart.
const QUEUED: Instant = ms(420);
const DATA: u64 = 60;
const NOTICES: u64 = 20;
const NOTICE_EVERY: Duration = us(2_200);
/// When a queue of CNPs alone is opened.
const ALONE: (Instant, u64) = (ms(600), 50);

/// CNP `number` to adapter `to`: every other one is ECT(0), which none should be.
fn notice(to: u8, number: u64) -> Frame {
    let mut frame = cnp(2, to.into());
    if number % 2 == 1 {
        frame.octets[15] |= Ecn::Capable0.bits();
        frame.octets[24..26].fill(0);
        let checksum = checksum::ipv4_header(&frame.octets[14..34]);
        frame.octets[24..26].copy_from_slice(&checksum.to_be_bytes());
    }
    frame
}

static ALL: Shared<Record> = Shared::new(|on| {
    let rest = format!("{}{}", roomy(""), dcqcn("kmin = \"0 B\"\nkmax = \"0 B\""));
    play(on, &star(OUT, "760 ms", "", &rest), "s0", |script| {
        schedule(script, &stimuli());
        script.at(QUEUED, |bed| {
            for from in [1, 3] {
                let frames =
                    (0..DATA as u32).map(|psn| data(from.into(), OUT.into(), LOSSLESS, psn));
                bed.queue(from, &mut { frames });
            }
        });
        script.every(QUEUED + us(20_000), NOTICE_EVERY, NOTICES, |bed, number| {
            bed.send_frame(2, &notice(OUT, number));
        });
        script.at(ALONE.0, |bed| {
            (0..ALONE.1).for_each(|number| bed.send_frame(2, &notice(3, number)));
        });
    })
});

/// ROCE-04.
pub fn code_points(on: Level) -> Finding {
    let count = judge("ROCE-04", &stimuli(), &*ALL.on(on)?)?;
    Ok(format!("{count} packets: Not-ECT stays, ECT becomes CE, CE stays, nothing else changes"))
}

/// ROCE-16, the switch: how many kinds pass or end there as they must.
///
/// # Errors
/// The first that does not.
pub fn not_roce(on: Level) -> Result<usize> {
    judge("ROCE-16", &stimuli(), &*ALL.on(on)?)
}

/// ROCE-06, the switch: the longest wait of a CNP behind marked data.
///
/// # Errors
/// If one is changed, or waits for more than the frame on the line.
pub fn notices_pass(on: Level) -> Result<Duration> {
    let record = ALL.on(on)?;
    let left: Vec<_> = record.packets(OUT).that(is_cnp).collect();
    same("CNPs that leave", left.len() as u64, NOTICES)?;
    let own = cnp(2, OUT.into()).line_size().get();
    let mut longest = Duration::ZERO;
    for (number, seen) in (0u64..).zip(&left) {
        same(format!("CNP {number}"), &seen.frame.octets, &notice(OUT, number).octets)?;
        let came = QUEUED + us(20_000) + NOTICE_EVERY * number + OCTET * own + DELAY;
        longest = longest.max(seen.start(RATE).since(came));
    }
    let most = FRAME_TIME + record.within(us(100));
    ensure!(longest <= most, "a CNP waits {longest} in the switch");
    let marked = record.data(OUT, LOSSLESS).since(QUEUED).that(is_marked).total();
    same("marked data beside them", marked, 2 * DATA)?;
    let kept = record.packets(3).zip((0..).map(|number| notice(3, number)));
    let kept = kept.filter(|(seen, sent)| seen.frame.octets == sent.octets).count() as u64;
    same("CNPs of a queue of their own that leave unchanged", kept, ALONE.1)?;
    Ok(longest)
}

/// Frames of 318 octets.
const PAYLOAD: usize = 256;
const SIZE: u64 = 318;
/// When ways out are shut, when their queues fill, and when they are opened while more comes.
const SHUT: Instant = ms(100);
const FILL: Instant = ms(110);
const OPEN: Instant = ms(160);
/// ROCE-01: Kmin and Kmax, what stands, and how many go through meanwhile.
const KMIN: u64 = 30;
const KMAX: u64 = 31;
const STANDING: [(u8, u64); 2] = [(3, KMIN * 2 / 3), (6, KMAX * 3 / 2 + 1)];
const THROUGH: usize = 1_000;

fn wait(bed: &mut dyn Bed, (from, to): (u8, u8), count: u64) {
    let builder = |psn| roce(from.into(), to.into(), LOSSLESS, psn as u32);
    bed.queue(from, &mut (0..count).map(|psn| frame(&builder(psn), PAYLOAD)));
}

/// A queue of `standing` frames at `out`, which stays as long while `through` more go through.
fn hold(script: &mut Script, out: u8, standing: u64, through: u64) {
    script.at(SHUT, move |bed| bed.pfc(out, 1 << LOSSLESS, LONG));
    script.at(FILL, move |bed| wait(bed, (out - 2, out), standing));
    script.at(OPEN, move |bed| {
        bed.pfc(out, 1 << LOSSLESS, 0);
        wait(bed, (out - 1, out), through);
    });
}

static HELD: Shared<Record> = Shared::new(|on| {
    let params = format!("kmin = \"{} B\"\nkmax = \"{} B\"", KMIN * SIZE, KMAX * SIZE);
    let rest = format!("{}{}", roomy(""), dcqcn(&params));
    play(on, &star(6, "500 ms", "", &rest), "s0", |script| {
        STANDING.iter().for_each(|(out, standing)| hold(script, *out, *standing, THROUGH as u64));
    })
});

/// ROCE-01.
pub fn below_and_above(on: Level) -> Finding {
    let record = HELD.on(on)?;
    let marks = STANDING.map(|(port, _)| {
        record.data(port, LOSSLESS).take(THROUGH).that(is_marked).count() * 100 / THROUGH
    });
    for (port, standing) in STANDING {
        let left = record.data(port, LOSSLESS).total();
        same(format!("frames out of port {port}"), left, standing + THROUGH as u64)?;
    }
    same("hundredths marked below Kmin", marks[0], 0)?;
    let least = if on == Level::Live { 95 } else { 100 };
    ensure!(marks[1] >= least, "{} % marked above Kmax", marks[1]);
    Ok(format!("Kmin {KMIN} and Kmax {KMAX} frames: {marks:?} % of {THROUGH} at {STANDING:?}"))
}

/// ROCE-03: the burst and, in frames, the queue that it goes through and Kmax. Source: the case.
const LIMIT: usize = 2_047;
const QUEUE: u64 = 100;

static BURST: Shared<Record> = Shared::new(|on| {
    let params = format!("kmin = \"0 B\"\nkmax = \"{} B\"\npmax = 0.05", (QUEUE + 1) * SIZE);
    let rest = format!("{}{}", roomy(""), dcqcn(&params));
    play(on, &star(3, "800 ms", "", &rest), "s0", |script| {
        hold(script, 3, QUEUE - 1, LIMIT as u64);
    })
});

/// ROCE-03.
pub fn marked_share(on: Level) -> Finding {
    let record = BURST.on(on)?;
    let burst = record.data(3, LOSSLESS).take(LIMIT);
    same("frames that leave of the burst", burst.clone().count(), LIMIT)?;
    let marked = burst.that(is_marked).count();
    let permille = marked * 1_000 / LIMIT;
    ensure!((30..=70).contains(&permille), "{marked} of {LIMIT} marked");
    Ok(format!("{marked} of {LIMIT} marked, {permille} ‰, where the chance is 50 ‰"))
}

/// Sizes and chance of ROCE-02, in octets and millionths.
const CURVE_KMIN: u64 = 500_000;
const CURVE_KMAX: u64 = 2_000_000;
const PMAX: f64 = 0.05;
const REPEATS: u64 = 200;
const BINS: usize = 20;
/// A chi-square of so many degrees of freedom is above this once in a thousand times.
const CHI_SQUARE_MAX: f64 = 45.315;

/// ROCE-02: the chance of a mark by what stands in the queue when a frame leaves, itself included.
pub fn curve(_: Level) -> Finding {
    let params = format!("kmin = \"{CURVE_KMIN} B\"\nkmax = \"{CURVE_KMAX} B\"\npmax = {PMAX}");
    let mut bench = super::bench_of_switch(&params)?;
    let data = frame(&roce(1, OUT.into(), LOSSLESS, 0), 940);
    let size = data.line_size().get();
    let frames = CURVE_KMAX / size + 10;
    let mut marks = vec![0u64; frames as usize];
    for _ in 0..REPEATS {
        bench.clear();
        bench.pfc(OUT, 1 << LOSSLESS, LONG);
        (0..frames).for_each(|_| bench.inject(1, data.clone()));
        bench.pfc(OUT, 1 << LOSSLESS, 0);
        bench.run_for(data.line_size().time_at(RATE) * frames);
        same("frames that leave", bench.packets(OUT).total(), frames)?;
        for (place, sent) in bench.packets(OUT).enumerate() {
            marks[place] += u64::from(is_marked(&sent.frame));
        }
    }
    let mut bins = [(0.0, 0.0, 0u64); BINS];
    for (place, found) in (0..frames).zip(&marks) {
        let queue = (frames - place) * size;
        if queue <= CURVE_KMIN {
            same(format!("marks at {queue} octets"), *found, 0)?;
        } else if queue > CURVE_KMAX {
            same(format!("marks at {queue} octets"), *found, REPEATS)?;
        } else {
            let above = (queue - CURVE_KMIN) as f64 / (CURVE_KMAX - CURVE_KMIN) as f64;
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
    ensure!(chi_square < CHI_SQUARE_MAX, "χ² is {chi_square:.1}: {bins:?}");
    let between: u64 = bins.iter().map(|bin| bin.2).sum();
    Ok(format!(
        "{REPEATS} × {frames} frames: {between} marks between Kmin and Kmax, χ² {chi_square:.1}"
    ))
}

/// A packet by what it is, with this code point.
type Kind = (&'static str, fn(Ecn) -> PacketBuilder<'static>);

/// What carries a code point.
const KINDS: [Kind; 5] = [
    ("RoCEv2 over IPv4", |ecn| with_ecn(&roce(1, 4, LOSSLESS, 7), ecn)),
    ("RoCEv2 over IPv6", |ecn| over_ipv6(&with_ecn(&roce(1, 4, LOSSLESS, 7), ecn))),
    ("tagged RoCEv2", |ecn| PacketBuilder {
        tag: Some(tag(LOSSLESS)),
        ..with_ecn(&roce(1, 4, LOSSLESS, 7), ecn)
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
fn of_kind((_, builder): Kind, code_point: Ecn) -> Frame {
    let builder = builder(code_point);
    let is_answer = builder.bth.opcode == Opcode::RC_ACKNOWLEDGE;
    frame(&builder, if is_answer { 0 } else { 256 })
}
