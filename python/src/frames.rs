//! Frames: decoded to JSON, encoded from it, checked, and their CRCs.

use crate::{detached, error};
use dissect::json::JsonSink;
use dissect::source::{self, Packet, Visitor};
use dissect::verify::{KEPT, Settings, verify};
use dissect::{Fcs, Meta, Rules};
use proto::technology::Technology;
use proto::wire::infiniband::crc;
use proto::wire::roce::{Layout, checks};
use pyo3::pybacked::PyBackedBytes;
use pyo3::{PyResult, Python, pyfunction};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;

/// The largest payload, octets.
const MTU: usize = 4096;

/// The technology that `word` names.
fn technology(word: Option<&str>) -> PyResult<Option<Technology>> {
    let parse = |word: &str| {
        let wrong = || error(format!("link is \"infiniband\" or \"ethernet\", not {word:?}"));
        serde_json::from_value(word.into()).map_err(|_| wrong())
    };
    word.map(parse).transpose()
}

fn fcs(word: &str) -> PyResult<Fcs> {
    match word {
        "auto" => Ok(Fcs::Auto),
        "yes" => Ok(Fcs::Yes),
        "no" => Ok(Fcs::No),
        _ => Err(error(format!("fcs is \"auto\", \"yes\" or \"no\", not {word:?}"))),
    }
}

/// Decodes the octets of one frame to a JSON object.
#[pyfunction]
#[pyo3(signature = (octets, link=None, fcs="auto"))]
pub fn decode_frame(octets: &[u8], link: Option<&str>, fcs: &str) -> PyResult<String> {
    let rules = Rules { fcs: self::fcs(fcs)?, mtu: MTU };
    let technology = technology(link)?.unwrap_or_else(|| source::guess(octets));
    let mut json = JsonSink::default();
    json.begin(&Meta::new(1, technology, octets.len()));
    dissect::decode(&mut json, technology, octets, octets.len(), rules);
    Ok(String::from_utf8_lossy(json.finish()).into_owned())
}

/// The lines of JSON of a capture, and what of it could not be read.
struct Lines {
    rules: Rules,
    json: JsonSink,
    lines: Vec<u8>,
    unreadable: Vec<String>,
}

impl Visitor for Lines {
    fn frame(&mut self, packet: Packet<'_>) -> io::Result<()> {
        let Packet { meta, octets, fcs } = packet;
        let fcs = if self.rules.fcs == Fcs::Auto { fcs } else { self.rules.fcs };
        let rules = Rules { fcs, ..self.rules };
        self.json.begin(&meta);
        dissect::decode(&mut self.json, meta.technology, octets, meta.wire_length, rules);
        self.lines.extend_from_slice(self.json.finish());
        Ok(())
    }

    fn unreadable(&mut self, what: &str) {
        self.unreadable.push(what.to_owned());
    }
}

/// Decodes a capture, or a text with octets in hex, to lines of JSON. Also what could not be read, in sentences.
#[pyfunction]
#[pyo3(signature = (file, link=None, fcs="auto"))]
pub fn decode_capture(
    py: Python<'_>,
    file: PathBuf,
    link: Option<&str>,
    fcs: &str,
) -> PyResult<(Vec<u8>, Vec<String>)> {
    let rules = Rules { fcs: self::fcs(fcs)?, mtu: MTU };
    let link = technology(link)?;
    detached(py, || {
        let (json, lines, unreadable) = Default::default();
        let mut read = Lines { rules, json, lines, unreadable };
        source::visit(File::open(file)?, link, &mut read)?;
        Ok((read.lines, read.unreadable))
    })
}

/// Encodes a frame from a JSON object.
#[pyfunction]
pub fn encode_frame(object: &str) -> PyResult<Vec<u8>> {
    dissect::encode(object).map(|frame| frame.octets).map_err(error)
}

/// Checks a capture; the report of `pausebed verify --json`, with at most `kept` findings of each rule.
#[pyfunction]
#[pyo3(signature = (file, kept=KEPT))]
pub fn verify_capture(py: Python<'_>, file: PathBuf, kept: u64) -> PyResult<String> {
    detached(py, || {
        let input = BufReader::with_capacity(1 << 16, File::open(&file)?);
        let report = verify(input, &file.display().to_string(), &Settings::default(), kept);
        serde_json::to_string(&report.map_err(error)?).map_err(error)
    })
}

/// The right ICRC of each frame; `None` for frames without one. Ethernet frames come without FCS.
#[pyfunction]
#[pyo3(signature = (frames, link=None))]
pub fn icrc(
    py: Python<'_>,
    frames: Vec<PyBackedBytes>,
    link: Option<&str>,
) -> PyResult<Vec<Option<u32>>> {
    let link = technology(link)?;
    let of = |octets: &[u8]| match link.unwrap_or_else(|| source::guess(octets)) {
        Technology::Infiniband => crc::icrc(octets),
        Technology::Ethernet => {
            Layout::find(octets).ok()?.map(|layout| checks::icrc(octets, &layout))
        }
    };
    detached(py, || Ok(frames.iter().map(|octets| of(octets)).collect()))
}

/// The right VCRC of each InfiniBand packet.
#[pyfunction]
pub fn vcrc(py: Python<'_>, frames: Vec<PyBackedBytes>) -> PyResult<Vec<u16>> {
    detached(py, || Ok(frames.iter().map(|octets| crc::vcrc(octets)).collect()))
}
