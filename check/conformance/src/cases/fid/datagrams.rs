//! FID-06, FID-07 and FID-10 live: datagrams that come out of order, twice, not at all, or from
//! another run.

use crate::prelude::*;
use crate::star::star;
use emulation::cable::inbox::LineCounts;
use testbed::frames::infiniband::Packet;

/// Groups of four packets, of which the second comes after the third and the fourth comes twice.
const GROUPS: u32 = 60;

static SHUFFLED: Shared<Record> = Shared::new(|on| {
    play(on, &star(2, "800 ms", "", ""), "s0", |script| {
        for group in 0..GROUPS {
            let begin = ms(150) + us(8_000) * u64::from(group);
            script.at(begin, move |bed| {
                let octets = [0, 1, 2, 3].map(|n| Packet::new(1, 2, group * 4 + n).octets());
                let stamped = |n: u64, sequence| Label {
                    sequence,
                    stamp: Some(begin + us(1_000) * n),
                    ..Label::default()
                };
                let labels = [0, 1, 2, 3].map(|n| stamped(n, None));
                bed.send_labelled(1, &octets[0], labels[0]);
                let held = bed.hold_back(1, FrameKind::Infiniband, &octets[1]);
                bed.send_labelled(1, &octets[2], labels[2]);
                bed.send_labelled(1, &octets[1], Label { sequence: Some(held), ..labels[1] });
                let last = bed.sequence(1);
                bed.send_labelled(1, &octets[3], labels[3]);
                let again = Label { sequence: Some(last), ..labels[3] };
                bed.put(1, FrameKind::Infiniband, &octets[3], again);
            });
        }
    })
});

/// Packets that are held back: the first two for ever, the third until so many others have passed
/// that the receiver can no longer distinguish it from a copy.
const HELD: u32 = 3;
const BEYOND: u32 = 1_100;

fn lost(on: Level) -> Result<Record> {
    let octets = |psn| Packet { payload: 64, ..Packet::new(1, 2, psn) }.octets();
    let held = Arc::new(AtomicU32::new(0));
    let third = Arc::clone(&held);
    play(on, &star(2, "700 ms", "", ""), "s0", |script| {
        script.at(ms(150), move |bed| {
            for psn in 0..HELD {
                let number = bed.hold_back(1, FrameKind::Infiniband, &octets(psn));
                held.store(number, Ordering::Relaxed);
            }
            (HELD..HELD + BEYOND).for_each(|psn| bed.enqueue(1, octets(psn)));
        });
        script.at(ms(500), move |bed| {
            let sequence = Some(third.load(Ordering::Relaxed));
            let label = Label { sequence, ..Label::default() };
            bed.put(1, FrameKind::Infiniband, &octets(HELD - 1), label);
        });
    })
}

/// FID-06.
pub fn reorder_and_duplicate(on: Level) -> Finding {
    let record = SHUFFLED.on(on)?;
    let LineCounts { reordered, duplicates, lost, .. } = record.lines[0];
    same("reordered frames counted", reordered, u64::from(GROUPS))?;
    same("duplicates counted", duplicates, u64::from(GROUPS))?;
    same("frames declared lost", lost, 0)?;
    let numbers = record.packets(2).psns();
    let expected: Vec<u32> = (0..GROUPS * 4).collect();
    ensure!(numbers == expected, "{} frames came, or not in order: {numbers:?}", numbers.len());
    declared_lost(on)?;
    Ok(format!("{GROUPS} swapped and {GROUPS} doubled counted; {HELD} held back are lost"))
}

/// What never came, or came when the window had passed, is lost, and is not delivered.
fn declared_lost(on: Level) -> Result<()> {
    let record = lost(on)?;
    let LineCounts { duplicates, lost, .. } = record.lines[0];
    same("frames declared lost", lost, u64::from(HELD))?;
    same("frames that came too late to tell", duplicates, 1)?;
    same("packets that left", record.packets(2).count() as u32, BEYOND)?;
    same("losses that the verdict knows", record.live()?.fidelity.transport_lost, u64::from(HELD))?;
    same("the run passes for faithful", record.live()?.fidelity.ok, false)
}

