//! A bad path between daemons: it loses every hundredth datagram and delays each by 0 to 20 ms, so that many overtake.
//!
//! Daemons join their launcher through this test, which passes every line on. In the start message it replaces the address of
//! the other daemon by that of a socket of its own.

use super::joining::{Guest, TOKEN, waiting_with};
use super::laboratory::{Ended, Running};
use emulation::clock::monotonic_ns;
use emulation::timer;
use proto::random::Random;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// One datagram of so many is lost.
const LOST_OF: u64 = 100;
const DELAY_MAX_NS: u64 = 20_000_000;
const POLL_NS: u64 = 200_000;

/// Two daemons, their launcher, and the path between them.
pub struct LossyPath {
    launcher: Running,
    _guests: [Guest; 2],
    over: Arc<AtomicBool>,
    relay: JoinHandle<u64>,
}

/// The sockets by process: to the first, process 0 sends what is for process 1.
type Sockets = [Arc<UdpSocket>; 2];
/// The real addresses of both daemons, once they are known.
type Addresses = Arc<Mutex<[Option<SocketAddr>; 2]>>;

fn on_loopback() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
    socket.set_nonblocking(true).expect("a socket");
    socket
}

impl LossyPath {
    /// Starts a run of `file` by daemons that join, one for adapters and one for switches.
    pub fn start(file: &Path, words: &[&str]) -> LossyPath {
        let (launcher, address) = waiting_with(file, &[&["--backend", "remote"], words].concat());
        let sockets: Sockets = [0, 1].map(|_| Arc::new(on_loopback()));
        let addresses = Addresses::default();
        let over = Arc::new(AtomicBool::new(false));
        let guests = [("nicd", 0), ("switchd", 1)].map(|(role, process)| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
            let at = listener.local_addr().expect("an address").to_string();
            let guest = Guest::join(role, &at, &process.to_string(), TOKEN);
            let daemon = listener.accept().expect("it joins").0;
            let launcher = TcpStream::connect(&address).expect("it waits");
            let own = sockets[process].local_addr().expect("an address").to_string();
            let known = Arc::clone(&addresses);
            pass(&daemon, &launcher, move |line| note_address(line, process, &known));
            pass(&launcher, &daemon, move |line| replace_peer(line, 1 - process, &own));
            guest
        });
        let stop = Arc::clone(&over);
        let relay = std::thread::spawn(move || relay(&sockets, &addresses, &stop));
        LossyPath { launcher, _guests: guests, over, relay }
    }

    /// Waits for the end of the run. Returns it, and how many datagrams the path lost.
    pub fn end(self, seconds: f64) -> (Ended, u64) {
        let ended = self.launcher.end(seconds);
        self.over.store(true, Ordering::Relaxed);
        (ended, self.relay.join().expect("the path does not panic"))
    }
}

/// Passes lines on, as `change` makes them, until either side closes.
fn pass(from: &TcpStream, to: &TcpStream, mut change: impl FnMut(&str) -> String + Send + 'static) {
    let from = BufReader::new(from.try_clone().expect("a descriptor"));
    let mut to = to.try_clone().expect("a descriptor");
    std::thread::spawn(move || {
        for line in from.lines().map_while(Result::ok) {
            if to.write_all((change(&line) + "\n").as_bytes()).is_err() {
                break;
            }
        }
        // The other side learns of the end.
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
}

fn note_address(line: &str, process: usize, known: &Addresses) -> String {
    let message: Option<Value> =
        line.starts_with("{\"hello\"").then(|| serde_json::from_str(line).expect("JSON"));
    if let Some(message) = message {
        let address = message["hello"]["address"].as_str().expect("an address");
        let address = address.parse().expect("an address with a port");
        known.lock().expect("no panic")[process] = Some(address);
    }
    line.to_owned()
}

fn replace_peer(line: &str, peer: usize, by: &str) -> String {
    if !line.starts_with("{\"start\"") {
        return line.to_owned();
    }
    let mut message: Value = serde_json::from_str(line).expect("JSON");
    message["start"]["peers"][peer] = Value::from(by);
    message.to_string()
}

/// Passes datagrams on. Returns how many it lost.
fn relay(sockets: &Sockets, addresses: &Addresses, over: &AtomicBool) -> u64 {
    let mut random = Random::stream(1, "path", "relay");
    let mut waiting: Vec<(u64, usize, Vec<u8>)> = Vec::new();
    let mut room = vec![0; 1 << 16];
    let mut lost = 0;
    while !over.load(Ordering::Relaxed) {
        let now = monotonic_ns();
        for (side, socket) in sockets.iter().enumerate() {
            while let Ok(length) = socket.recv(&mut room) {
                if random.chance(1, LOST_OF) {
                    lost += 1;
                } else {
                    let due = now + random.below(DELAY_MAX_NS);
                    waiting.push((due, 1 - side, room[..length].to_vec()));
                }
            }
        }
        let known = *addresses.lock().expect("no panic");
        for (_, to, octets) in waiting.extract_if(.., |(due, ..)| *due <= now) {
            if let Some(address) = known[to] {
                // A daemon that has ended takes nothing.
                let _ = sockets[to].send_to(&octets, address);
            }
        }
        timer::wait(None, now + POLL_NS);
    }
    lost
}
