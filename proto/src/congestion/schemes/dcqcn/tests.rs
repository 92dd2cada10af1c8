//! Receivers that answer once an interval; profiles, what they scale to, and what may override them.

use super::profile::{ClampTarget, Cut, Hyper, ONE};
use super::*;
use crate::congestion::Notification;
use crate::ids::{MacAddress, PortNumber, ServiceLevel, VirtualLane};
use crate::params;
use crate::random::Random;
use crate::tests::bottleneck::refused;
use crate::units::BitRate;

mod incast;

pub const LINE: u64 = 40_000_000_000;
pub const FRAME: Bytes = Bytes::new(1_000);

pub fn roles(text: &str) -> Arc<dyn Roles> {
    SCHEME.configure(&text.parse().expect("TOML")).expect("sound parameters")
}

pub fn place(gbps: u64) -> Place {
    Place {
        line_rate: BitRate::gbps(gbps),
        full_frame: FRAME,
        buffer: Bytes::new(64 << 10),
        port: PortNumber::from_index(0),
        faces_adapter: false,
        congestion_point: None,
        random: Random::stream(1, "h0", "test"),
    }
}

pub fn settings(text: &str, gbps: u64) -> Settings {
    let written: toml::Table = text.parse().expect("TOML");
    let settings: Settings = params::read(&written).expect("sound parameters");
    let names: Vec<&str> = written.keys().map(String::as_str).collect();
    settings.on_line(BitRate::gbps(gbps), &names)
}

pub fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_us(n)
}

pub fn frame(class: FrameClass, ecn: Ecn) -> FrameHeaders {
    FrameHeaders {
        source: MacAddress::from_number(1).into(),
        destination: MacAddress::from_number(2).into(),
        queue_pair: 0x11,
        class,
        lane: VirtualLane::truncate(3),
        level: ServiceLevel::truncate(3),
        size: FRAME,
        payload: FRAME,
        ecn,
        ..FrameHeaders::default()
    }
}

fn marked() -> FrameHeaders {
    frame(FrameClass::Data, Ecn::CongestionExperienced)
}

/// ROCE-08: CE on every frame for a second; one CNP an interval, the first at once.
#[test]
fn marked_frames_draw_one_notification_an_interval_and_the_first_at_once() {
    let mut receiver = Receiver::new(settings("", 40).cnp_interval);
    let every = Duration::from_ns(200);
    let times = (0..5_000_000).map(|n| Instant::ZERO + every * n);
    let told: Vec<Instant> =
        times.filter(|now| receiver.on_receive(&marked(), FRAME, *now).is_some()).collect();
    assert_eq!((told[0], told.len()), (Instant::ZERO, 20_000));
    assert!(told.windows(2).all(|two| two[1].since(two[0]) == Duration::from_us(50)));
}

#[test]
fn a_mark_after_a_quiet_time_is_answered_at_once_and_starts_an_interval() {
    let mut receiver = Receiver::new(Duration::from_us(50));
    let mut told = |n| receiver.on_receive(&marked(), FRAME, us(n)).is_some();
    let answers = [0, 49, 50, 75, 99, 175, 224, 225].map(&mut told);
    assert_eq!(answers, [true, false, true, false, false, true, false, true]);
}

#[test]
fn the_answer_is_a_packet_of_its_own_with_nothing_but_becn() {
    let mut receiver = Receiver::new(Duration::from_us(50));
    let told = receiver.on_receive(&marked(), FRAME, us(0));
    assert_eq!(told, Some(TransportNote { travel: Travel::Cnp, becn: true, body: [0; 16] }));
    assert_eq!(receiver.poll_timeout(), None);
}

/// ROCE-07.
#[test]
fn marks_on_acknowledgements_and_notifications_draw_no_notification() {
    let mut receiver = Receiver::new(Duration::from_us(50));
    for class in [FrameClass::Ack, FrameClass::Notification, FrameClass::Management] {
        let other = frame(class, Ecn::CongestionExperienced);
        assert_eq!(receiver.on_receive(&other, FRAME, us(0)), None);
    }
    let group = FrameHeaders { multicast: true, ..marked() };
    assert_eq!(receiver.on_receive(&group, FRAME, us(0)), None);
    assert!(
        receiver.on_receive(&marked(), FRAME, us(0)).is_some(),
        "none of them opened an interval"
    );
}

#[test]
fn unmarked_data_draws_no_notification() {
    let mut receiver = Receiver::new(Duration::from_us(50));
    for ecn in [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1] {
        assert_eq!(receiver.on_receive(&frame(FrameClass::Data, ecn), FRAME, us(0)), None);
    }
}

