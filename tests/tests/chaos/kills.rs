//! kill -9 of a random process at a random moment: of a lab, of what looks at it, and of a run beside it.

use super::Campaign;
use super::assert_balanced;
use super::ground::{Ground, Substrate, signal};
use super::laboratory::{eventually, in_repository, pause};
use super::objects::children;
use super::place::{ETHERNET, INFINIBAND};
use emulation::clock::Stopwatch;
use nix::sys::signal::Signal;
use proto::random::Random;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::Child;

/// Kills of the whole campaign.
pub const KILLS: u64 = 1_000;
/// Kills in the life of one lab, but that of its keeper.
pub const IN_A_LIFE: u64 = 9;
/// A process that ends five times within a minute is given up.
const DEATHS_MAX: u32 = 4;
/// Time for a daemon to be replaced, and for the daemons of a killed launcher to end, in seconds.
const WITHIN_S: f64 = 20.0;

/// A lab with a capture, a page, and a run beside it.
struct Life {
    ground: Ground,
    random: Random,
    substrate: Substrate,
    file: String,
    port: &'static str,
    /// The processes beside the lab, by the command.
    beside: BTreeMap<&'static str, Child>,
    /// Kills, by what was killed.
    kills: BTreeMap<&'static str, u64>,
    /// Deaths of the lab's daemons.
    deaths: Vec<u32>,
    /// Times until killed daemons were replaced, in milliseconds.
    recovered_ms: Vec<u64>,
}

