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