/// How long the daemon is stopped while datagrams arrive.
const STILL: (Instant, Instant) = (ms(300), ms(500));
const FLOOD: u32 = 400;

/// FID-07.
pub fn socket_overflow(on: Level) -> Finding {
    let mut stage = Stage::new(on, &star(2, "900 ms", "", ""), "s0")?;
    // Less than the kernel's minimum: it gives that.
    stage.receive_buffer = Some(1);
    let mut script = Script::default();
    script.every(STILL.0, us(400), FLOOD.into(), |bed, number| {
        bed.send(1, &Packet { payload: 64, ..Packet::new(1, 2, number as u32) }.octets());
    });
    script.every(ms(700), us(2_000), 20, |bed, number| {
        bed.send(1, &Packet::new(1, 2, FLOOD + number as u32).octets());
    });
    let record = stage.run_with(script, |opening| {
        let opening = opening.clone();
        std::thread::spawn(move || {
            opening.wait_until(STILL.0);
            let held = opening.suspend(0);
            opening.wait_until(STILL.1);
            drop(held);
        });
    })?;
    let live = record.live()?;
    let exchange = &live.report.exchange;
    let gaps: u64 = exchange.received.iter().map(|line| line.counts.lost).sum();
    let sent: u64 = live.exchange.sent.iter().map(|line| line.sent.total()).sum();
    let came: u64 = exchange
        .received
        .iter()
        .map(|line| line.counts.received.plus(line.counts.drained).total() + line.counts.stale)
        .sum();
    ensure!(exchange.overflows > 0, "no overflow with {} octets", exchange.buffers.receive);
    same("datagrams the socket dropped (SO_RXQ_OVFL)", exchange.overflows, sent - came)?;
    same("gaps in the sequence numbers", gaps, exchange.overflows)?;
    same("losses that the verdict knows", live.fidelity.transport_lost, exchange.overflows)?;
    same("the run passes for faithful", record.live()?.fidelity.ok, false)?;
    Ok(format!("{gaps} datagrams dropped, as many gaps, and the run is inconclusive"))
}

/// FID-10.
pub fn restart(on: Level) -> Finding {
    const OURS: u32 = 150;
    const THEIRS: u32 = 25;
    let run = |number: u32, other: Option<u32>| {
        let stage = Stage::new(on, &star(2, "500 ms", "", ""), "s0")?;
        let epoch = Arc::new(AtomicU32::new(0));
        let mut script = Script::default();
        script.at(ms(150), move |bed| {
            for psn in 0..number {
                let packet = Packet { payload: 2048, ..Packet::new(1, 2, psn) };
                bed.enqueue(1, packet.octets());
            }
            let Some(epoch) = other else { return };
            let label = Label { epoch: Some(epoch), ..Label::default() };
            for psn in 0..THEIRS {
                let octets = Packet::new(1, 2, 1_000 + psn).octets();
                bed.put(1, FrameKind::Infiniband, &octets, label);
            }
        });
        let stored = Arc::clone(&epoch);
        let record = stage.run_with(script, move |opening| {
            stored.store(opening.epoch, Ordering::Relaxed);
        })?;
        record.kept_up()?;
        Ok::<_, Failure>((record, epoch.load(Ordering::Relaxed)))
    };
    let (first, before) = run(OURS, None)?;
    let (second, after) = run(OURS, Some(before))?;
    ensure!(before != after, "both runs have the epoch {before}");
    for (record, refused) in [(&first, 0), (&second, u64::from(THEIRS))] {
        let counted = record.port(1).lanes.iter().map(|lane| lane.counters.rx_frames).sum::<u64>();
        same("frames counted since the start", counted, u64::from(OURS))?;
        same("frames of another epoch", record.live()?.report.exchange.rejected.epoch, refused)?;
        same("packets that left", record.packets(2).count() as u32, OURS)?;
    }
    Ok(format!("another epoch, counters from 0, {THEIRS} frames of the old epoch refused"))
}
