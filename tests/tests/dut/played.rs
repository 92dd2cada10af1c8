//! Devices that a test plays at three pairs of socket files, each with one fault or several.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

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
