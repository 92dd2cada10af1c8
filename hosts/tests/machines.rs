//! Real virtual machines: two of them, joined directly by datagram sockets, use their network and soft-RoCE.

use emulation::clock::Stopwatch;
use host::HostError;
use host::exec::{ExecRequest, exec};
use host::image::Image;
use host::vm::{Qemu, Vm, VmSpec};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for two machines to start on a busy host.
const START: Duration = Duration::from_secs(60);
const COMMAND: Duration = Duration::from_secs(60);

/// The image of this user; without it, or without QEMU, the test says so and does nothing.
fn image() -> Option<Image> {
    let kernel = std::env::var("PAUSEBED_TEST_KERNEL").ok();
    match Qemu::find().and_then(|_| Image::find(kernel.as_deref())) {
        Ok(image) => Some(image),
        Err(error) => {
            skip::because!("{error}");
            None
        }
    }
}

fn spec(folder: &Path, number: u8) -> VmSpec {
    let end = |number: u8| folder.join(format!("cable{number}"));
    VmSpec {
        name: format!("v{number}"),
        mac: [2, 0, 0, 0, 0, number],
        addresses: vec![
            (format!("198.18.0.{number}").parse().expect("a temporary folder"), 24),
            (format!("2001:db8::{number}").parse().expect("a temporary folder"), 64),
        ],
        mtu: 1500,
        memory_mib: 192,
        local: end(number),
        remote: end(3 - number),
        folder: folder.to_owned(),
    }
}

fn run(folder: &Path, name: &str, line: &str) -> Result<(i32, String), HostError> {
    let (input, limit) = (std::io::empty(), COMMAND);
    let (code, output, errors) = run_with(folder, name, line, input, limit)?;
    Ok((code, output + &errors))
}

fn run_with(
    folder: &Path,
    name: &str,
    line: &str,
    input: impl std::io::Read + Send + 'static,
    limit: Duration,
) -> Result<(i32, String, String), HostError> {
    // One word after `sh -c` is a whole line of the shell.
    let words = if line.starts_with("sh -c ") { 3 } else { usize::MAX };
    let argv = line.splitn(words, ' ').map(str::to_owned).collect();
    let request = ExecRequest { argv, environment: [("X".to_owned(), "a b".to_owned())].into() };
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let code = exec(folder, name, &request, input, &mut output, &mut errors, Some(limit))?;
    let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
    Ok((code, text(output), text(errors)))
}

#[test]
fn two_machines_ping_each_other_by_ip_and_by_verbs() {
    let Some(image) = image() else { return };
    let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir();
    let folder = folder.unwrap();
    let folder = folder.path();
    let watch = Stopwatch::start();
    let mut machines: Vec<Vm> =
        [1, 2].map(|number| Vm::start(&image, &spec(folder, number)).unwrap()).into();
    for machine in &mut machines {
        machine.wait_ready(START).unwrap();
    }
    eprintln!("two machines after {:.2} s", watch.seconds());
    time_passes_as_here(folder);
    streams_and_exit_codes(folder);
    ended_with_its_caller(folder);
    for target in ["198.18.0.2", "2001:db8::2"] {
        let (code, text) = run(folder, "v1", &format!("ping -c 3 -i 0.2 {target}")).unwrap();
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("3 received"), "{text}");
    }
    let server = {
        let folder = PathBuf::from(folder);
        std::thread::spawn(move || run(&folder, "v2", "ibv_rc_pingpong -d rxe0 -g 1 -n 50"))
    };
    // The server listens when its port is open.
    let listens = "sh -c until netstat -ltn | grep -q :18515; do usleep 50000; done";
    assert_eq!(run(folder, "v2", listens).unwrap(), (0, String::new()));
    let (code, text) = run(folder, "v1", "ibv_rc_pingpong -d rxe0 -g 1 -n 50 198.18.0.2").unwrap();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("50 iters in"), "{text}");
    let (code, text) = server.join().unwrap().unwrap();
    assert_eq!(code, 0, "{text}");
    let pids: Vec<u32> = machines.iter().map(Vm::pid).collect();
    machines.into_iter().for_each(Vm::stop);
    for pid in pids {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "QEMU {pid} is left behind");
    }
    let left: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let is_log = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy();
        name.ends_with(".log") || name.ends_with(".lock")
    };
    assert!(left.iter().all(is_log), "{left:?}");
    eprintln!("all after {:.2} s", watch.seconds());
}

/// A machine that was saved on a busy host once had a clock four times too fast.
fn time_passes_as_here(folder: &Path) {
    let uptime = || {
        let (code, text) = run(folder, "v1", "cut -d. -f1-2 /proc/uptime").expect("it runs");
        assert_eq!(code, 0, "{text}");
        let seconds = text.split(' ').next().and_then(|word| word.trim().parse::<f64>().ok());
        (seconds.expect("a number"), Stopwatch::start())
    };
    let (before, watch) = uptime();
    let until = emulation::clock::monotonic_ns() + 3_000_000_000;
    emulation::timer::wait(None, until);
    let (after, _) = uptime();
    let ratio = (after - before) / watch.seconds();
    assert!((0.8..1.25).contains(&ratio), "{ratio} seconds pass in a second");
}

fn streams_and_exit_codes(folder: &Path) {
    let (code, output, errors) = run_with(
        folder,
        "v1",
        "sh -c echo out; echo \"$X\" >&2; exit 3",
        std::io::empty(),
        COMMAND,
    )
    .expect("the machine does it");
    assert_eq!((code, output.as_str(), errors.as_str()), (3, "out\n", "a b\n"));
    // More than all windows and pipes hold, through standard input and back.
    let octets: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    let request = ExecRequest { argv: vec!["cat".to_owned()], ..Default::default() };
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let input = std::io::Cursor::new(octets.clone());
    let code = exec(folder, "v1", &request, input, &mut output, &mut errors, Some(COMMAND))
        .expect("the machine does it");
    assert_eq!(code, 0);
    assert!(output == octets, "{} of {} octets came back", output.len(), octets.len());
    assert_eq!(run(folder, "v1", "no-such-program").expect("the machine does it").0, 127);
    assert_eq!(run(folder, "v1", "sh -c kill -9 $$").expect("the machine does it").0, 137);
    assert_eq!(run(folder, "v1", "hostname").expect("the machine does it"), (0, "v1\n".to_owned()));
    assert!(run(folder, "v9", "true").is_err());
}

/// A limit, like a caller that disappears, closes the socket. The next caller comes at once, perhaps before the
/// end of this one has reached the machine.
fn ended_with_its_caller(folder: &Path) {
    let short = Duration::from_millis(100);
    let gone = "sh -c for i in 1 2 3 4 5 6 7 8 9 10; do pidof sleep || exit 0; usleep 200000; done; exit 1";
    for _ in 0..5 {
        let late = run_with(folder, "v2", "sleep 1000", std::io::empty(), short);
        assert!(matches!(late, Err(HostError::Late { .. })), "{late:?}");
        let (code, text) = run(folder, "v2", gone).expect("the machine does it");
        assert_eq!(code, 0, "{text}");
    }
}