#[test]
fn sizes_and_rates_of_a_profile_grow_with_the_line_and_nothing_else_does() {
    let (at_40, at_400) = (settings("", 40), settings("", 400));
    assert_eq!((at_40.kmin, at_40.kmax), (Bytes::new(5_000), Bytes::new(200_000)));
    assert_eq!((at_400.kmin, at_400.kmax), (Bytes::new(50_000), Bytes::new(2_000_000)));
    assert_eq!((at_40.byte_reset, at_400.byte_reset), (MB * 10, MB * 100));
    assert_eq!(
        [at_40.rate_ai, at_40.rate_hai, at_40.rate_min].map(BitRate::get),
        [MBPS * 40, MBPS * 400, LINE / 400]
    );
    assert_eq!(
        [at_400.rate_ai, at_400.rate_hai, at_400.rate_min].map(BitRate::get),
        [MBPS * 400, MBPS * 4_000, MBPS * 1_000]
    );
    let sizes_of = |other: Settings| Settings {
        kmin: other.kmin,
        kmax: other.kmax,
        byte_reset: other.byte_reset,
        rate_ai: other.rate_ai,
        rate_hai: other.rate_hai,
        rate_min: other.rate_min,
        ..at_40.clone()
    };
    assert_eq!(at_400, sizes_of(at_400.clone()));
}

const MB: Bytes = Bytes::new(1_000_000);
const MBPS: u64 = 1_000_000;

#[test]
fn the_profiles_differ_as_their_sources_do() {
    let [paper, cx, hpcc] =
        ["paper", "cx", "hpcc"].map(|name| settings(&format!("profile = \"{name}\""), 40));
    assert_eq!(paper, settings("", 40));
    assert_eq!((paper.g.0, cx.g.0, hpcc.g.0), (ONE / 256, 5 * ONE / 1_024, ONE / 256));
    let all = [&paper, &cx, &hpcc];
    let four = Duration::from_us(4);
    assert_eq!(all.map(|each| each.cut), [Cut::PerCnp, Cut::PerPeriod, Cut::PerPeriod]);
    assert_eq!(all.map(|each| each.cut_period), [four; 3]);
    assert_eq!(all.map(|each| each.stages), [5, 1, 1]);
    assert_eq!(all.map(|each| each.alpha_bits), [48, 10, 48]);
    assert_eq!(all.map(|each| each.hyper), [Hyper::Growing, Hyper::Growing, Hyper::Flat]);
    let byte_resets = [10_000_000, 32_767, 0].map(Bytes::new);
    assert_eq!(all.map(|each| each.byte_reset), byte_resets);
    let after = ClampTarget::AfterIncrease;
    assert_eq!(all.map(|each| each.clamp_target), [ClampTarget::Always, after, after]);
}

#[test]
fn what_is_written_counts_as_it_stands() {
    let written = settings(
        "kmin = \"1 KB\"\nkmax = \"1 MB\"\npmax = 1\ng = 0.0625\nrate_ai = \"5 Mbps\"\n\
         byte_reset = \"0 B\"\ncut = \"per-period\"\ncut_period = \"7 us\"\nstages = 3\n\
         alpha_timer = \"free\"\nclamp_target = \"after-increase\"\nhyper = \"flat\"",
        400,
    );
    assert_eq!((written.kmin, written.kmax, written.pmax.0), (Bytes::new(1_000), MB, 1_000_000));
    assert_eq!((written.g.0, written.rate_ai.get()), (ONE / 16, 5 * MBPS));
    assert_eq!((written.byte_reset, written.first_cnp_rate.0), (Bytes::ZERO, ONE));
    assert_eq!((written.cut, written.cut_period), (Cut::PerPeriod, Duration::from_us(7)));
    assert_eq!((written.stages, written.hyper), (3, Hyper::Flat));
    assert_eq!(written.cnp_interval, Duration::from_us(50), "the profile's");
}

#[test]
fn a_wrong_parameter_is_named() {
    let fields = |text: &str| refused(&SCHEME, text);
    assert_eq!(fields("kmin = 5000"), ["kmin"]);
    assert_eq!(fields("alpha_interval = \"0 us\""), ["alpha_interval"]);
    assert_eq!(fields("rate_ai = \"40\"\nprofile = \"dctcp\""), ["profile", "rate_ai"]);
    assert_eq!(fields("kmin = \"2 MB\"\nkmax = \"1 MB\""), ["kmin"]);
    assert_eq!(fields("ccti_timer = 5"), ["ccti_timer"]);
}

#[test]
fn a_frozen_sender_never_reacts() {
    let mut frozen = roles("reaction = \"frozen\"").reaction_point(place(40));
    for n in 0..100 {
        frozen.on_notification(&Notification::becn(Travel::Cnp), us(n));
    }
    assert!(frozen.is_released() && frozen.poll_timeout().is_none());
    assert_eq!(frozen.state().rate.get(), LINE);
}
