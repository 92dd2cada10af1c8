//! Hosts of the kind `netns`.

use crate::*;
use host::namespace::{NamespaceHost, NamespaceSpec, exec};
use nix::unistd::{Gid, Uid, chown, setgid, setuid};
use std::os::unix::process::CommandExt;

const EXEC: Exec = |folder, name, request, stdin, out, err, limit| {
    exec(folder, name, request, stdin, out, err, limit)
};

fn spec(folder: &Path, name: &str) -> NamespaceSpec {
    NamespaceSpec { name: name.to_owned(), interface: eth0(), folder: folder.to_owned() }
}

#[test]
fn a_program_has_a_network_of_its_own_and_leaves_nothing() {
    let Some(lab) = Lab::new() else { return };
    let spec = spec(lab.folder.path(), "h1");
    let mut host = NamespaceHost::start(&spec, lab.end("p4")).expect("it starts");
    assert!(host.is_alive());
    assert_eq!(lab.ends(), ["p4"]);
    let found = eth0_of(host.pid());
    assert_eq!((found.mac, found.mtu), (Some(spec.interface.mac), 1_500));
    assert_eq!(found.addresses, spec.interface.addresses);
    assert_eq!(found.offloads, [""; 0]);
    assert!(found.is_up && found.has_carrier);
    wait(300);
    let counts = lab.exec(EXEC, "h1", &["cat", "/sys/class/net/eth0/statistics/tx_packets"]);
    assert_eq!(counts, (0, "0\n".to_owned(), String::new()), "frames that no program has sent");
    streams_codes_and_limits(&lab, EXEC, "h1");
    assert_eq!(lab.exec(EXEC, "h1", &["no-such-program"]).0, 127);
    assert_eq!(lab.exec(EXEC, "h1", &["uname", "-n"]).1, "h1\n");
    assert_eq!(lab.exec(EXEC, "h1", &["ls", "/sys/class/net"]).1, "eth0\nlo\n");
    let here = std::env::current_dir().expect("a folder");
    assert_eq!(lab.exec(EXEC, "h1", &["pwd"]).1.trim(), here.to_string_lossy());
    // The first process, the shell, and what the shell runs.
    let seen = lab.exec(EXEC, "h1", &["sh", "-c", "ls -d /proc/[1-9]* | wc -l; true"]).1;
    assert!(seen.trim().parse::<u32>().is_ok_and(|count| count <= 4), "{seen}");
    lab.answer_at("p4", "198.18.0.9", 24);
    let ping = lab.exec(EXEC, "h1", &["ping", "-c", "2", "-i", "0.2", "198.18.0.9"]);
    assert!(ping.1.contains("2 received"), "{ping:?}");
    let twice = NamespaceHost::start(&spec, lab.end("p5")).expect_err("the name is taken");
    assert!(twice.to_string().contains("runs already"), "{twice}");
    // A program that goes on after its command ends with the host.
    let left = lab.exec(EXEC, "h1", &["sh", "-c", "sleep 4322.5 >/dev/null 2>&1 & true"]);
    assert_eq!(left.0, 0);
    until("it runs", || processes("sleep\x004322.5\0").len() == 1);
    host.stop();
    assert_eq!(processes("sleep\x004322.5\0"), [0; 0]);
    assert_eq!(lab.ends(), [""; 0]);
    assert_eq!(fs::read_dir(lab.folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_host_with_ipv6_asks_nothing_and_answers() {
    let Some(lab) = Lab::new() else { return };
    let mut spec = spec(lab.folder.path(), "h1");
    spec.interface.addresses.push(("2001:db8::1".parse().expect("an address"), 64));
    let host = NamespaceHost::start(&spec, lab.end("p4")).expect("it starts");
    let mut found = eth0_of(host.pid()).addresses;
    // Every interface with IPv6 has a link-local address (RFC 4291, 2.1).
    found.retain(|(address, _)| !address.to_string().starts_with("fe80::"));
    assert_eq!(found, spec.interface.addresses, "no address from a router");
    let enable = || fs::write("/proc/sys/net/ipv6/conf/p4/disable_ipv6", "0");
    lab.namespace.enter(enable).expect("it can be set");
    lab.answer_at("p4", "2001:db8::9", 64);
    let ping = lab.exec(EXEC, "h1", &["ping", "-c", "2", "-i", "0.2", "2001:db8::9"]);
    assert!(ping.1.contains("2 received"), "{ping:?}");
}

#[test]
fn improper_hosts_are_refused() {
    let Some(lab) = Lab::new() else { return };
    let good = spec(lab.folder.path(), "h1");
    let refused = |change: fn(&mut NamespaceSpec)| {
        let mut spec = good.clone();
        change(&mut spec);
        NamespaceHost::start(&spec, lab.end("p4")).expect_err("it is refused");
    };
    refused(|spec| spec.name = "../h1".to_owned());
    refused(|spec| spec.interface.mtu = 67);
    refused(|spec| spec.interface.mac = [0; 6]);
    refused(|spec| spec.folder = "/".into());
    let long = LabEnd { name: "sixteen-octets-x", ..lab.end("p4") };
    NamespaceHost::start(&good, long).expect_err("no interface has this name");
    assert_eq!(fs::read_dir(lab.folder.path()).expect("a folder").count(), 0);
}

/// The process that [`nothing_is_left_of_an_owner_that_is_killed`] kills.
#[test]
#[ignore = "another test starts it"]
fn owner_of_a_namespace() {
    let Some((folder, namespace)) = owner_lab() else { return };
    let end = LabEnd { namespace: &namespace, name: "p1", mac: [2, 0, 0, 0, 9, 9], note: "a test" };
    let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
    let _host = NamespaceHost::start(&spec(&folder, &name), end).expect("it starts");
    let _ = outcome(EXEC, &folder, &name, &["sleep", "4323.5"], io::empty(), COMMAND);
}

#[test]
fn nothing_is_left_of_an_owner_that_is_killed() {
    let Some(lab) = Lab::new() else { return };
    let folder = lab.folder.path();
    let name = format!("k{}", std::process::id());
    for delay in [0, 5, 10, 15, 20, 30, 40, 60, 100, 500] {
        let folder = folder.join(&name);
        fs::create_dir_all(&folder).expect("a folder");
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("it is ours");
        let child = owner("programs::namespace::owner_of_a_namespace", &folder).spawn();
        let child = child.expect("it starts");
        wait(delay);
        kill(child);
        // A process that was just forked has not its own command line yet, and ends all the same.
        until("no process of the host is left", || {
            processes(&format!("PAUSEBED_HOST={name}")).is_empty()
                && processes("sleep\x004323.5\0").is_empty()
                && outcome(EXEC, &folder, &name, &["true"], io::empty(), COMMAND).is_err()
        });
    }
}

#[test]
fn an_ordinary_user_has_hosts_in_a_user_namespace() {
    const NOBODY: u32 = 65_534;
    if !Uid::effective().is_root() {
        skip::because!("only root can become another user");
        return;
    }
    let Some(lab) = Lab::new() else { return };
    let folder = lab.folder.path().join("u1");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("it is ours");
    fs::set_permissions(lab.folder.path(), Permissions::from_mode(0o711)).expect("it is ours");
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    chown(&folder, Some(user), Some(group)).expect("root may");
    let mut command = owner("programs::namespace::owner_of_a_namespace", &folder);
    command.current_dir("/");
    // SAFETY: the copy of this process has one thread.
    unsafe {
        command.pre_exec(move || {
            setgid(group)?;
            setuid(user)?;
            // Otherwise `/proc/self`, with the map of users, belongs to root.
            libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
            emulation::cable::namespace::become_owner()
        })
    };
    let child = match command.spawn() {
        Err(error) => {
            skip::because!("CONFIG_USER_NS: none for an ordinary user: {error}");
            return;
        }
        Ok(child) => child,
    };
    // From outside of the user namespace.
    until("the host runs", || {
        outcome(EXEC, &folder, "u1", &["true"], io::empty(), COMMAND).is_ok()
    });
    let seen = outcome(EXEC, &folder, "u1", &["ls", "/sys/class/net"], io::empty(), COMMAND);
    assert_eq!(seen.expect("it runs").1, "eth0\nlo\n");
    kill(child);
    until("nothing is left", || processes("sleep\x004323.5\0").is_empty());
}
