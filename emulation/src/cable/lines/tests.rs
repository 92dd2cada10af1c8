//! A row of three nodes, seen from each process.

use super::*;
use crate::wiring::{LinkWiring, NodeKind, NodeWiring};

fn port(number: u8) -> PortNumber {
    PortNumber::new(number).expect("a port number")
}

/// n0:1 – n1:1, n1:2 – n2:1
fn row() -> Wiring {
    let node = |name: &str, ports| NodeWiring {
        name: name.to_owned(),
        kind: NodeKind::Nic,
        ports,
        level: 0,
    };
    let link = |a: (usize, u8), b: (usize, u8)| LinkWiring {
        a: End { node: a.0, port: port(a.1) },
        b: End { node: b.0, port: port(b.1) },
        delay: Duration::from_ns(1),
        frame_time: Duration::from_ns(2048),
    };
    Wiring {
        nodes: vec![node("n0", 1), node("n1", 2), node("n2", 1)],
        links: vec![link((0, 1), (1, 1)), link((1, 2), (2, 1))],
        ..Wiring::default()
    }
}

#[test]
fn each_process_knows_its_own_ends_by_its_own_device_numbers() {
    let hosts = [0, 1, 1];
    let first = Lines::new(&row(), &hosts, 0, true).expect("a good wiring");
    let second = Lines::new(&row(), &hosts, 1, true).expect("a good wiring");
    let out = first.outgoing(0, port(1)).expect("a cable");
    assert_eq!((out.link, out.end, out.to), (0, SendingEnd::A, Destination::Process(1)));
    let back = first.incoming(0, SendingEnd::B).expect("the way back");
    assert_eq!((back.process, back.device, back.port), (1, 0, port(1)));
    assert_eq!(first.incoming(0, SendingEnd::A), None);

    let inner = second.outgoing(0, port(2)).expect("a cable");
    assert_eq!(inner.to, Destination::Device { device: 1, port: port(1) });
    assert_eq!(second.incoming(1, SendingEnd::A), None, "memory does not use the socket");
}

#[test]
fn without_local_cables_a_process_talks_to_itself_through_the_socket() {
    let lines = Lines::new(&row(), &[0, 1, 1], 1, false).expect("a good wiring");
    assert_eq!(lines.outgoing(0, port(2)).expect("a cable").to, Destination::Process(1));
    assert_eq!(lines.incoming(1, SendingEnd::A).expect("it comes back").process, 1);
}

#[test]
fn a_wiring_that_contradicts_itself_is_refused() {
    let refused = |wiring: Wiring, hosts: &[usize]| {
        Lines::new(&wiring, hosts, 0, false).expect_err("refused").to_string()
    };
    assert_eq!(refused(row(), &[0]), "1 hosts are named for 3 nodes");
    let mut beyond = row();
    beyond.links[1].b.port = port(2);
    let error = refused(beyond, &[0, 0, 0]);
    assert_eq!(error, "link 1 ends at port 2 of node 2, which does not exist");
    let mut twice = row();
    twice.links[1].a.port = port(1);
    let error = refused(twice, &[0, 0, 0]);
    assert_eq!(error, "link 1 ends at n1:1, where another link already is");
}
