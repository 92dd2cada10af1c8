//! CRCs computed by crcmod and zlib, through `tests/witness/crcs.py`.

use super::python::python;
use proto::wire::infiniband::crc::{verify_icrc, verify_lpcrc, verify_vcrc};
use proto::wire::infiniband::envelope::bth_offset;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FRAMES: usize = 10_000;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("witness/crcs.py")
}

/// The output of the script, one JSON object for each line.
pub fn answers(python: &str, words: &[&str], input: &str) -> Vec<Value> {
    let mut child = Command::new(python)
        .arg(script())
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program started before");
    let mut pipe = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the script ends");
    assert!(output.status.success(), "{words:?}");
    writer.join().expect("the thread does not panic").expect("the script reads all its input");
    let text = String::from_utf8(output.stdout).expect("JSON is text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn octets(hex: &str) -> Vec<u8> {
    let octet = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(octet).collect()
}

/// The verdicts of this project, in the script's format.
fn ours(kind: &str, octets: &[u8]) -> Value {
    let link = kind == "link";
    let icrc = !link && matches!(bth_offset(octets), Ok(Some(_)));
    serde_json::json!({
        "icrc": icrc.then(|| verify_icrc(octets).is_ok()),
        "vcrc": (!link).then(|| verify_vcrc(octets).is_ok()),
        "lpcrc": link.then(|| verify_lpcrc(octets).is_ok()),
    })
}

fn verdicts(answer: &Value) -> Value {
    serde_json::json!({
        "icrc": answer["icrc"], "vcrc": answer["vcrc"], "lpcrc": answer["lpcrc"],
    })
}

#[test]
fn crcmod_agrees_on_ten_thousand_intact_and_ten_thousand_damaged_frames() {
    let Some(python) = python("crcmod") else { return };
    let frames = answers(python, &["make", &FRAMES.to_string(), "7"], "");
    assert_eq!(frames.len(), 2 * FRAMES);
    let (mut good, mut masked, mut links, mut raw) = (0, 0, 0, 0);
    for frame in &frames {
        let kind = frame["kind"].as_str().expect("a word");
        let octets = octets(frame["hex"].as_str().expect("a text"));
        assert_eq!(ours(kind, &octets), verdicts(frame), "{frame}");
        let holds = [&frame["icrc"], &frame["vcrc"], &frame["lpcrc"]]
            .into_iter()
            .all(|verdict| verdict != &Value::Bool(false));
        let whole = frame["flipped"].is_null();
        assert_eq!(holds, whole, "a CRC detects every single flipped bit: {frame}");
        good += usize::from(whole);
        // A bit in a variant field: only the VCRC covers it.
        masked += usize::from(!whole && frame["icrc"] == true);
        links += usize::from(kind == "link");
        raw += usize::from(kind == "packet" && frame["icrc"].is_null());
    }
    assert_eq!(good, FRAMES);
    assert!(links > 2_000 && raw > 3_000 && masked > 20, "{links} {raw} {masked}");
    println!(
        "{} frames: {links} link packets, {raw} raw, {masked} damaged in a variant field",
        20_000
    );
}

#[test]
fn crcmod_accepts_the_crcs_of_built_frames() {
    let Some(python) = python("crcmod") else { return };
    let frames = super::tshark::frames();
    let lines: Vec<String> = frames
        .iter()
        .map(|octets| {
            let hex: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
            format!("packet {hex}\n")
        })
        .collect();
    let answers = answers(python, &["judge"], &lines.concat());
    assert_eq!(answers.len(), frames.len());
    for answer in answers {
        assert_eq!((&answer["icrc"], &answer["vcrc"]), (&Value::Bool(true), &Value::Bool(true)));
    }
}

#[test]
fn the_script_masks_fields_as_scapy_does() {
    if python("crcmod").is_none() {
        return;
    }
    let Some(python) = python("scapy") else { return };
    let answer = &answers(python, &["compare", "500", "7"], "")[0];
    assert_eq!((&answer["compared"], &answer["agreed"]), (&500.into(), &500.into()));
}
