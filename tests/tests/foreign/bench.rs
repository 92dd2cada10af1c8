//! A lab with one NIC, and a virtual machine at the attached port of its switch.

use crate::place::Place;
use host::exec::{ExecRequest, exec};
use host::image::Image;
use host::vm::{Qemu, Vm, VmSpec};
use launch::lab::{LabRecord, client};
use proto::ids::Lid;
use proto::wire::ethernet::plan;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testbed::verbs::AnyClient;
use verbs::client::{Client, OverStream, Transport};
use verbs::line::NumberedAnswer;

/// Time for a machine to start on a busy host.
const START: Duration = Duration::from_secs(120);
/// Time for an answer of an agent: its longest wait, on a busy host.
const ANSWER: Duration = Duration::from_secs(120);
const SCENARIO: &str = "tests/tests/foreign/lab.toml";
/// The NIC's address, by the numbering plan.
pub const NIC: &str = "198.18.0.1";
/// The machine's.
pub const LINUX: &str = "198.18.0.200";

/// The lab "one" and its machine "v1".
pub struct Bench {
    pub place: Place,
    machine: Option<Vm>,
}

impl Bench {
    /// Starts both. `changes` are settings of the scenario; the MTU is that of the machine's interface.
    pub fn start(changes: &[&str], mtu: u32) -> Option<Bench> {
        let image = image()?;
        let place = Place::new();
        let words: Vec<&str> = changes.iter().flat_map(|change| ["--set", change]).collect();
        place.up_with(SCENARIO, "one", &words);
        let folder = place.labs().join("one").join("run");
        let ends = [folder.join("v1.peer"), folder.join("v1.lab")];
        let machine = machine(&image, &folder, ends, mtu);
        Some(Bench { place, machine: Some(machine) })
    }

    fn folder(&self) -> PathBuf {
        self.place.labs().join("one").join("run")
    }

    /// The agent of the machine.
    pub fn linux(&self) -> AnyClient {
        let stream = UnixStream::connect(self.folder().join("v1.verbs")).expect("a port");
        stream.set_read_timeout(Some(ANSWER)).expect("an option");
        let line = OverStream::new(stream).expect("the port takes a line");
        let line: Box<dyn Transport> = Box::new(line);
        let (client, agent, devices) = Client::greet(line, number()).expect("an agent");
        assert_eq!((agent.as_str(), &devices[..]), ("libibverbs", &["rxe0".to_owned()][..]));
        client
    }

    /// The agent of the NIC.
    pub fn nic(&self) -> AnyClient {
        let record = LabRecord::read(&self.place.labs().join("one")).expect("a journal");
        let line: Box<dyn Transport> = Box::new(OfNode { record });
        Client::greet(line, 1).expect("an agent").0
    }

    /// Runs a command in the machine; its exit code and output.
    pub fn run(&self, line: &str, limit: Duration) -> (i32, String) {
        run(&self.folder(), line, limit)
    }

    /// The machine never asks for the NIC's address again, so that datagrams are the only frames.
    pub fn keep_neighbour(&self) {
        let mac = plan::mac(Lid::new(1));
        let line = format!("ip neigh replace {NIC} lladdr {mac} dev eth0 nud permanent");
        assert_eq!(self.run(&line, ANSWER), (0, String::new()));
    }

    /// Ends both, and checks that nothing is left.
    pub fn stop(mut self) {
        self.machine.take().into_iter().for_each(Vm::stop);
        self.place.good(&["down", "one"]);
        self.place.assert_empty();
    }
}

/// The image of this user.
pub fn image() -> Option<Image> {
    let kernel = std::env::var("PAUSEBED_TEST_KERNEL").ok();
    match Qemu::find().and_then(|_| Image::find(kernel.as_deref())) {
        Ok(image) => Some(image),
        Err(error) => {
            skip::because!("{error}");
            None
        }
    }
}

/// Starts the machine "v1", whose cable has these ends: its own, and the lab's.
pub fn machine(image: &Image, folder: &Path, [local, remote]: [PathBuf; 2], mtu: u32) -> Vm {
    let spec = VmSpec {
        name: "v1".to_owned(),
        mac: [2, 0, 0, 0, 0, 200],
        addresses: vec![
            (LINUX.parse().expect("an address"), 16),
            ("2001:db8::c8".parse().expect("an address"), 64),
        ],
        mtu,
        memory_mib: image.memory_mib().unwrap_or_else(|error| panic!("{error}")),
        local,
        remote,
        folder: folder.to_owned(),
    };
    let mut machine = Vm::start(image, &spec).unwrap_or_else(|error| panic!("{error}"));
    machine.wait_ready(START).unwrap_or_else(|error| panic!("{error}"));
    machine
}

/// Runs a command in the machine "v1" of this folder; its exit code and output.
pub fn run(folder: &Path, line: &str, limit: Duration) -> (i32, String) {
    let argv = line.split(' ').map(str::to_owned).collect();
    let request = ExecRequest { argv, ..ExecRequest::default() };
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let (out, err): (&mut dyn io::Write, &mut dyn io::Write) = (&mut output, &mut errors);
    let code = exec(folder, "v1", &request, io::empty(), out, err, Some(limit));
    let text = [output, errors].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (code.unwrap_or_else(|error| panic!("{line}: {error}\n{text}")), text)
}

/// The agent of the NIC h1, by the administration of its daemon.
struct OfNode {
    record: LabRecord,
}

impl Transport for OfNode {
    fn exchange(&mut self, _: u64, line: &[u8]) -> io::Result<NumberedAnswer> {
        let lines = [String::from_utf8_lossy(line).trim_end().to_owned()];
        let answers = client::ask_agent(&self.record, "h1", &lines).map_err(io::Error::other)?;
        Ok(serde_json::from_str(&answers[0])?)
    }
}

/// A number that no earlier client has begun with.
fn number() -> u64 {
    emulation::clock::monotonic_ns()
}
