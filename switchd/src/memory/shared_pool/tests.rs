//! The pool octet by octet: thresholds, hysteresis, headroom, reserves, and what is refused.

use super::*;
use crate::config::MemoryConfig;
use crate::memory::ingress::ingress;
use proptest::prelude::*;

const P0: VirtualLane = VirtualLane::ZERO;
const P3: VirtualLane = VirtualLane::truncate(3);
const HEADROOM: u64 = 10_000;
const FRAME: Bytes = Bytes::new(1_000);

fn port(index: usize) -> PortNumber {
    PortNumber::from_index(index)
}

fn numbers() -> PoolParams {
    PoolParams {
        size: Bytes::new(200_000),
        reserve: Bytes::new(2_000),
        threshold: Threshold::Octets(Bytes::new(20_000)),
        hysteresis: Bytes::new(3_000),
        headroom_pool: None,
        lossy_queue: Some(Bytes::new(5_000)),
    }
}

fn memory(pool: PoolParams) -> Result<SharedPool, MemoryError> {
    let numbers = MemoryConfig { headroom: Bytes::new(HEADROOM), ..MemoryConfig::default() };
    SharedPool::of(Room { ingress: &ingress(4), numbers: &numbers }, pool)
}

fn fill(memory: &mut SharedPool, input: usize, lane: VirtualLane, frames: u64) {
    for frame in 0..frames {
        let admission = memory.admit(port(input), lane, FRAME);
        assert_eq!(admission, Admission::Taken, "frame {frame}");
    }
}

fn named(memory: &SharedPool, input: usize, name: &str) -> u64 {
    let mut all = Vec::new();
    memory.read(port(input), &mut all);
    all.iter().find(|(key, _)| key == name).map_or(0, |(_, value)| *value)
}

/// Groups whose thresholds together exceed the shared part fill it, and then a frame is in the headroom before its XOFF.
#[test]
fn headroom_holds_one_more_frame_where_the_shared_part_can_be_full() {
    let full = Bytes::new(1518);
    // 1 us on the cable is 1250 octets; two frames and a control frame.
    let behind_xoff = 1250 + 2 * full.get() + 64;
    for (threshold, size, is_full) in [
        (Threshold::Octets(Bytes::new(20_000)), 200_000, true),
        (Threshold::Octets(Bytes::new(20_000)), 9_000_000, false),
        (Threshold::Octets(Bytes::new(500_000)), 9_000_000, true),
        (Threshold::Shift(1), 9_000_000, true),
        (Threshold::Shift(4), 9_000_000, false),
    ] {
        let size = Bytes::new(size);
        let pool = PoolParams { threshold, size, reserve: Bytes::ZERO, ..numbers() };
        let least = behind_xoff + if is_full { full.get() } else { 0 };
        let of = |headroom| {
            let config = MemoryConfig { headroom: Bytes::new(headroom), ..MemoryConfig::default() };
            SharedPool::of(Room { ingress: &ingress(4), numbers: &config }, pool)
        };
        let numbers = MemoryConfig::default();
        let room = Room { ingress: &ingress(4), numbers: &numbers };
        assert_eq!(pool.needed(&ingress(4)[0], room).get(), least, "{threshold:?}, {size}");
        assert!(of(behind_xoff).is_ok() && of(behind_xoff - 1).is_err());
        let mut memory = of(least).unwrap();
        for (input, lane) in (0..4).flat_map(|input| (0..8).map(move |lane| (input, lane))) {
            let lane = VirtualLane::truncate(lane);
            let is_paused =
                |memory: &SharedPool| memory.demands(port(input)) >> lane.get() & 1 == 1;
            while (input, lane) != (3, P3)
                && !is_paused(&memory)
                && memory.admit(port(input), lane, Bytes::new(100)) == Admission::Taken
            {
            }
        }
        assert_eq!(memory.demands(port(3)), 0);
        assert_eq!(memory.admit(port(3), P3, full), Admission::Taken);
        let ahead = if is_full { full.get() } else { 0 };
        assert_eq!(named(&memory, 3, "pg3_headroom_watermark"), ahead, "{threshold:?}, {size}");
    }
}

