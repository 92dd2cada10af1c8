//! Makes validation accept a drawn scenario: follows its hints as a person would.

use crate::text;
use proto::units::Bytes;
use scenario::Scenario;
use scenario::keyfile::problem::{Problem, Problems};
use toml::{Table, Value};

/// The faults that no change of a key mends.
pub type Refusal = String;

/// A scenario that validation accepts.
pub struct Drawn {
    /// Its file.
    pub table: Table,
    /// What the file means.
    pub scenario: Scenario,
}

/// Rounds of complaints that are answered. Sizes double each round, from octets to hundreds of megabytes.
const ROUNDS: u32 = 40;

/// The scenario of `table` with what validation asks for: its headroom to the octet, buffers that just leave room beside it,
/// and no key that it refuses.
///
/// # Errors
/// The faults that are left.
pub fn accepted(mut table: Table) -> Result<Drawn, Refusal> {
    let mut last = None;
    for _ in 0..ROUNDS {
        match Scenario::parse(&text::print(&table), &[]) {
            Ok(scenario) => return Ok(Drawn { table, scenario }),
            Err(problems) => mend(&mut table, last.insert(problems))?,
        }
    }
    Err(format!("complaints without end: {}", last.unwrap_or_default()))
}

/// Answers all complaints; one may be void once another is answered.
fn mend(table: &mut Table, problems: &Problems) -> Result<(), Refusal> {
    let answered = problems.iter().filter(|problem| answer(table, problem)).count();
    if answered == 0 { Err(problems.to_string()) } else { Ok(()) }
}

/// Changes what one complaint is about.
fn answer(table: &mut Table, problem: &Problem) -> bool {
    let Problem { path, message, hint, .. } = problem;
    match path.as_str() {
        "fabric.switch.headroom" if hint.starts_with("headroom = ") => {
            let Some(size) = hint.split('"').nth(1) else { return false };
            let switch = text::section(text::section(table, "fabric"), "switch");
            switch.insert("headroom".into(), size.into());
            true
        }
        "fabric.switch.buffer" if message.contains("one size") => text::remove(table, path),
        "fabric.switch.buffer" if is_pool(table) => pool(table, Some(100_000)),
        "fabric.switch.buffer" => enlarge(table, "switch", size_after(message, "headroom = ")),
        "fabric.nic.buffer" => enlarge(table, "nic", None),
        "fabric.switch.pool" if message.contains("lossy_queue") => {
            text::remove(table, "fabric.switch.pool.lossy_queue")
        }
        "fabric.switch.pool" => {
            pool(table, size_after(message, "reserves and headroom alone take "))
        }
        "fabric.nic" => {
            let mut keys = ["fabric.nic.drain", "fabric.nic.storm"].into_iter();
            keys.any(|path| text::remove(table, path))
        }
        path => {
            text::remove(table, path) || outer(path).is_some_and(|outer| text::remove(table, outer))
        }
    }
}

fn is_pool(table: &Table) -> bool {
    let switch = table.get("fabric").and_then(|fabric| fabric.get("switch"));
    switch.and_then(|switch| switch.get("pool")).is_some()
}

/// The path of the table around a key, if that table is not a whole section.
fn outer(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(outer, _)| outer).filter(|outer| outer.contains('.'))
}

/// The size that a message states behind `words`.
fn size_after(message: &str, words: &str) -> Option<u64> {
    let (_, behind) = message.split_once(words)?;
    let size: Vec<&str> = behind.split_whitespace().take(2).collect();
    size.join(" ").parse().ok().map(Bytes::get)
}

/// Makes a buffer larger than `least`, or twice as large as it is. Its size may be in frames.
fn enlarge(table: &mut Table, device: &str, least: Option<u64>) -> bool {
    let device = text::section(text::section(table, "fabric"), device);
    let written = device.get("buffer").and_then(Value::as_str).unwrap_or("36 mtu").to_owned();
    let Some((number, unit)) = written.split_once(' ') else { return false };
    let number = number.parse::<u64>().ok().filter(|number| *number < 1 << 30);
    let Some(number) = number else { return device.remove("buffer").is_some() };
    let larger = match least {
        // Some frames of any MTU, so that a buffer of few frames stays one.
        Some(least) => format!("{} B", least + number.min(64) * 4_500),
        None => format!("{} {unit}", (number * 2).max(2)),
    };
    device.insert("buffer".into(), larger.into());
    true
}

/// Makes the pool larger than what is `taken` of it; else removes the numbers that contradict each other.
fn pool(table: &mut Table, taken: Option<u64>) -> bool {
    let switch = text::section(text::section(table, "fabric"), "switch");
    let pool = text::section(switch, "pool");
    match taken {
        Some(taken) => {
            pool.insert("size".into(), format!("{} B", taken + taken / 4).into()).is_some()
        }
        None => {
            let keys = ["headroom_pool", "hysteresis", "threshold"];
            keys.iter().any(|key| pool.remove(*key).is_some())
        }
    };
    true
}
