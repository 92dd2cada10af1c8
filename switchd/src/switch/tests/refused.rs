//! Frames without room: the report to the congestion point, and the alarm before.

use super::bench::{BOTH, Bench, FRAME, Look, P3, PORTS, bench, config, data, lossy};
use crate::config::SwitchConfig;
use crate::egress::Egress;
use crate::memory::models::MODELS;
use proto::Technology;
use proto::congestion::{CongestionPoint, QueueSample};
use proto::events::{DeviceEvent, EventKind};
use proto::units::{Bytes, Instant};
use std::sync::{Arc, Mutex};
use testbed::Bed;

/// A reported drop: the output, the size of the frame, and the octets in its queue.
type CongestionReport = Arc<Mutex<Vec<(usize, Bytes, Bytes)>>>;

/// Notes every frame that was refused on its way to one output.
struct Listens(usize, CongestionReport);

impl CongestionPoint for Listens {
    fn on_drop(&mut self, size: Bytes, sample: &QueueSample, _: Instant) {
        self.1.lock().unwrap().push((self.0, size, sample.queue));
    }
}

fn listening(config: SwitchConfig) -> (Bench, CongestionReport) {
    let (mut bench, heard) = (bench(config), CongestionReport::default());
    for (output, egress) in bench.device.egress.iter_mut().enumerate() {
        let points = (0..8).map(|_| Box::new(Listens(output, heard.clone())) as Box<_>);
        *egress = Egress::new(points.collect(), PORTS.into(), Technology::Ethernet);
    }
    (bench, heard)
}

fn frames(n: u64) -> Bytes {
    Bytes::new(n * FRAME)
}

#[test]
fn the_congestion_point_gets_every_frame_refused_for_want_of_room() {
    let (mut bench, heard) = listening(config());
    bench.pfc(4, BOTH, u16::MAX);
    // Two reserved, twenty shared, ten in headroom; then two too many.
    (0..34).for_each(|psn| bench.inject(1, data(1, 4, psn)));
    // Ten may stand at the output; then one too many.
    (0..11).for_each(|psn| bench.inject(2, lossy(2, 4, psn)));
    assert_eq!(bench.lost(), 3);
    let (lossless, queue) = ((3, frames(1), frames(32)), (3, frames(1), frames(10)));
    assert_eq!(*heard.lock().unwrap(), [lossless, lossless, queue]);
}

#[test]
fn a_frame_that_is_refused_for_another_reason_is_no_business_of_a_point() {
    let (mut bench, heard) = listening(config());
    bench.inject(1, data(2, 1, 0));
    assert_eq!(bench.lost(), 1, "it would have to turn back");
    assert!(heard.lock().unwrap().is_empty());
}

fn alarms(bench: &Bench) -> Vec<(Bytes, Bytes)> {
    let alarm = |event: &DeviceEvent| match &event.kind {
        EventKind::HeadroomAlarm { used, headroom } => Some((*used, *headroom)),
        _ => None,
    };
    bench.events.iter().filter_map(alarm).collect()
}

#[test]
fn more_than_four_fifths_of_a_headroom_raises_one_alarm() {
    let mut bench = bench(config());
    bench.pfc(4, 1 << P3, u16::MAX);
    (0..22 + 8).for_each(|psn| bench.inject(1, data(1, 4, psn)));
    assert_eq!(alarms(&bench), [], "eight of ten frames are four fifths");
    bench.inject(1, data(1, 4, 30));
    assert_eq!(alarms(&bench), [(frames(9), frames(10))]);
    bench.pfc(4, 1 << P3, 0);
    bench.run_for(proto::units::Duration::from_us(100));
    bench.pfc(4, 1 << P3, u16::MAX);
    (0..22 + 10).for_each(|psn| bench.inject(1, data(1, 4, psn)));
    assert_eq!(alarms(&bench).len(), 1, "the same headroom again");
    (0..22 + 9).for_each(|psn| bench.inject(2, data(2, 4, psn)));
    assert_eq!(alarms(&bench).len(), 2, "another port's");
    assert_eq!(bench.lost(), 0);
}

#[test]
fn every_memory_model_raises_the_alarm() {
    for model in MODELS {
        let mut config = config();
        config.memory.kind = model.name.to_owned();
        let mut bench = bench(config);
        bench.pfc(4, 1 << P3, u16::MAX);
        for input in 1..4u8 {
            (0..140).for_each(|psn| bench.inject(input, data(input.into(), 4, psn)));
        }
        let alarms = alarms(&bench);
        assert!(!alarms.is_empty() && bench.lost() > 0, "{}", model.name);
        for (used, headroom) in alarms {
            assert!(used * 5 > headroom * 4 && used <= headroom, "{}: {used}", model.name);
        }
    }
}
