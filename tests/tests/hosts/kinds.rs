//! A lab with hosts of all three kinds. It needs Docker, a static busybox, and the rights for namespaces.

use super::has_image;
use super::laboratory::alone;
use super::place::Place;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

const IMAGE: &str = "pausebed-test-busybox";
const BUSYBOX: &str = "/bin/busybox";

/// Standard output of `docker`, or what it reported.
fn docker(words: &[&str]) -> Result<String, String> {
    let output = Command::new("docker").args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// An image with busybox alone, removed when this is dropped.
struct Busybox;

impl Busybox {
    fn build(context: &Path) -> Result<Busybox, String> {
        let bin = context.join("bin");
        let made = fs::create_dir(&bin)
            .and_then(|()| fs::copy(BUSYBOX, bin.join("busybox")))
            .and_then(|_| {
                ["cat", "ping", "sh"].iter().try_for_each(|name| symlink("busybox", bin.join(name)))
            })
            .and_then(|()| fs::write(context.join("Dockerfile"), "FROM scratch\nCOPY bin /bin\n"));
        made.map_err(|error| format!("{BUSYBOX}: {error}"))?;
        docker(&["build", "--quiet", "--tag", IMAGE, &context.display().to_string()])?;
        Ok(Busybox)
    }
}

impl Drop for Busybox {
    fn drop(&mut self) {
        // A failure leaves an image behind, and no more.
        let _ = docker(&["rmi", "--force", IMAGE]);
    }
}

#[test]
fn a_container_a_namespace_and_a_machine_answer_each_other() {
    let _alone = alone();
    if !nix::unistd::geteuid().is_root() || !has_image() {
        skip::because!("containers as hosts need root");
        return;
    }
    let place = Place::new();
    let context = tempfile::tempdir().expect("a folder");
    let _image = match Busybox::build(context.path()) {
        Ok(image) => image,
        Err(reason) => return skip::because!("no image of busybox: {reason}"),
    };
    let before = docker(&["ps", "--all", "--quiet"]);
    let file = super::in_repository("tests/tests/hosts/kinds.toml").display().to_string();
    place.good(&["up", &file, "--name", "one"]);
    for (host, other) in [("c1", 2), ("c1", 3), ("n1", 1), ("n1", 3), ("v1", 1), ("v1", 2)] {
        let words = ["exec", host, "--", "ping", "-c", "1", &format!("198.18.0.{other}")];
        let said = place.good(&words);
        assert!(said.contains("1 packets transmitted, 1 "), "{host} to {other}: {said}");
    }
    let ended = place.run(&["exec", "c1", "--", "sh", "-c", "exit 7"]);
    assert_eq!(ended.status.code(), Some(7));
    // Twelve echoes, and for each of three pairs an ARP request at both other ports and its answer. More follow if a
    // kernel confirms a neighbour meanwhile.
    assert!(place.total("one", "tx_frames") >= 12 + 9);
    place.down("one");
    assert_eq!(docker(&["ps", "--all", "--quiet"]), before);
    place.assert_empty();
}
