//! The forwarders between generator and sink.

use crate::ground::{Ground, output};
use emulation::clock::monotonic_ns;
use emulation::timer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A forwarder under measurement.
pub trait Contestant {
    /// Name in the printed table.
    fn name(&self) -> &'static str;

    /// True if the generator's program itself forwards.
    fn is_bare(&self) -> bool {
        false
    }

    /// Starts to forward between f0 and f1.
    fn begin(&mut self, ground: &Ground) -> Result<(), String>;

    /// Stops forwarding.
    fn end(&mut self, ground: &Ground);
}

/// The bare forwarder: recvmmsg, one octet changed, sendmmsg.
pub struct Bare;

impl Contestant for Bare {
    fn name(&self) -> &'static str {
        "bare forwarder"
    }

    fn is_bare(&self) -> bool {
        true
    }

    fn begin(&mut self, _: &Ground) -> Result<(), String> {
        Ok(())
    }

    fn end(&mut self, _: &Ground) {}
}

/// This project's switch.
pub struct Ours {
    /// Value of the scenario's key for sending (`ring` or `socket`).
    send: &'static str,
    launcher: Option<Child>,
}

impl Ours {
    /// A switch that sends by `send`.
    pub fn sending_by(send: &'static str) -> Ours {
        Ours { send, launcher: None }
    }
}

impl Contestant for Ours {
    fn name(&self) -> &'static str {
        match self.send {
            "ring" => "pausebed",
            _ => "pausebed, sending by packet sockets",
        }
    }

    fn begin(&mut self, ground: &Ground) -> Result<(), String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let folder = own.parent().and_then(Path::parent).ok_or("a bench has a path")?;
        let program = folder.join("pausebed");
        if !program.is_file() {
            return Err(format!("{} is missing: build it in this profile", program.display()));
        }
        let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/attached/switch.toml");
        let mut command = Ground::inside("lfF", &program.display().to_string());
        let port =
            |number, iface| format!("{{port='s1:{number}',iface='{iface}',send='{}'}}", self.send);
        let attach = format!("lab.attach=[{},{}]", port(1, "f0"), port(2, "f1"));
        command.arg("run").arg(scenario).args(["--no-report", "--json", "--set", &attach]);
        command.env("TMPDIR", ground.folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        self.launcher = Some(command.spawn().map_err(|error| error.to_string())?);
        reachable()
    }

    fn end(&mut self, _: &Ground) {
        if let Some(mut launcher) = self.launcher.take() {
            // `ip netns exec` becomes the program, so this is the launcher. An error means that it has ended.
            let _ = kill(Pid::from_raw(launcher.id() as i32), Signal::SIGINT);
            let _ = launcher.wait();
        }
    }
}

/// Open vSwitch without its kernel module.
pub struct OpenVSwitch;

impl OpenVSwitch {
    /// True if Open vSwitch is installed.
    pub fn is_there() -> bool {
        let tools = ["ovs-vswitchd", "ovsdb-server", "ovs-vsctl"];
        tools.iter().all(|tool| output(Command::new(tool).arg("--version")).is_ok())
    }
}

impl Contestant for OpenVSwitch {
    fn name(&self) -> &'static str {
        "Open vSwitch"
    }

    fn begin(&mut self, ground: &Ground) -> Result<(), String> {
        ground.script("peer.sh", &["up", "ovs"])?;
        finish_checksums(true)?;
        reachable()
    }

    fn end(&mut self, ground: &Ground) {
        if let Err(reason) = ground.script("peer.sh", &["down", "ovs"]) {
            println!("Open vSwitch was not removed: {reason}");
        }
        if let Err(reason) = finish_checksums(false) {
            println!("the offload settings of the hosts were not restored: {reason}");
        }
    }
}

/// Turns checksum and segmentation offload of the hosts off or on. Open vSwitch forwards unfinished checksums unchanged,
/// so TCP would fail with offloads.
fn finish_checksums(finish: bool) -> Result<(), String> {
    let hardware = if finish { "off" } else { "on" };
    for (namespace, interface) in [("lfA", "a0"), ("lfB", "b0")] {
        output(Ground::inside(namespace, "ethtool").args(["-K", interface, "tx", hardware]))?;
    }
    Ok(())
}

/// Waits until the far host answers a ping.
fn reachable() -> Result<(), String> {
    let mut last = String::new();
    for _ in 0..40 {
        match output(Ground::inside("lfA", "ping").args(["-c", "1", "-W", "1", "198.18.9.2"])) {
            Ok(_) => return Ok(()),
            Err(reason) => last = reason,
        }
        timer::wait(None, monotonic_ns() + 100_000_000);
    }
    Err(format!("no ping reply through the forwarder: {last}"))
}
