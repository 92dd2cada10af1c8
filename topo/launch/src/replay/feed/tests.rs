//! Pacing, and packets that are left out.

use super::*;
use capture::reader::Stamps;
use proto::frame::FramePool;

fn captured(at_us: u64, kind: FrameKind, wire_size: u32) -> CapturedFrame {
    let mut octets = FramePool::default().take();
    octets.resize(1000, 0);
    CapturedFrame {
        at_ns: at_us * 1_000,
        stamps: Stamps { tick_ns: 1, is_fabric: true, is_exact: true },
        interface: None,
        speed: None,
        direction: None,
        wire_size,
        frame: Frame::unchecked(kind, octets),
    }
}

fn arrivals(pace: Pace, stamps_us: &[u64]) -> Vec<Option<u64>> {
    let begin = Instant::from_ps(1_000_000);
    let mut pacer = Pacer { pace, rate: BitRate::gbps(8), begin, last: None };
    let arrival = |at_us: &u64| {
        let arrives = pacer.arrival(&captured(*at_us, FrameKind::Infiniband, 1000));
        arrives.map(|at| at.as_ps() / 1_000)
    };
    stamps_us.iter().map(arrival).collect()
}

#[test]
fn recorded_gaps_are_divided_by_the_speed_but_never_shorter_than_the_line_allows() {
    let fast = arrivals(Pace::Speed(2.0), &[70, 90, 90, 80, 100]);
    assert_eq!(fast, [1_000, 11_000, 12_000, 13_000, 23_000].map(Some));
    let even = arrivals(Pace::Gap(Duration::from_us(3)), &[70, 90, 90]);
    assert_eq!(even, [1_000, 4_000, 7_000].map(Some));
    let dense = arrivals(Pace::Gap(Duration::ZERO), &[0, 0]);
    assert_eq!(dense, [1_000, 2_000].map(Some), "1000 octets at 8 Gbit/s take 1 µs");
}

#[test]
fn a_pace_that_lasts_too_long_is_refused() {
    assert_eq!(arrivals(Pace::Speed(1e-12), &[0, 1_000_000]), [Some(1_000), None]);
    assert_eq!(arrivals(Pace::Gap(Duration::from_ps(u64::MAX)), &[0, 0]), [Some(1_000), None]);
}

#[test]
fn only_whole_packets_of_the_technology_are_fed() {
    for (technology, own) in [
        (Technology::Infiniband, FrameKind::Infiniband),
        (Technology::Ethernet, FrameKind::Ethernet),
    ] {
        for kind in [FrameKind::Infiniband, FrameKind::InfinibandLink, FrameKind::Ethernet] {
            let whole = unfit(&captured(0, kind, 1000), technology);
            assert_eq!(whole.is_none(), kind == own, "{kind:?} on {technology:?}: {whole:?}");
        }
        let cut = unfit(&captured(0, own, 1001), technology);
        assert!(cut.is_some_and(|why| why.contains("cut")));
    }
    let mut pause = captured(0, FrameKind::Ethernet, 1000);
    pause.frame.octets[12..14].copy_from_slice(&[0x88, 0x08]);
    assert_eq!(unfit(&pause, Technology::Ethernet), Some("MAC control frame"));
}
