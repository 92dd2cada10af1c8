//! Load on the admin API delays no frame: labs with and without such load take turns.
//!
//! The labs use cables without stamps, where no frame may leave early: the lateness of each frame is that of its wake-up
//! plus its tick, so both labs have a comparable lateness. With stamps the lateness is zero in both cases.

use super::laboratory::{alone, eventually, in_repository, pause};
use super::{ETHERNET, Place};
use emulation::cable::namespace::Namespace;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Observation time of each lab, in seconds of wall time.
const SECONDS: f64 = 8.0;
const PAIRS: usize = 5;
const CONNECTIONS: usize = 1_000;
const BODY: usize = 100_000_000;
/// A frame time of 2.5 ms: a wake-up takes a hundredth of it, and more on a busy host.
const DILATION: &str = "1200";
/// Permitted lateness of a run, in thousandths of a frame time.
const CONCLUSIVE: u64 = 100;

/// Opens slow connections and sends huge bodies until `over` is set; returns the number of each.
fn besiege(socket: &Path, over: &AtomicBool) -> (usize, usize) {
    let (mut opened, mut bodies) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        let mut slow = Vec::with_capacity(CONNECTIONS);
        while slow.len() < CONNECTIONS && !over.load(Ordering::Relaxed) {
            // A full backlog refuses connections for a moment.
            let Ok(mut stream) = UnixStream::connect(socket) else {
                pause(0.002);
                continue;
            };
            let _ = stream.write_all(b"POST /traffic HTTP/1.1\r\nHost: ");
            slow.push(stream);
        }
        opened += slow.len();
        bodies += usize::from(send_body(socket).is_ok());
        for stream in &mut slow {
            // The server has closed some connections.
            let _ = stream.write_all(b"x");
        }
    }
    (opened, bodies)
}

/// Sends a body until the server stops reading. An error means that the connection was refused.
fn send_body(socket: &Path) -> std::io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "POST /traffic HTTP/1.1\r\nHost: x\r\nContent-Length: {BODY}\r\n\r\n")?;
    let block = vec![b'x'; 1 << 20];
    for _ in 0..BODY / block.len() {
        if stream.write_all(&block).is_err() {
            break;
        }
    }
    Ok(())
}

/// p99 of lateness, in thousandths of a frame time, of a lab, with or without load on its admin API.
fn lateness(besieged: bool) -> u64 {
    let place = Place::new();
    let file = in_repository(ETHERNET).display().to_string();
    place.good(&["up", &file, "--name", "one", "--backend", "netns", "--dilate", DILATION]);
    let sockets: Vec<PathBuf> = (0..2)
        .map(|process| place.labs().join(format!("one/run/process-{process}.sock")))
        .collect();
    let over = AtomicBool::new(false);
    let sieges = std::thread::scope(|scope| {
        let over = &over;
        let besiegers: Vec<_> = sockets
            .iter()
            .filter(|_| besieged)
            .map(|socket| scope.spawn(move || besiege(socket, over)))
            .collect();
        pause(SECONDS);
        over.store(true, Ordering::Relaxed);
        besiegers
            .into_iter()
            .map(|one| one.join().expect("the thread does not panic"))
            .collect::<Vec<_>>()
    });
    for (opened, bodies) in &sieges {
        assert!(*opened >= CONNECTIONS && *bodies > 0, "{opened} connections, {bodies} bodies");
    }
    assert!(eventually(30.0, || place.run(&["show", "links"]).status.success()), "the lab answers");
    let status = place.json(&["status", "--json"]);
    assert_eq!(status["one"]["lost"], 0, "{status:#}");
    let late = status["one"]["late_p99_thousandths"].as_u64().expect("a number");
    place.good(&["down"]);
    place.assert_empty();
    late
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_thousand_slow_connections_and_huge_bodies_delay_no_frame() {
    if let Err(error) = Namespace::make(1) {
        skip::because!("the substrate netns requires CAP_SYS_ADMIN: {error}");
        return;
    }
    let _alone = alone();
    let (mut besieged, mut in_peace) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        // The order alternates, in case one case changes the state of the host for the next.
        for siege in [pair % 2 == 0, pair % 2 == 1] {
            let late = lateness(siege);
            if siege { besieged.push(late) } else { in_peace.push(late) }
        }
    }
    eprintln!("p99 in thousandths of a frame time: with load {besieged:?}, without {in_peace:?}");
    let (with, without) = (median(besieged), median(in_peace));
    assert!(without > 0, "the lateness without load is measurable");
    assert!(with <= CONCLUSIVE && with * 2 <= without * 3, "{with} with load, {without} without");
}
