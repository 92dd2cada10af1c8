//! Requests, slow connections and nonsense to the HTTP servers of a lab whose data path runs: those of its daemons and
//! that of `pausebed serve`. The frames leave no later than those of the same lab without requests.
//!
//! The labs use cables without stamps, where the lateness of a frame is that of its wake-up (tests/tests/lab/lateness.rs).

use super::Campaign;
use super::ground::Ground;
use super::laboratory::{eventually, in_repository, pause};
use super::place::{ETHERNET, Place};
use emulation::clock::{Stopwatch, monotonic_ns};
use proto::random::Random;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Parts, and what each sends to all servers together.
const PARTS: u64 = 10;
const QUOTA: Quota = Quota { requests: 10_000, malformed: 1_000, slow: 100 };

/// How long each lab is watched at least, in seconds.
const WATCHED_S: f64 = 10.0;
/// The attack must be over by then: servers that refuse many clients need more time.
const ATTACK_MAX_S: f64 = 120.0;

/// Permitted p99 of lateness, and permitted excess over the lab without requests, in thousandths of a frame time.
const LATE_MAX: u64 = 100;
const EXCESS_MAX: u64 = 20;

/// A host that stood still for so long says nothing about lateness: the labs are started again.
const STILL_NS: u64 = 1_000_000_000;
const ATTEMPTS: usize = 10;

/// A result that says nothing, because the host was too busy for the quiet lab.
pub const INCONCLUSIVE: &str = "INCONCLUSIVE";

struct Quota {
    requests: u64,
    malformed: u64,
    slow: u64,
}

/// What was sent so far.
#[derive(Default)]
struct Counts {
    /// Requests that were answered, and those that a server closed without an answer because it had too many clients.
    answered: AtomicU64,
    refused: AtomicU64,
    malformed: AtomicU64,
    slow: AtomicU64,
}

impl Counts {
    fn of(&self) -> [u64; 4] {
        [&self.answered, &self.refused, &self.malformed, &self.slow]
            .map(|count| count.load(Ordering::Relaxed))
    }

    fn are_reached(&self, quota: &Quota) -> bool {
        let [answered, _, malformed, slow] = self.of();
        answered >= quota.requests && malformed >= quota.malformed && slow >= quota.slow
    }
}

/// A server of the lab.
#[derive(Clone)]
enum Target {
    Daemon(PathBuf),
    Serve(String),
}

/// A connection to a server.
trait Stream: Read + Write + Send {}
impl Stream for UnixStream {}
impl Stream for TcpStream {}

impl Target {
    fn connect(&self) -> io::Result<Box<dyn Stream>> {
        const WITHIN: Option<Duration> = Some(Duration::from_secs(10));
        Ok(match self {
            Target::Daemon(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(WITHIN)?;
                stream.set_write_timeout(WITHIN)?;
                Box::new(stream)
            }
            Target::Serve(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(WITHIN)?;
                stream.set_write_timeout(WITHIN)?;
                Box::new(stream)
            }
        })
    }