/// PFC-01, m = 0: reserve and threshold, then XOFF, then headroom, then loss.
#[test]
fn xoff_at_the_threshold_and_headroom_for_later_frames() {
    let mut memory = memory(numbers()).unwrap();
    fill(&mut memory, 0, P3, 2 + 19);
    assert_eq!(memory.demands(port(0)), 0);
    fill(&mut memory, 0, P3, 1);
    assert_eq!(memory.demands(port(0)), 1 << 3);
    assert_eq!(memory.take_changed().iter().collect::<Vec<_>>(), [port(0)]);
    fill(&mut memory, 0, P3, HEADROOM / 1_000);
    let refused = Admission::Refused(DropReason::HeadroomOverrun);
    assert_eq!(memory.admit(port(0), P3, FRAME), refused);
    assert_eq!(memory.admit(port(1), P3, FRAME), Admission::Taken, "others are untouched");
    assert_eq!(named(&memory, 0, "pg3_shared_watermark"), 20_000);
    assert_eq!(named(&memory, 0, "pg3_headroom_watermark"), HEADROOM);
}

/// PFC-02.
#[test]
fn speech_is_given_back_below_the_threshold_by_the_hysteresis_and_not_before() {
    let mut memory = memory(numbers()).unwrap();
    fill(&mut memory, 0, P3, 22 + 5);
    for released in 1..=7 {
        memory.release(port(0), P3, FRAME);
        assert_eq!(memory.demands(port(0)), 1 << 3, "after {released}");
    }
    memory.release(port(0), P3, FRAME);
    assert_eq!(memory.demands(port(0)), 0, "17 000 shared");
}

/// PFC-03.
#[test]
fn a_headroom_pool_is_taken_by_all_and_the_last_to_come_is_dropped() {
    let headroom_pool = Some(Bytes::new(25_000));
    let mut memory = memory(PoolParams { headroom_pool, ..numbers() }).unwrap();
    for input in 0..3 {
        fill(&mut memory, input, P3, 22);
    }
    fill(&mut memory, 0, P3, 10);
    fill(&mut memory, 1, P3, 10);
    fill(&mut memory, 2, P3, 5);
    let refused = Admission::Refused(DropReason::HeadroomOverrun);
    assert_eq!(memory.admit(port(2), P3, FRAME), refused);
    assert_eq!(named(&memory, 0, "headroom_pool_watermark"), 25_000);
    assert_eq!(named(&memory, 2, "pg3_headroom_watermark"), 5_000);
}

#[test]
fn a_dynamic_threshold_is_the_free_share_by_two_to_the_shift() {
    // 200 000 less 32 reserves of 2000 and four headrooms of 10 000 leave 96 000.
    let threshold = Threshold::Shift(1);
    let mut memory = memory(PoolParams { threshold, ..numbers() }).unwrap();
    assert_eq!(memory.threshold(), Bytes::new(48_000));
    // x ≥ (96 − x) / 2 at 32.
    fill(&mut memory, 0, P3, 2 + 31);
    assert_eq!(memory.demands(port(0)), 0);
    fill(&mut memory, 0, P3, 1);
    assert_eq!(memory.demands(port(0)), 1 << 3);
    // A second one gets half of what the first has left.
    fill(&mut memory, 1, P3, 2 + 21);
    assert_eq!(memory.demands(port(1)), 0);
    fill(&mut memory, 1, P3, 1);
    assert_eq!(memory.demands(port(1)), 1 << 3);
}

/// QOS-06, the input's half; QOS-09.
#[test]
fn a_lossy_priority_is_dropped_at_its_threshold_without_a_pause() {
    let mut memory = memory(numbers()).unwrap();
    fill(&mut memory, 0, P0, 22);
    assert_eq!(memory.admit(port(0), P0, FRAME), Admission::Refused(DropReason::BufferFull));
    assert_eq!(memory.demands(port(0)), 0);
    assert!(memory.take_changed().is_empty());
    let joins = |lane, standing| memory.may_join(port(0), lane, FRAME, Bytes::new(standing));
    assert!(joins(P0, 4_000) && !joins(P0, 4_001) && joins(P3, 100_000));
}