impl Drop for Life {
    fn drop(&mut self) {
        for child in self.beside.values_mut() {
            // An error means that it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Life {
    fn begin(seed: u64) -> Life {
        let mut random = Random::stream(seed, "chaos", "kills");
        let ground = Ground::new();
        let substrates = ground.substrates();
        let substrate = substrates[random.below(substrates.len() as u64) as usize];
        let (file, port) = [(INFINIBAND, "s0:1"), (ETHERNET, "s0:3")][random.below(2) as usize];
        let file = in_repository(file).display().to_string();
        let (beside, kills) = Default::default();
        let (deaths, recovered_ms) = (Vec::new(), Vec::new());
        Life { ground, random, substrate, file, port, beside, kills, deaths, recovered_ms }
    }

    fn journal(&self) -> Value {
        let file = self.ground.place.labs().join("one/lab.json");
        let text = fs::read_to_string(file).expect("the lab has a journal");
        serde_json::from_str(&text).expect("JSON")
    }

    /// The process of `command`, which is started unless it runs.
    fn beside(&mut self, command: &'static str) -> u32 {
        let runs = self.beside.get_mut(command).is_some_and(|child| {
            child.try_wait().expect("the process is a child of the test").is_none()
        });
        if !runs {
            let out = self.ground.place.folder.path().join("capture.pcapng").display().to_string();
            let words: Vec<&str> = match command {
                "capture" => vec!["capture", self.port, "--lab", "one", "-w", &out],
                "serve" => vec!["serve", "one", "--listen", "127.0.0.1:0"],
                _ => {
                    let long = "run.duration=\"12000 mtu\"";
                    let backend = self.substrate.name();
                    vec!["run", &self.file, "--no-report", "--set", long, "--backend", backend]
                }
            };
            self.beside.insert(command, self.ground.begin(&words));
            // It begins to work within this time, so kills hit its start as well as its life.
            pause(self.random.below(600_000_000) as f64 / 1e9);
            self.ground.look();
        }
        self.beside[command].id()
    }

    /// Kills a random process at a random moment.
    fn kill_one(&mut self) {
        pause(self.random.below(300_000_000) as f64 / 1e9);
        match self.random.below(8) {
            0 => self.kill_beside("capture"),
            1 => self.kill_beside("serve"),
            2 => self.kill_beside("run"),
            3 => self.kill_daemon_of_run(),
            _ => self.kill_daemons(),
        }
    }

    fn kill_beside(&mut self, command: &'static str) {
        let process = self.beside(command);
        let daemons = children(process);
        signal(process, Signal::SIGKILL);
        self.beside.remove(command).map(|mut child| child.wait());
        *self.kills.entry(command).or_default() += 1;
        let of_run = |process: &u32| self.ground.daemons().contains(process);
        let gone = eventually(WITHIN_S, || !daemons.iter().any(of_run));
        assert!(gone, "daemons outlive their launcher: {daemons:?}");
    }

    fn kill_daemon_of_run(&mut self) {
        let launcher = self.beside("run");
        let daemons: Vec<u32> = children(launcher).into_iter().collect();
        let Some(daemon) = daemons.get(self.random.below(daemons.len().max(1) as u64) as usize)
        else {
            // It has not started any yet.
            return self.kill_beside("run");
        };
        signal(*daemon, Signal::SIGKILL);
        *self.kills.entry("daemon of a run").or_default() += 1;
        let mut child = self.beside.remove("run").expect("it was started");
        let mut code = None;
        let ended = eventually(WITHIN_S, || {
            code = child.try_wait().expect("the process is a child of the test");
            code.is_some()
        });
        let code = code.and_then(|code| code.code());
        self.beside.insert("run", child);
        assert!(ended && code == Some(5), "a run without a daemon ends with {code:?}");
    }

    /// Kills a daemon of the lab, and sometimes a second before the first is replaced. All are replaced.
    fn kill_daemons(&mut self) {
        let daemons = self.journal()["daemons"].as_array().expect("a list").clone();
        self.deaths.resize(daemons.len(), 0);
        let alive = |index: &usize| self.deaths[*index] < DEATHS_MAX;
        let mut left: Vec<usize> = (0..daemons.len()).filter(alive).collect();
        let mut killed = Vec::new();
        for _ in 0..1 + u32::from(self.random.chance(1, 4)) {
            if left.is_empty() {
                break;
            }
            let index = left.swap_remove(self.random.below(left.len() as u64) as usize);
            let process = daemons[index]["pid"].as_u64().expect("a number");
            signal(process as u32, Signal::SIGKILL);
            killed.push((index, Stopwatch::start()));
            self.deaths[index] += 1;
            *self.kills.entry("daemon").or_default() += 1;
            pause(self.random.below(150_000_000) as f64 / 1e9);
        }
        for (index, since) in killed {
            let restarts = |journal: &Value| journal["daemons"][index]["restarts"].as_u64();
            let before = daemons[index]["restarts"].as_u64();
            let mut now = self.journal();
            while restarts(&now) == before && since.seconds() < WITHIN_S {
                pause(0.002);
                now = self.journal();
            }
            let logs = self.ground.place.good(&["logs", "one"]);
            assert_eq!(now["stage"], "up", "the lab ended\n{logs}");
            assert!(restarts(&now) > before, "process {index} was not replaced\n{logs}");
            self.recovered_ms.push((since.seconds() * 1e3) as u64);
        }
        self.ground.look();
    }
}

/// The life of one lab with `kills` kills. Returns the account of it.
pub fn life(seed: u64, kills: u64) -> String {
    let mut life = Life::begin(seed);
    let before = life.ground.objects();
    let placement = ["worker", "device"][life.random.below(2) as usize];
    let placement = format!("run.placement=\"{placement}\"");
    let backend = life.substrate.name();
    let up = ["up", &life.file, "--name", "one", "--backend", backend, "--set", &placement];
    life.ground.place.good(&up);
    life.ground.look();
    while life.kills.values().sum::<u64>() < kills {
        life.kill_one();
    }
    assert_balanced(&life.ground.place);
    let keeper = life.ground.supervisor().expect("the lab has a keeper");
    match life.random.below(3) {
        0 => {
            life.ground.place.down("one");
        }
        1 => {
            signal(keeper, Signal::SIGKILL);
            *life.kills.entry("keeper").or_default() += 1;
        }
        _ => signal(keeper, Signal::SIGTERM),
    }
    for command in ["capture", "serve", "run"] {
        if life.beside.contains_key(command) {
            life.kill_beside(command);
        }
    }
    life.ground.tidy();
    let _ = fs::remove_file(life.ground.place.folder.path().join("capture.pcapng"));
    life.ground.assert_is(&before, &format!("seed {seed}: {:?}", life.kills));
    let total: u64 = life.kills.values().sum();
    let each: Vec<String> =
        life.kills.iter().map(|(what, count)| format!("{what} {count}")).collect();
    let recovered: Vec<String> = life.recovered_ms.iter().map(u64::to_string).collect();
    format!("{total} kills on {backend}: {}; ms {}", each.join(", "), recovered.join(" "))
}

/// Kills until there are enough.
pub fn kills(campaign: &mut Campaign) {
    let mut total = 0;
    for seed in 1..=KILLS {
        let result = campaign.part(&format!("seed {seed}"), || life(seed, IN_A_LIFE));
        total += result.split(' ').next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        if total >= KILLS {
            break;
        }
    }
}
