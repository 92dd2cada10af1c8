//! Receivers that are full, closed, or too small.

use super::*;
use crate::cable::lines::Destination;
use crate::cable::unix;
use bytes::BytesMut;
use proto::frame::FrameKind;
use proto::units::Duration;

const LINE: Outgoing = Outgoing {
    link: 0,
    end: SendingEnd::A,
    to: Destination::Process(1),
    delay: Duration::ZERO,
    frame_time: Duration::from_ns(2_000),
};

/// Two processes' sockets, and an outbox of the first whose datagrams hold one frame each.
fn pair(directory: &std::path::Path) -> (DatagramSocket, DatagramSocket, Outbox) {
    let open = |process| unix::open(directory, process).expect("a fresh directory");
    let (ours, theirs) = (open(0), open(1));
    let peer = |socket: &DatagramSocket| unix::peer(socket.address()).expect("its own address");
    let outbox = Outbox::new(1, 100, vec![peer(&ours), peer(&theirs)], 2);
    (ours, theirs, outbox)
}

fn frame(octets: usize) -> Frame {
    Frame::intact(FrameKind::Ethernet, BytesMut::zeroed(octets))
}

fn sequences(socket: &mut DatagramSocket) -> Vec<u32> {
    let mut seen = vec![];
    while socket.receive(|datagram| {
        seen.push(Shim::parse(datagram.octets).expect("our own shim").sequence);
    }) > 0
    {}
    seen
}

#[test]
fn what_a_full_receiver_refuses_waits_and_arrives_later_in_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let (ours, mut theirs, mut outbox) = pair(directory.path());
    let frames = 2_000u32;
    (0..frames).for_each(|_| outbox.put(&LINE, 1, &frame(64), Instant::ZERO));
    outbox.flush(&ours);
    assert!(outbox.waiting(), "no Unix socket queues two thousand datagrams");
    let mut seen = vec![];
    while outbox.waiting() {
        seen.append(&mut sequences(&mut theirs));
        outbox.flush(&ours);
    }
    seen.append(&mut sequences(&mut theirs));
    assert_eq!(seen, (0..frames).collect::<Vec<_>>());
    let counts = outbox.counts;
    assert!(counts.deferred > 0, "{counts:?}");
    let rest = SendCounts { deferred: 0, ..counts };
    let all_sent = SendCounts { datagrams: u64::from(frames), ..SendCounts::default() };
    assert_eq!(rest, all_sent);
}

#[test]
fn one_full_receiver_does_not_hold_up_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut ours, _theirs, mut outbox) = pair(directory.path());
    (0..1_000).for_each(|_| outbox.put(&LINE, 1, &frame(64), Instant::ZERO));
    let to_us = Outgoing { end: SendingEnd::B, to: Destination::Process(0), ..LINE };
    outbox.put(&to_us, 0, &frame(64), Instant::ZERO);
    outbox.flush(&ours);
    assert!(outbox.waiting());
    assert_eq!(sequences(&mut ours), [0]);
}

#[test]
fn frames_for_a_receiver_that_is_gone_are_given_up_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let (ours, theirs, mut outbox) = pair(directory.path());
    drop(theirs);
    (0..3).for_each(|_| outbox.put(&LINE, 1, &frame(64), Instant::ZERO));
    outbox.flush(&ours);
    assert!(!outbox.waiting());
    let errors = 3 * u64::from(TRIES_MAX);
    assert_eq!(outbox.counts, SendCounts { unsent: 3, errors, ..SendCounts::default() });
    let sent = outbox.sent(&LINE);
    assert_eq!(sent.sent.total(), 3, "their sequence numbers are used up");
}

#[test]
fn frames_beyond_the_backlog_are_given_up_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_ours, _theirs, mut outbox) = pair(directory.path());
    // The last one waits in the open datagram.
    (0..BACKLOG_MAX + 3).for_each(|_| outbox.put(&LINE, 1, &frame(64), Instant::ZERO));
    assert_eq!(outbox.counts, SendCounts { unsent: 2, ..SendCounts::default() });
}

#[test]
fn a_frame_larger_than_any_datagram_is_counted_and_never_sent_in_pieces() {
    let directory = tempfile::tempdir().expect("a directory");
    let (ours, mut theirs, mut outbox) = pair(directory.path());
    outbox.put(&LINE, 1, &frame(69), Instant::ZERO);
    outbox.put(&LINE, 1, &frame(68), Instant::ZERO);
    outbox.flush(&ours);
    assert_eq!(outbox.counts.unsent, 1);
    assert_eq!(sequences(&mut theirs), [1]);
}
