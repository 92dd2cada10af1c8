//! Hosts of the kind `container`.

use crate::*;
use host::container::{ContainerHost, ContainerSpec, exec, remove_leftovers};
use std::collections::BTreeSet;

const EXEC: Exec = |folder, name, request, stdin, out, err, limit| {
    exec(folder, name, request, stdin, out, err, limit)
};
/// The image of these tests: some programs of this system.
const IMAGE: &str = "pausebed-test-programs";
const PROGRAMS: [&str; 6] = ["cat", "ls", "ping", "sh", "sleep", "uname"];

fn spec(folder: &Path, name: &str) -> ContainerSpec {
    ContainerSpec {
        name: name.to_owned(),
        interface: eth0(),
        image: IMAGE.to_owned(),
        memory_mib: Some(64),
        owner: owner_label(),
        folder: folder.to_owned(),
    }
}

/// What tests of this process, and of those that it kills, put on their containers.
fn owner_label() -> String {
    format!("a test in {}", std::env::current_exe().expect("it has a path").display())
}

#[expect(clippy::disallowed_methods, reason = "the test makes its image")]
fn run(words: &[&str]) -> Result<String, String> {
    let output = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// A lab, and the image made if it does not exist; `None`, with a message, without a right or an engine.
fn lab() -> Option<Lab> {
    let lab = Lab::new()?;
    if let Err(reason) = run(&["docker", "version"]) {
        skip::because!("no Docker engine: {reason}");
        return None;
    }
    if run(&["docker", "image", "inspect", IMAGE]).is_err() {
        let paths = PROGRAMS.map(|program| format!("/usr/bin/{program}"));
        let mut words = vec!["ldd"];
        words.extend(paths.iter().map(String::as_str));
        let needed = run(&words).expect("dynamic programs");
        let needed = needed.split_whitespace().filter(|word| word.starts_with('/'));
        let needed: BTreeSet<&str> = needed.map(|word| word.trim_end_matches(':')).collect();
        let archive = lab.folder.path().join("image.tar").to_string_lossy().into_owned();
        let mut words = vec!["tar", "--create", "--dereference", "--absolute-names", "--file"];
        words.push(&archive);
        words.extend(needed);
        run(&words).expect("an archive");
        run(&["docker", "import", &archive, IMAGE]).expect("an image");
    }
    Some(lab)
}

/// The containers of these tests.
fn containers() -> usize {
    let label = format!("label={}={}", host::container::OWNER_LABEL, owner_label());
    run(&["docker", "ps", "--all", "--quiet", "--filter", &label]).expect("a list").lines().count()
}

#[test]
fn a_container_has_one_interface_and_leaves_nothing() {
    let Some(lab) = lab() else { return };
    let folder = lab.folder.path();
    let spec = spec(folder, "c1");
    let mut host = ContainerHost::start(&spec, lab.end("p4")).expect("it starts");
    assert!(host.is_alive());
    assert_eq!(lab.ends(), ["p4"]);
    let found = eth0_of(host.pid());
    assert_eq!((found.mac, found.mtu), (Some(spec.interface.mac), 1_500));
    assert_eq!(found.addresses, spec.interface.addresses);
    assert_eq!(found.offloads, [""; 0]);
    wait(300);
    let counts = lab.exec(EXEC, "c1", &["cat", "/sys/class/net/eth0/statistics/tx_packets"]);
    assert_eq!(counts, (0, "0\n".to_owned(), String::new()), "frames that no program has sent");
    streams_codes_and_limits(&lab, EXEC, "c1");
    assert_eq!(lab.exec(EXEC, "c1", &["uname", "-n"]).1, "c1\n");
    assert_eq!(lab.exec(EXEC, "c1", &["ls", "/sys/class/net"]).1, "eth0\nlo\n");
    lab.answer_at("p4", "198.18.0.9", 24);
    let ping = lab.exec(EXEC, "c1", &["ping", "-c", "2", "-i", "0.2", "198.18.0.9"]);
    assert!(ping.1.contains("2 received"), "{ping:?}");
    host.stop();
    assert_eq!(lab.ends(), [""; 0]);
    let unknown = ContainerSpec { image: "no-such-image".to_owned(), ..spec };
    let error = ContainerHost::start(&unknown, lab.end("p4")).expect_err("there is no image");
    assert!(error.to_string().contains("docker pull no-such-image"), "{error}");
    killed(&lab);
}

/// The process that [`killed`] kills.
#[test]
#[ignore = "another test starts it"]
fn owner_of_a_container() {
    let Some((folder, namespace)) = owner_lab() else { return };
    let end = LabEnd { namespace: &namespace, name: "p1", mac: [2, 0, 0, 0, 9, 9], note: "a test" };
    let _host = ContainerHost::start(&spec(&folder, "c2"), end).expect("it starts");
    let _ = outcome(EXEC, &folder, "c2", &["sleep", "4324.5"], io::empty(), COMMAND);
}

/// The engine removes the container of an owner that is killed, or the next sweep does.
fn killed(lab: &Lab) {
    for delay in [100, 300, 600, 3_000] {
        let child = owner("programs::container::owner_of_a_container", lab.folder.path()).spawn();
        let child = child.expect("it starts");
        wait(delay);
        kill(child);
        until("no container is left", || {
            remove_leftovers(|owner| owner == owner_label()).expect("the engine answers");
            containers() == 0 && processes("sleep\x004324.5\0").is_empty()
        });
    }
}
