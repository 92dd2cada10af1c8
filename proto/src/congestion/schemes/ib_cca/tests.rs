//! The table, the index, the timer, and who is marked.

use super::super::fecn_marker::Marker;
use super::*;
use crate::congestion::{Marking, QueueSample};
use crate::ids::{Lid, PortNumber};
use crate::params::Reader;
use crate::random::Random;
use crate::tests::bottleneck::refused;

const TAU: Duration = Duration::from_ns(2074);

fn place() -> Place {
    Place {
        line_rate: BitRate::gbps(8),
        full_frame: Bytes::new(2074),
        buffer: Bytes::new(36 * 2112),
        port: PortNumber::from_index(0),
        faces_adapter: false,
        congestion_point: None,
        random: Random::stream(1, "leaf0", "marker"),
    }
}

fn read<T: Params>(text: &str) -> T {
    let table = text.parse().unwrap();
    let mut reader = Reader::new(&table, SCHEME.keys);
    let read = T::read(&mut reader);
    reader.finish(read).unwrap()
}

fn throttle(text: &str) -> Throttle {
    Throttle::new(&Arc::new(Control::new(read(text))), &place())
}

fn marker(text: &str) -> Option<Marker> {
    Marker::new(&read(text), place())
}

#[test]
fn a_least_index_above_the_largest_is_refused() {
    let fields = |text: &str| refused(&SCHEME, text);
    assert_eq!(fields("ccti_min = 20\nccti_limit = 10"), ["ccti_min"]);
    assert_eq!(fields("ccti_min = 128"), ["ccti_min"], "the linear table ends at 127");
    assert_eq!(fields("ccti_min = 4\ncct = [0, 1, 2, 3]"), ["ccti_min"]);
    assert!(fields("ccti_min = 10\nccti_limit = 10").is_empty());
}

fn data() -> FrameHeaders {
    FrameHeaders {
        size: Bytes::new(2074),
        source: Lid::new(1).into(),
        destination: Lid::new(32).into(),
        queue_pair: 0x1_0001,
        payload: Bytes::new(2048),
        ..FrameHeaders::default()
    }
}

fn queue_of(frames: u64, blocked: bool) -> QueueSample {
    QueueSample {
        ingress: PortNumber::from_index(0),
        queue: Bytes::new(frames * 2112),
        ingress_buffer: Bytes::new(frames * 2112),
        line_rate: BitRate::gbps(8),
        blocked_since: blocked.then_some(Instant::from_ps(5)),
        last_departure: None,
    }
}

fn becns(throttle: &mut Throttle, n: u32) {
    for _ in 0..n {
        throttle.on_notification(&Notification::becn(Travel::AckOrCnp), Instant::ZERO);
    }
}

#[test]
fn entry_c00c_is_a_gap_of_one_and_a_half_packet_times() {
    assert_eq!(CctEntry::from_bits(0xc00c).delay(Duration::from_ns(1000)), Duration::from_ns(1500));
}

#[test]
fn the_linear_table_ends_at_31_packet_times_and_begins_at_none() {
    let table = linear_table(31);
    assert_eq!(table.len(), 128);
    assert_eq!(table[127], CctEntry::from_bits(0xc000 | 248));
    let eight = Duration::from_ps(8_000);
    assert_eq!(table[127].delay(eight), eight * 31);
    assert_eq!(table[0].delay(eight), Duration::ZERO);
}

#[test]
fn becns_raise_the_index_by_the_increase_up_to_the_limit() {
    let mut throttle = throttle("ccti_increase = 5\nccti_limit = 12");
    becns(&mut throttle, 2);
    assert_eq!(throttle.ccti, 10);
    becns(&mut throttle, 5);
    assert_eq!(throttle.ccti, 12);
}

#[test]
fn the_timer_lowers_the_index_step_by_step_and_stops_at_the_minimum() {
    let mut throttle = throttle("ccti_increase = 10\nccti_timer = 31\nccti_min = 2");
    becns(&mut throttle, 1);
    assert_eq!(throttle.ccti, 12);
    let period = Duration::from_ns(31 * 1024);
    assert_eq!(throttle.poll_timeout(), Some(Instant::ZERO + period));
    throttle.handle_timeout(Instant::ZERO + period * 5);
    assert_eq!(throttle.ccti, 7);
    throttle.handle_timeout(Instant::ZERO + period * 20);
    assert_eq!((throttle.ccti, throttle.poll_timeout()), (2, None));
    assert!(throttle.is_released());
}

