//! Python with the packages crcmod, zlib and scapy, if they are installed.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A Python with `module`; says why and returns `None` if there is none.
pub fn python(module: &str) -> Option<&'static str> {
    let has = |python: &&str| {
        let answer = Command::new(python).args(["-c", &format!("import {module}")]).output();
        answer.is_ok_and(|answer| answer.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has);
    if found.is_none() {
        skip::because!("no python3 with {module} is installed (Debian: python3-{module})");
    }
    found
}

/// Octets as lower-case hexadecimal text.
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// scapy's dissection of each frame; `None` if scapy is missing.
pub fn scapy(frames: &[Vec<u8>]) -> Option<Vec<Value>> {
    let python = python("scapy")?;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("frames");
    let lines: String = frames.iter().map(|octets| hex(octets) + "\n").collect();
    std::fs::write(&file, lines).expect("a file");
    let script = "../check/conformance/src/cases/enc/scapy_roce.py";
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    let output =
        Command::new(python).arg(script).arg(&file).output().expect("the program started before");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("JSON is text");
    let told: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(told.len(), frames.len(), "one answer for each frame");
    Some(told)
}
