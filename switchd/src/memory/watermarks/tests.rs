//! Marks of a buffer for each input and of one memory for all: XOFF, XON, drops and refused headroom.

use super::*;
use crate::config::MemoryConfig;
use crate::memory::ingress::ingress;

const P3: VirtualLane = VirtualLane::truncate(3);
const P0: VirtualLane = VirtualLane::ZERO;

fn port(index: usize) -> PortNumber {
    PortNumber::from_index(index)
}

fn memory(headroom: u64) -> Result<Watermarks, MemoryError> {
    let numbers = MemoryConfig { headroom: Bytes::new(headroom), ..MemoryConfig::default() };
    Watermarks::per_input(Room { ingress: &ingress(2), numbers: &numbers })
}

#[test]
fn an_input_pauses_at_its_mark_and_resumes_at_half_of_it() {
    let mut memory = memory(15_000).unwrap();
    let frame = Bytes::new(1_000);
    for _ in 0..134 {
        assert_eq!(memory.admit(port(0), P3, frame), Admission::Taken);
    }
    assert!(memory.take_changed().is_empty() && memory.demands(port(0)) == 0);
    assert_eq!(memory.admit(port(0), P3, frame), Admission::Taken);
    assert_eq!(memory.take_changed().first_from(0), Some(port(0)));
    assert_eq!((memory.demands(port(0)), memory.demands(port(1))), (1 << 3, 0));
    for _ in 0..67 {
        memory.release(port(0), P3, frame);
    }
    assert_eq!(memory.demands(port(0)), 1 << 3, "68 000 of 135 000 is above half");
    memory.release(port(0), P3, frame);
    assert_eq!(memory.demands(port(0)), 0);
    assert_eq!(memory.held(port(0), P3), Bytes::new(67_000));
}

#[test]
fn beyond_the_buffer_a_lossless_frame_is_an_alarm_and_a_lossy_one_ends_at_the_mark() {
    let mut memory = memory(15_000).unwrap();
    assert_eq!(memory.admit(port(0), P0, Bytes::new(135_000)), Admission::Taken);
    let refused = memory.admit(port(0), P0, Bytes::new(64));
    assert_eq!(refused, Admission::Refused(DropReason::BufferFull));
    assert_eq!(memory.admit(port(0), P3, Bytes::new(15_000)), Admission::Taken);
    let refused = memory.admit(port(0), P3, Bytes::new(64));
    assert_eq!(refused, Admission::Refused(DropReason::HeadroomOverrun));
}

#[test]
fn a_lossy_priority_has_a_reserve_that_lossless_ones_cannot_fill() {
    let numbers = MemoryConfig { headroom: Bytes::new(15_000), ..MemoryConfig::default() };
    for make in [Watermarks::per_input, Watermarks::global] {
        let mut memory = make(Room { ingress: &ingress(2), numbers: &numbers }).unwrap();
        let (cnp, lossy) = (Bytes::new(64), VirtualLane::truncate(6));
        // 1 KB less than the mark of an input, and of the pool of both.
        let full = Bytes::new(if memory.is_global { 269_000 } else { 134_000 });
        assert_eq!(memory.admit(port(0), P3, full), Admission::Taken);
        // Below the mark a frame of a lossy priority is in the pool.
        assert_eq!(memory.admit(port(0), lossy, Bytes::new(1000)), Admission::Taken);
        assert_eq!(memory.demands(port(0)), 1 << 3);
        // From the mark on it is in the reserve, which ends at 4 KiB for each input and priority.
        for _ in 0..48 {
            assert_eq!(memory.admit(port(0), lossy, cnp), Admission::Taken);
        }
        let refused = Admission::Refused(DropReason::BufferFull);
        assert_eq!(memory.admit(port(0), lossy, cnp), refused);
        assert_eq!(memory.held(port(0), lossy), Bytes::new(1000 + 48 * 64));
        let others = [(port(0), P0), (port(1), lossy)];
        for (input, lane) in others {
            assert_eq!(memory.admit(input, lane, cnp), Admission::Taken);
        }
        // The reserve takes no headroom.
        let headroom = Bytes::new(if memory.is_global { 30_000 } else { 15_000 });
        assert_eq!(memory.admit(port(0), P3, headroom), Admission::Taken);
        let refused = Admission::Refused(DropReason::HeadroomOverrun);
        assert_eq!(memory.admit(port(0), P3, cnp), refused);
        // All is released, and half of the pool is free for other frames.
        memory.release(port(0), lossy, Bytes::new(1000));
        (0..48).for_each(|_| memory.release(port(0), lossy, cnp));
        others.into_iter().for_each(|(input, lane)| memory.release(input, lane, cnp));
        memory.release(port(0), P3, headroom);
        memory.release(port(0), P3, full);
        assert!(memory.pools.iter().all(|pool| pool.held.get() == Bytes::ZERO));
        assert!(memory.inputs.iter().all(|input| input.reserved == [Bytes::ZERO; 8]));
        assert_eq!(memory.demands(port(0)), 0);
    }
}

#[test]
fn a_lossy_priority_that_overloads_its_input_ends_at_the_mark_as_before() {
    let mut memory = memory(15_000).unwrap();
    let frame = Bytes::new(1_000);
    let taken = (0..200).filter(|_| memory.admit(port(0), P0, frame) == Admission::Taken).count();
    assert_eq!(taken, 135);
    assert_eq!(memory.inputs[0].reserved, [Bytes::ZERO; 8]);
}

/// QOS-10.
#[test]
fn too_little_headroom_is_refused_with_the_figure_that_holds() {
    // 1 us on the cable is 1250 octets; three frames and a control frame.
    let needed = Bytes::new(1250 + 3 * 1518 + 64);
    assert!(memory(needed.get()).is_ok());
    for given in [0, needed.get() - 1] {
        let given = Bytes::new(given);
        let expected = MemoryError::Headroom { port: port(0), given, needed };
        assert_eq!(memory(given.get()).err(), Some(expected));
    }
    assert!(matches!(memory(150_000), Err(MemoryError::Buffer { .. })));
}

#[test]
fn one_input_that_fills_the_memory_pauses_all_until_half_is_free() {
    let numbers = MemoryConfig { headroom: Bytes::new(15_000), ..MemoryConfig::default() };
    let room = Room { ingress: &ingress(4), numbers: &numbers };
    let mut memory = Watermarks::global(room).unwrap();
    let (lane, frame) = (VirtualLane::truncate(3), Bytes::new(1_000));
    let ports: Vec<_> = (0..4).map(PortNumber::from_index).collect();
    for _ in 0..539 {
        assert_eq!(memory.admit(ports[0], lane, frame), Admission::Taken);
    }
    assert!(ports.iter().all(|port| memory.demands(*port) == 0));
    assert_eq!(memory.admit(ports[1], lane, frame), Admission::Taken);
    assert_eq!(memory.take_changed().iter().collect::<Vec<_>>(), ports);
    assert!(ports.iter().all(|port| memory.demands(*port) == 1 << 3));
    // What was under way still comes in, up to N·M.
    for _ in 0..60 {
        assert_eq!(memory.admit(ports[2], lane, frame), Admission::Taken);
    }
    let beyond = memory.admit(ports[2], lane, frame);
    assert_eq!(beyond, Admission::Refused(DropReason::HeadroomOverrun));
    for _ in 0..329 {
        memory.release(ports[0], lane, frame);
    }
    assert_eq!(memory.demands(ports[3]), 1 << 3, "271 000 of 540 000");
    memory.release(ports[0], lane, frame);
    assert_eq!(memory.demands(ports[3]), 0);
}
