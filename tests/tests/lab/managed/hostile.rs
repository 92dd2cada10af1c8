//! Programs that break the protocol of libumad2sim.

use super::{Managed, SMALL};
use crate::laboratory::eventually;
use emulation::cable::abstract_socket::{AbstractSocket, Sent};
use emulation::timer;
use std::os::fd::AsFd;

const CONNECT: u32 = 1;
const NODE_INFO: u32 = 7;
const REFUSED: u32 = 0;
const CONTROL: usize = 80;
const DATA: usize = 288;

/// A program with this number in the names of its sockets.
struct RawClient {
    base: String,
    control: AbstractSocket,
    data: AbstractSocket,
}

impl RawClient {
    fn new(base: &str, id: u32) -> RawClient {
        let bind = |way: &str| AbstractSocket::bind(&format!("{base}:{way}{id}"));
        let [control, data] = ["ctl", "in"].map(|way| bind(way).expect("a free name"));
        RawClient { base: base.to_owned(), control, data }
    }

    /// The type and the first octets of data of the answer to a request.
    fn ask(&self, kind: u32, data: &[u8]) -> (u32, [u8; 64]) {
        let mut message = [0xdead_beef, 0, kind, 64].map(u32::to_ne_bytes).as_flattened().to_vec();
        message.extend(data);
        message.resize(CONTROL, 0);
        assert_eq!(self.control.send(&message, &format!("{}:ctl", self.base)), Sent::Whole);
        timer::wait(Some(self.control.as_fd()), emulation::clock::monotonic_ns() + 10_000_000_000);
        let mut answer = [0; CONTROL];
        assert!(self.control.receive(&mut answer).is_some(), "an answer within ten seconds");
        let kind = u32::from_ne_bytes(*answer[8..].first_chunk().expect("four octets"));
        (kind, *answer[16..].first_chunk().expect("64 octets"))
    }

    /// Attaches it beside h1, and returns the name of its socket at the server.
    fn connect(&self) -> String {
        let (kind, data) = self.ask(CONNECT, &connection());
        assert_eq!(kind, CONNECT);
        let slot = u32::from_ne_bytes(*data.first_chunk().expect("four octets"));
        format!("{}:out{slot}", self.base)
    }
}

/// The data of CONNECT to h1.
fn connection() -> [u8; 44] {
    let mut data = [0; 44];
    data[12..14].copy_from_slice(b"h1");
    data
}

/// A Get of NodeInfo by directed route, out of port 1, with a transaction.
fn request(transaction: u32) -> [u8; DATA] {
    let mut octets = [0; DATA];
    octets[..2].copy_from_slice(&[0xff; 2]);
    octets[24..32].copy_from_slice(&256u64.to_be_bytes());
    let datagram = &mut octets[32..];
    datagram[..8].copy_from_slice(&[1, 0x81, 1, 1, 0, 0, 0, 1]);
    datagram[12..16].copy_from_slice(&transaction.to_be_bytes());
    datagram[17] = 0x11;
    datagram[32..36].copy_from_slice(&[0xff; 4]);
    datagram[129] = 1;
    octets
}

#[test]
fn programs_that_break_the_protocol_harm_no_other() {
    let lab = Managed::up(SMALL, &[]);
    let base = lab.record().daemon_of("h1").and_then(|daemon| daemon.clients.clone());
    let base = base.expect("a managed lab");
    let flood = RawClient::new(&base, 4_000_001);
    let out = flood.connect();
    // It sends as fast as the server takes messages, and reads nothing.
    let mut sent = 0;
    let flooded = eventually(20.0, || {
        while sent < 6_000 && flood.data.send(&request(sent), &out) == Sent::Whole {
            sent += 1;
        }
        sent == 6_000
    });
    assert!(flooded, "only {sent} messages were taken");
    // The server's socket may still be full.
    let send = |socket: &AbstractSocket, octets: &[u8], to: &str| {
        assert!(eventually(20.0, || socket.send(octets, to) == Sent::Whole), "{to} takes nothing");
    };
    for length in [0, 1, CONTROL, DATA - 1] {
        send(&flood.data, &vec![0xaa; length], &out);
        send(&flood.control, &vec![0xaa; length], &format!("{base}:ctl"));
    }
    send(&flood.control, &request(1), &out);
    let good = RawClient::new(&base, 4_000_002);
    good.connect();
    let (kind, info) = good.ask(NODE_INFO, &[]);
    assert_eq!((kind, info[..4].to_vec()), (NODE_INFO, vec![1, 1, 1, 1]));
    assert!(eventually(20.0, || lab.count(|count| count.malformed) == 9), "{:?}", lab.counts());
    assert!(eventually(20.0, || lab.count(|count| count.overrun) > 0), "{:?}", lab.counts());
    // The answers to a program that has gone have no receiver.
    drop(flood);
    assert!(eventually(20.0, || lab.count(|count| count.left) == 1), "{:?}", lab.counts());
    if nix::unistd::geteuid().is_root() {
        let refused = std::thread::spawn(move || {
            // Of this thread alone.
            let user = crate::place::ORDINARY;
            // SAFETY: no memory is passed.
            let set = unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
            assert_eq!(set, 0);
            RawClient::new(&base, 4_000_003).ask(CONNECT, &connection()).0
        });
        assert_eq!(refused.join().expect("no panic"), REFUSED);
        assert_eq!(lab.count(|count| count.refused), 1);
    }
    assert_eq!(good.ask(NODE_INFO, &[]).0, NODE_INFO);
    let status = lab.place.json(&["status", "--json"]);
    assert_eq!(status["m"]["state"], "up");
    lab.place.down("m");
    lab.place.assert_empty();
}