#[test]
fn the_gap_follows_the_packet_just_sent_and_idle_time_is_not_banked() {
    let mut throttle = throttle("ccti_increase = 127");
    assert_eq!(throttle.may_send_at(None), Permission::At(Instant::ZERO));
    becns(&mut throttle, 1);
    throttle.on_transmit(Bytes::new(2074), Instant::ZERO + TAU);
    let Permission::At(at) = throttle.may_send_at(Some(Instant::ZERO + TAU)) else { panic!() };
    let exact = Duration::from_ps((TAU.as_ps() >> 3) * 248);
    assert_eq!(at, Instant::ZERO + TAU + exact);
}

#[test]
fn crossing_the_trigger_threshold_is_told_once() {
    let mut throttle = throttle("ccti_increase = 5\ntrigger_threshold = 10");
    let tell =
        |t: &mut Throttle| t.on_notification(&Notification::becn(Travel::Cnp), Instant::ZERO);
    assert_eq!(
        [tell(&mut throttle), tell(&mut throttle), tell(&mut throttle)],
        [Effect::Valid, Effect::Crossed, Effect::Valid]
    );
}

#[test]
fn roots_are_marked_and_victims_are_not_unless_the_mask_says_so() {
    let mut usual = marker("threshold = 1").unwrap();
    let root = usual.on_head(&data(), &queue_of(33, false), Instant::ZERO);
    assert!(matches!(root, Marking::Fecn { .. }));
    assert_eq!(usual.on_head(&data(), &queue_of(33, true), Instant::ZERO), Marking::Pass);
    assert_eq!(usual.on_head(&data(), &queue_of(32, false), Instant::ZERO), Marking::Pass);
    let mut marker = marker("threshold = 1\nvictim_mask = [1]").unwrap();
    let victim = marker.on_head(&data(), &queue_of(33, true), Instant::ZERO);
    assert!(matches!(victim, Marking::Fecn { .. }));
}

#[test]
fn threshold_0_never_marks_and_higher_thresholds_mark_earlier() {
    assert!(marker("threshold = 0").is_none());
    let limits: Vec<u64> =
        (1..=15).map(|k| marker(&format!("threshold = {k}")).unwrap().limit.get()).collect();
    assert!(limits.windows(2).all(|pair| pair[0] > pair[1]));
    assert_eq!(limits[0], 36 * 2112 * 9 / 10);
}

#[test]
fn acknowledgements_short_packets_and_management_are_never_marked() {
    let mut marker = marker("threshold = 1\npacket_size = 8").unwrap();
    let full = queue_of(36, false);
    let ack = FrameHeaders { class: FrameClass::Ack, ..data() };
    let short = FrameHeaders { size: Bytes::new(511), ..data() };
    let enough = FrameHeaders { size: Bytes::new(512), ..data() };
    assert_eq!(marker.on_head(&ack, &full, Instant::ZERO), Marking::Pass);
    assert_eq!(marker.on_head(&short, &full, Instant::ZERO), Marking::Pass);
    assert!(matches!(marker.on_head(&enough, &full, Instant::ZERO), Marking::Fecn { .. }));
}

#[test]
fn a_marking_rate_of_three_marks_every_fourth_eligible_packet() {
    let mut marker = marker("threshold = 1\nmarking_rate = 3").unwrap();
    let full = queue_of(36, false);
    let marks =
        (0..400).filter(|_| marker.on_head(&data(), &full, Instant::ZERO) != Marking::Pass).count();
    assert_eq!(marks, 100);
}

#[test]
fn faulty_parameters_are_all_named() {
    let table = "threshold = 16\nccti_incraese = 5\nroot_test = \"luck\"".parse().unwrap();
    let errors = SCHEME.configure(&table).err().unwrap();
    assert_eq!(errors.len(), 3);
    assert!(errors.iter().any(|error| error.complaint.hint.contains("0 to 15")));
    assert!(errors.iter().any(|error| error.complaint.hint.contains("ccti_increase")));
}
