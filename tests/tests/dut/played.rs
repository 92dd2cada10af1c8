//! Devices that a test plays at pairs of socket files, each with one fault or several.

use proto::ids::MacAddress;
use proto::wire::internet::{Arp, ArpOperation};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use verbs::VERSION;
use verbs::answer::Answer;
use verbs::line::{NumberedAnswer, NumberedCall, Outcome, line};

/// What is played.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Played {
    /// Every frame goes to every other port. It learns nothing, removes pads and forwards pauses.
    Hub,
    /// A hub that changes the last octet.
    Editor,
    /// It takes frames and sends none.
    Silent,
    /// It sends more than anyone asked for.
    Flooder,
    /// Its sockets are gone.
    Gone,
}

/// A device and its DUT file.
pub struct Device {
    pub file: String,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

const PORTS: usize = 3;

impl Device {
    pub fn start(folder: &Path, played: Played) -> Device {
        let place = |port: usize, end: &str| folder.join(format!("p{port}.{end}"));
        let pair = |port| {
            format!("\"{}={}\"", place(port, "tester").display(), place(port, "device").display())
        };
        let ports: Vec<String> = (0..PORTS).map(pair).collect();
        let text = format!(
            "[dut]\nname = \"played\"\nkind = \"ethernet-switch\"\n[device]\nreach = \"sockets\"\n\
             ports = [{}]\n[tolerance]\npatience = \"300 ms\"\n",
            ports.join(", ")
        );
        let file = folder.join("played.toml");
        fs::write(&file, text).expect("a file");
        let over = Arc::new(AtomicBool::new(false));
        let thread = (played != Played::Gone).then(|| {
            let bind = |port| UnixDatagram::bind(place(port, "device")).expect("a free path");
            let sockets: Vec<UnixDatagram> = (0..PORTS).map(bind).collect();
            let testers: Vec<PathBuf> = (0..PORTS).map(|port| place(port, "tester")).collect();
            let over = Arc::clone(&over);
            std::thread::spawn(move || play(played, &sockets, &testers, &over))
        });
        Device { file: file.display().to_string(), over, thread }
    }

    /// A NIC whose agent ends after its greeting. It answers ARP if `is_alive`.
    pub fn without_agent(folder: &Path, is_alive: bool) -> Device {
        let place = |end: &str| folder.join(format!("nic.{end}"));
        let (tester, device, agent) = (place("tester"), place("device"), place("agent"));
        let text = format!(
            "[dut]\nname = \"played\"\nkind = \"roce-nic\"\n[device]\nreach = \"sockets\"\n\
             ports = [\"{}={}\"]\nagent = \"unix:{}\"\nmac = \"{ADAPTER}\"\n\
             address = \"198.18.0.1\"\n[tolerance]\npatience = \"300 ms\"\n",
            tester.display(),
            device.display(),
            agent.display()
        );
        let file = folder.join("played.toml");
        fs::write(&file, text).expect("a file");
        let socket = UnixDatagram::bind(&device).expect("a free path");
        socket.set_read_timeout(Some(Duration::from_millis(1))).expect("an option");
        let agent = UnixListener::bind(&agent).expect("a free path");
        agent.set_nonblocking(true).expect("an option");
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut room = [0; 2048];
            while !ends.load(Ordering::Acquire) {
                if let Ok((stream, _)) = agent.accept() {
                    greet(stream);
                }
                let Ok(length) = socket.recv(&mut room) else { continue };
                if let Some(reply) = arp_reply(&room[..length]).filter(|_| is_alive) {
                    // The tester may have ended.
                    let _ = socket.send_to(&reply, &tester);
                }
            }
        });
        Device { file: file.display().to_string(), over, thread: Some(thread) }
    }
}

const ADAPTER: MacAddress = MacAddress::from_number(0x0200_0000_0001);

/// Answers one call.
fn greet(stream: UnixStream) {
    stream.set_nonblocking(false).expect("an option");
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let call = lines.find(|line| !line.is_empty()).expect("the tester greets");
    let NumberedCall { id, .. } = serde_json::from_str(&call).expect("a call");
    let hello = Answer::Hello { version: VERSION, agent: "played".to_owned(), devices: vec![] };
    let answer = line(&NumberedAnswer { id, outcome: Outcome::Answer(hello) });
    (&stream).write_all(&answer).expect("the tester listens");
}

fn arp_reply(octets: &[u8]) -> Option<Vec<u8>> {
    let asked = Arp::parse(octets.get(14..)?).ok()?;
    let reply = Arp {
        operation: ArpOperation::Reply,
        sender_hardware: ADAPTER,
        sender_protocol: asked.target_protocol,
        target_hardware: asked.sender_hardware,
        target_protocol: asked.sender_protocol,
        ..asked
    };
    Some([&octets[6..12], &ADAPTER.octets(), &[8, 6], &reply.to_octets()].concat())
}

impl Drop for Device {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the played device does not panic");
        }
    }
}

fn play(played: Played, sockets: &[UnixDatagram], testers: &[PathBuf], over: &AtomicBool) {
    for socket in sockets {
        socket.set_read_timeout(Some(Duration::from_millis(1))).expect("an option");
        socket.set_write_timeout(Some(Duration::from_millis(5))).expect("an option");
    }
    let mut room = [0; 16_384];
    while !over.load(Ordering::Acquire) {
        for (port, socket) in sockets.iter().enumerate() {
            let Ok(length) = socket.recv(&mut room) else { continue };
            let mut octets = room[..length].to_vec();
            if played == Played::Hub && length == 60 {
                octets.truncate(59);
            }
            if played == Played::Editor
                && let Some(last) = octets.last_mut()
            {
                *last ^= 1;
            }
            let copies = if played == Played::Flooder { 60_000 } else { 1 };
            let targets = (0..PORTS).filter(|other| *other != port && played != Played::Silent);
            for other in targets {
                for _ in 0..copies {
                    // The tester may have ended.
                    if sockets[other].send_to(&octets, &testers[other]).is_err() {
                        break;
                    }
                }
            }
        }
    }
}