/// QOS-07.
#[test]
fn a_reserve_is_there_however_greedy_the_others_are() {
    let mut memory = memory(PoolParams { threshold: Threshold::Shift(0), ..numbers() }).unwrap();
    for input in 0..3 {
        for lane in (0..8).map(VirtualLane::truncate) {
            while memory.admit(port(input), lane, FRAME) == Admission::Taken {}
        }
    }
    fill(&mut memory, 3, P0, 2);
    fill(&mut memory, 3, P3, 2);
    assert_eq!(memory.demands(port(3)), 0);
}

/// QOS-08.
#[test]
fn watermarks_stay_until_they_are_taken_anew() {
    let mut memory = memory(numbers()).unwrap();
    fill(&mut memory, 0, P3, 10);
    for _ in 0..10 {
        memory.release(port(0), P3, FRAME);
    }
    assert_eq!(named(&memory, 0, "pg3_shared_watermark"), 8_000);
    assert_eq!(named(&memory, 0, "buffer_pool_watermark"), 10_000);
    memory.clear_watermarks();
    assert_eq!(named(&memory, 0, "pg3_shared_watermark"), 0);
    assert_eq!(named(&memory, 0, "buffer_pool_watermark"), 0);
}

/// QOS-10.
#[test]
fn numbers_that_cannot_hold_are_refused() {
    let with = |change: fn(&mut PoolParams)| {
        let mut pool = numbers();
        change(&mut pool);
        memory(pool).err()
    };
    let taken = Bytes::new(32 * 2_000 + 4 * HEADROOM);
    let size = taken;
    let expected = MemoryError::Pool { size, taken };
    assert_eq!(with(|pool| pool.size = Bytes::new(104_000)), Some(expected));
    let pool = with(|pool| pool.headroom_pool = Some(Bytes::new(9_999)));
    assert!(matches!(pool, Some(MemoryError::HeadroomPool { .. })));
    let threshold = with(|pool| pool.threshold = Threshold::Octets(Bytes::new(3_000)));
    assert!(matches!(threshold, Some(MemoryError::Hysteresis { .. })));
    let none = MemoryConfig::default();
    let room = Room { ingress: &ingress(4), numbers: &none };
    let needed = Bytes::new(1250 + 2 * 1518 + 64);
    let expected = MemoryError::Headroom { port: port(0), given: Bytes::ZERO, needed };
    assert_eq!(SharedPool::of(room, numbers()).err(), Some(expected));
}

proptest! {
    /// What is held is what came in and did not go, and an empty memory asks for nothing.
    #[test]
    fn the_account_closes(
        shift in 0u8..4,
        pooled in any::<bool>(),
        frames in proptest::collection::vec((0usize..4, 0u8..8, 1u64..1_600, any::<bool>()), 1..400),
    ) {
        let headroom_pool = pooled.then_some(Bytes::new(15_000));
        let threshold = Threshold::Shift(shift);
        let mut memory = memory(PoolParams { threshold, headroom_pool, ..numbers() }).unwrap();
        let mut held = std::collections::VecDeque::new();
        for (input, lane, size, go) in frames {
            let frame = (port(input), VirtualLane::truncate(lane), Bytes::new(size));
            if memory.admit(frame.0, frame.1, frame.2) == Admission::Taken {
                held.push_back(frame);
            }
            if go && let Some((input, lane, size)) = held.pop_front() {
                memory.release(input, lane, size);
            }
            let sum: u64 = held.iter().map(|frame| frame.2.get()).sum();
            prop_assert_eq!(memory.held.get().get(), sum);
            prop_assert!(memory.shared <= memory.shared_size);
            prop_assert!(memory.headroom.get() <= memory.headroom_size);
        }
        for (input, lane, size) in held {
            memory.release(input, lane, size);
        }
        prop_assert_eq!(memory.held.get(), Bytes::ZERO);
        prop_assert_eq!((memory.shared, memory.headroom.get()), (Bytes::ZERO, Bytes::ZERO));
        prop_assert!((0..4).all(|input| memory.demands(port(input)) == 0));
    }
}