    /// A well-formed request, its method and path by chance. Some are not for this server, or lack a token.
    fn request(&self, random: &mut Random) -> Vec<u8> {
        let gets = match self {
            Target::Daemon(_) => ["/status", "/counters", "/outputs", "/metrics", "/", "/nothing"],
            Target::Serve(_) => {
                ["/", "/api/run", "/api/topology", "/api/columns", "/metrics", "/x"]
            }
        };
        let host = match self {
            Target::Daemon(_) => "x",
            Target::Serve(address) => address,
        };
        let path = gets[random.below(gets.len() as u64) as usize];
        let body = "{\"act\":\"cut\",\"port\":\"nobody:1\"}";
        let (method, body) = match random.below(8) {
            0 => ("POST", body),
            1 => ("DELETE", ""),
            _ => ("GET", ""),
        };
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

/// Octets that are not a request, or one with a fault.
fn malformed(whole: &[u8], random: &mut Random) -> Vec<u8> {
    let mut octets = whole.to_vec();
    let length = octets.len() as u64;
    match random.below(8) {
        0 => octets = (0..1 + random.below(400)).map(|_| random.next_u64() as u8).collect(),
        1 => octets.truncate(1 + random.below(length - 1) as usize),
        2 => octets[random.below(length) as usize] = 0,
        3 => octets[random.below(12) as usize] = random.next_u64() as u8 | 0x80,
        4 => {
            let more = vec![b'a'; 16_384];
            octets = [b"GET / HTTP/1.1\r\nX: ", &more[..], b"\r\n\r\n"].concat();
        }
        5 => {
            octets = b"POST /traffic HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\nContent-Length: 9\r\n\r\n{\"on\":".to_vec();
        }
        6 => {
            octets = b"POST /clear HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n".to_vec();
        }
        _ => {
            let number = random.next_u64();
            octets = format!("GET /%{number:x}/../\\{number} HTTP/9.{number}\r\n\r\n").into_bytes();
        }
    }
    octets
}

/// Sends to one server until the quota of all is reached.
fn besiege(target: &Target, quota: &Quota, counts: &Counts, over: &AtomicBool, mut random: Random) {
    let mut slow: Vec<Box<dyn Stream>> = Vec::new();
    while !counts.are_reached(quota) && !over.load(Ordering::Relaxed) {
        // A full backlog refuses connections for a moment.
        let Ok(mut stream) = target.connect() else {
            pause(0.002);
            continue;
        };
        let request = target.request(&mut random);
        match random.below(120) {
            0 => {
                let begun = stream.write_all(&request[..request.len() / 2]).is_ok();
                counts.slow.fetch_add(u64::from(begun), Ordering::Relaxed);
                slow.push(stream);
                if slow.len() > 100 {
                    slow.remove(0);
                }
            }
            1..=12 => {
                let sent = stream.write_all(&malformed(&request, &mut random));
                // Some of it looks like the begin of a request: the server waits for the rest, and this client does not.
                counts.malformed.fetch_add(u64::from(sent.is_ok()), Ordering::Relaxed);
            }
            _ => {
                let mut answer = Vec::new();
                let sent = stream.write_all(&request);
                let _ = stream.take(1 << 24).read_to_end(&mut answer);
                let is_answered = sent.is_ok() && answer.starts_with(b"HTTP/1.1 ");
                let count = if is_answered { &counts.answered } else { &counts.refused };
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        if random.chance(1, 20) {
            // A server has closed some of them.
            slow.iter_mut().for_each(|stream| drop(stream.write_all(b"x")));
        }
    }
}

/// `pausebed serve` of the lab "one", killed when dropped.
struct Served(Child, Target);

impl Served {
    fn of(place: &Place) -> Served {
        let mut command = place.command(&["serve", "one", "--listen", "127.0.0.1:0"]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut said = String::new();
        let talk = child.stderr.take().expect("standard error is piped");
        BufReader::new(talk).read_line(&mut said).expect("text");
        let address = said.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        Served(child, Target::Serve(address))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // An error means that the server has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A lab that was watched.
struct Watched {
    /// p99 of lateness, in thousandths of a frame time.
    late: u64,
    counts: [u64; 4],
    still_ns: u64,
}

/// Watches a lab, with requests or without.
fn watch(seed: u64, quota: Option<&Quota>, least_s: f64) -> Watched {
    let ground = Ground::new();
    let before = ground.objects();
    let place = &ground.place;
    let file = in_repository(ETHERNET).display().to_string();
    place.good(&["up", &file, "--name", "one", "--backend", "netns"]);
    let served = Served::of(place);
    let run = place.labs().join("one/run");
    let daemon = |process| Target::Daemon(run.join(format!("process-{process}.sock")));
    let targets = [daemon(0), daemon(1), served.1.clone()];
    let (counts, over) = (Counts::default(), AtomicBool::new(false));
    let still_ns = std::thread::scope(|scope| {
        for (number, target) in targets.iter().enumerate() {
            let random = Random::stream(seed, "http", number);
            let (counts, over) = (&counts, &over);
            if let Some(quota) = quota {
                scope.spawn(move || besiege(target, quota, counts, over, random));
            }
        }
        let (stopwatch, mut still_ns) = (Stopwatch::start(), 0);
        let is_done = || quota.is_none_or(|quota| counts.are_reached(quota));
        while stopwatch.seconds() < least_s || !is_done() && stopwatch.seconds() < ATTACK_MAX_S {
            let begin_ns = monotonic_ns();
            pause(0.05);
            still_ns = still_ns.max(monotonic_ns() - begin_ns - 50_000_000);
        }
        over.store(true, Ordering::Relaxed);
        still_ns
    });
    drop(served);
    assert!(
        eventually(30.0, || place.run(&["show", "links", "--lab", "one"]).status.success()),
        "the lab answers after the attack"
    );
    let status = place.json(&["status", "--json"]);
    assert_eq!((&status["one"]["state"], &status["one"]["lost"]), (&"up".into(), &0.into()));
    let late = status["one"]["late_p99_thousandths"].as_u64().expect("a number");
    let log = std::fs::read_to_string(place.labs().join("one/lab.log")).unwrap_or_default();
    assert!(!log.contains("panicked"), "{log}");
    place.down("one");
    ground.tidy();
    ground.assert_is(&before, "a lab and requests");
    Watched { late, counts: counts.of(), still_ns }
}

/// A lab with requests and one without, on a host that does not stand still.
fn pair(seed: u64, quota: &Quota, least_s: f64, requests_first: bool) -> (Watched, Watched) {
    let steady = |quota| {
        for _ in 0..ATTEMPTS {
            let watched = watch(seed, quota, least_s);
            if watched.still_ns < STILL_NS {
                return watched;
            }
            println!("the host stood still for {} ms: once more", watched.still_ns / 1_000_000);
        }
        panic!("the host stood still in each of {ATTEMPTS} attempts");
    };
    if requests_first {
        let loaded = steady(Some(quota));
        (loaded, steady(None))
    } else {
        let quiet = steady(None);
        (steady(Some(quota)), quiet)
    }
}

/// One part: a pair of labs, or the medians of three where one pair does not decide.
fn part(seed: u64) -> String {
    if Path::new("/proc/self/ns/net").exists() && Ground::new().place.namespace.is_none() {
        return "skipped".to_owned();
    }
    let (mut loaded, mut quiet, mut sent) = (Vec::new(), Vec::new(), [0; 4]);
    for number in 0..3 {
        let (with, without) =
            pair(seed * 10 + number, &QUOTA, WATCHED_S, (seed + number).is_multiple_of(2));
        let [answered, _, malformed, slow] = with.counts;
        let is_whole =
            answered >= QUOTA.requests && malformed >= QUOTA.malformed && slow >= QUOTA.slow;
        assert!(is_whole, "{answered} requests, {malformed} malformed, {slow} slow in time");
        sent.iter_mut().zip(with.counts).for_each(|(sum, one)| *sum += one);
        loaded.push(with.late);
        quiet.push(without.late);
        if number == 0 && is_good(loaded[0], quiet[0]) {
            break;
        }
    }
    let [with, without] = [&loaded, &quiet].map(|all| {
        let mut all = all.clone();
        all.sort_unstable();
        all[all.len() / 2]
    });
    let [answered, refused, malformed, slow] = sent;
    let said = format!(
        "{answered} requests answered, {refused} refused, {malformed} malformed, {slow} slow; p99 {with} with, {without} without (of {loaded:?} and {quiet:?})"
    );
    if without > LATE_MAX {
        return format!("{INCONCLUSIVE}: {said}");
    }
    assert!(is_good(with, without), "{said}");
    said
}

/// Whether lateness with requests is permitted, beside lateness without.
const fn is_good(with: u64, without: u64) -> bool {
    with < LATE_MAX && with <= without + EXCESS_MAX
}

/// All parts.
pub fn http(campaign: &mut Campaign) {
    for seed in 1..=PARTS {
        campaign.part(&format!("seed {seed}"), || part(seed));
    }
}
