//! Datagram sockets on the real kernel.

use super::*;
use crate::cable::udp;
use std::net::{IpAddr, Ipv4Addr};

fn open() -> (DatagramSocket, Peer) {
    let socket = udp::open(IpAddr::V4(Ipv4Addr::LOCALHOST)).expect("loopback is there");
    let peer = udp::peer(socket.address()).expect("its own address");
    (socket, peer)
}

#[test]
fn a_datagram_arrives_with_its_sender() {
    let (sender, source) = open();
    let (mut receiver, target) = open();
    let sent = sender.send([(&target, &b"one"[..]), (&target, b"")].into_iter());
    assert_eq!(sent.expect("loopback takes it"), 2);
    let mut seen = vec![];
    receiver.receive(|datagram| {
        assert_eq!((datagram.source, datagram.cut), (source.key(), false));
        seen.push(datagram.octets.to_vec());
    });
    assert_eq!(seen, [b"one".to_vec(), vec![]]);
    assert_eq!(receiver.receive(|_| panic!("nothing is left")), 0);
}

#[test]
fn what_a_full_buffer_drops_the_kernel_has_counted() {
    let (sender, _) = open();
    let (mut receiver, target) = open();
    receiver.socket.set_recv_buffer_size(1).expect("the least there is");
    let octets = [0; 1_000];
    for _ in 0..200 {
        let sent = sender.send(std::iter::once((&target, &octets[..])));
        assert_eq!(sent.expect("loopback takes it"), 1);
    }
    let mut received = 0;
    loop {
        match receiver.receive(|_| {}) {
            0 => break,
            count => received += count,
        }
    }
    assert!((1..200).contains(&received), "{received} of 200");
    assert_eq!(received + receiver.overflows() as usize, 200);
}
