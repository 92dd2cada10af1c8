//! A relay between the tester and a device: each frame of either passes an editor, which may change, drop, hold or add frames.

use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The way of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the tester to the device.
    In,
    /// From the device to the tester.
    Out,
}

/// What an editor remembers.
#[derive(Default)]
pub struct State {
    pub ports: u8,
    /// Stations and their ports, from sources on the way in.
    pub known: HashMap<[u8; 6], u8>,
    /// Frames that wait for their successor, by port.
    pub held: HashMap<u8, Vec<u8>>,
    /// Frames that leave together, by port.
    pub bursts: HashMap<u8, Vec<Vec<u8>>>,
    /// Frames that wait for their successor, by source.
    pub stations: HashMap<[u8; 6], Vec<u8>>,
    /// Frames counted, by port.
    pub counts: HashMap<u8, u32>,
    /// The number of the device's queue pair.
    pub number: u32,
}

/// Frames to be sent: way, port, octets.
pub type Sends = Vec<(Way, u8, Vec<u8>)>;

/// Sends what shall become of a frame.
pub type Editor = fn(&mut State, Way, u8, Vec<u8>, &mut Sends);

/// An editor that changes nothing.
pub fn unaltered(_: &mut State, way: Way, port: u8, frame: Vec<u8>, sends: &mut Sends) {
    sends.push((way, port, frame));
}

struct End {
    socket: UnixDatagram,
    peer: PathBuf,
}

impl End {
    fn open(own: &Path, peer: PathBuf) -> io::Result<End> {
        let socket = UnixDatagram::bind(own)?;
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        socket.set_write_timeout(Some(Duration::from_millis(200)))?;
        Ok(End { socket, peer })
    }
}

struct Shared {
    editor: Mutex<(Editor, State)>,
    /// By port: the end towards the tester, and that towards the device.
    ends: Vec<(End, End)>,
    over: AtomicBool,
}

impl Shared {
    fn carry(&self, way: Way, port: u8) {
        let mut room = vec![0; 16_384];
        let ends = &self.ends[usize::from(port) - 1];
        let from = if way == Way::In { &ends.0 } else { &ends.1 };
        while !self.over.load(Ordering::Acquire) {
            let Ok(length) = from.socket.recv(&mut room) else { continue };
            let mut sends = Sends::new();
            // The lock is held while frames are sent, so those of one editor keep their order.
            let mut editor = self.editor.lock().unwrap_or_else(PoisonError::into_inner);
            let (edit, state) = &mut *editor;
            if way == Way::In && length >= 12 {
                state.ports = self.ends.len() as u8;
            }
            edit(state, way, port, room[..length].to_vec(), &mut sends);
            for (way, port, frame) in sends {
                let ends = &self.ends[usize::from(port) - 1];
                let to = if way == Way::In { &ends.1 } else { &ends.0 };
                // The tester has ended, or the device does not read.
                let _ = to.socket.send_to(&frame, &to.peer);
            }
        }
    }
}

/// A running relay.
pub struct Relay {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// The ports for a DUT file: pairs of socket files.
    pub ports: Vec<String>,
}

impl Relay {
    /// A relay with files in `folder`, to devices at these pairs of files: that which the device sends to, and that of the device.
    pub fn start(folder: &Path, devices: &[(PathBuf, PathBuf)]) -> Relay {
        let file = |port: usize, end: &str| folder.join(format!("r{port}.{end}"));
        let ends = devices.iter().enumerate().map(|(port, (own, device))| {
            let tester = End::open(&file(port, "relay"), file(port, "tester"));
            let device = End::open(own, device.clone());
            (tester.expect("a free path"), device.expect("a free path"))
        });
        let (ends, editor) = (ends.collect(), Mutex::new((unaltered as Editor, State::default())));
        let shared = Arc::new(Shared { editor, ends, over: AtomicBool::new(false) });
        let ways = (1..=devices.len() as u8).flat_map(|port| [(Way::In, port), (Way::Out, port)]);
        let threads = ways.map(|(way, port)| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                // Its own delays are not part of what the tester knows of its clock.
                emulation::timer::prepare_thread(true);
                shared.carry(way, port);
            })
        });
        let pair =
            |port| format!("{}={}", file(port, "tester").display(), file(port, "relay").display());
        let (threads, ports) = (threads.collect(), (0..devices.len()).map(pair).collect());
        Relay { shared, threads, ports }
    }

    /// From now on frames pass this editor.
    pub fn edit_by(&self, editor: Editor) {
        let mut place = self.shared.editor.lock().unwrap_or_else(PoisonError::into_inner);
        *place = (editor, State::default());
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.join().expect("the relay does not panic");
        }
    }
}
