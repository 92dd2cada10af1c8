//! Frames that control a link or a sender: PAUSE and PFC of MAC control, and the congestion notification message.

use super::body::Body;
use super::headers::{BCN, CNM, ETHERNET, MAC_CONTROL, PAUSE, PFC, mac_control_name};
use super::layer::Layer;
use super::object::{Fault, Object};
use super::part::Part;
use super::sink::{Sink, wrong};
use proto::wire::ethernet::{Cnm, MacAddress, Pause, Pfc};
use proto::wire::project::Bcn;

/// The table of the MAC control frame with this `body`; the rest is padding if the opcode is known.
fn mac_control(body: &[u8]) -> &'static Layer {
    let opcode = body.first_chunk().map(|opcode| u16::from_be_bytes(*opcode));
    match opcode {
        Some(Pause::OPCODE) if body.len() >= PAUSE.octets => &PAUSE,
        Some(Pfc::OPCODE) if body.len() >= PFC.octets => &PFC,
        _ => &MAC_CONTROL,
    }
}

/// MAC control.
pub(super) struct MacControl;

impl Body for MacControl {
    /// The opcode and parameters, if the opcode is known.
    fn lengths(&self, octets: &[u8]) -> [Option<usize>; 2] {
        let layer = mac_control(octets);
        [(layer.octets != MAC_CONTROL.octets).then_some(layer.octets), None]
    }

    fn decode(&self, sink: &mut dyn Sink, part: Part<'_>) -> bool {
        let body = part.octets();
        let layer = mac_control(body);
        let Some(rest) = part.header(sink, layer) else { return true };
        let group = MacAddress::MAC_CONTROL;
        if part.frame[..MacAddress::LEN] != group.octets() {
            wrong!(sink, "ethernet.dst is not {group}, where MAC control goes");
        }
        if part.start > ETHERNET.octets {
            wrong!(sink, "MAC control is never tagged");
        }
        if layer.octets == PFC.octets && body[2] != 0 {
            wrong!(sink, "mac_control.enbv has {:#04x} in its high octet, should be 0", body[2]);
        }
        if layer.octets == MAC_CONTROL.octets {
            let opcode = MAC_CONTROL.get(body, "opcode");
            match mac_control_name(opcode) {
                Some(name) if part.is_whole() => {
                    wrong!(sink, "too short for {name}: {} octets", body.len());
                }
                Some(_) => {}
                None => wrong!(sink, "mac_control.opcode {opcode:#06x} is not known"),
            }
        }
        if rest.len() > 0 {
            sink.octets("payload", rest.octets());
        }
        false
    }

    /// The keys determine the opcode.
    fn encode(&self, object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
        let has = |field| object.has_within("mac_control", field);
        let layer = match (has("enbv"), has("pause_time")) {
            (true, _) => &PFC,
            (false, true) => &PAUSE,
            (false, false) => &MAC_CONTROL,
        };
        object.header(layer, out)?;
        object.append_rest(out).map(drop)
    }
}

/// Reports padding of MAC control that is not zero: it is reserved.
pub(super) fn judge_padding(sink: &mut dyn Sink, padding: &[u8]) {
    if padding.iter().any(|octet| *octet != 0) {
        wrong!(sink, "padding of MAC control is not zero");
    }
}

/// A congestion notification message: a header, and a sample of the frame that it is about.
pub(super) struct Message {
    layer: &'static Layer,
    version: u8,
    /// The field with the length of the sample.
    length: &'static str,
    /// The longest sample, octets.
    most: usize,
}

/// The message of QCN.
pub(super) static CNM_MESSAGE: Message =
    Message { layer: &CNM, version: Cnm::VERSION, length: "msdu_length", most: Cnm::MSDU_MAX };

/// The message of BCN.
pub(super) static BCN_MESSAGE: Message =
    Message { layer: &BCN, version: Bcn::VERSION, length: "length", most: Bcn::SAMPLE_MAX };

impl Body for Message {
    fn lengths(&self, octets: &[u8]) -> [Option<usize>; 2] {
        let header = self.layer.octets;
        let is_there = octets.len() >= header;
        [is_there.then(|| header + self.layer.get(octets, self.length) as usize), None]
    }

    fn decode(&self, sink: &mut dyn Sink, part: Part<'_>) -> bool {
        let layer = self.layer;
        let Some(sample) = part.header(sink, layer) else { return true };
        let [version, said] = ["version", self.length].map(|name| layer.get(part.octets(), name));
        let (key, length, most) = (layer.key, self.length, self.most);
        sink.judge(&format_args!("{key}.version"), version as usize, usize::from(self.version));
        if said as usize != sample.len() && sample.is_whole() {
            wrong!(sink, "{key}.{length} is {said}, {} octets are there", sample.len());
        }
        if said as usize > most {
            wrong!(sink, "{key}.{length} is {said}, at most {most} is allowed");
        }
        sink.octets("payload", sample.octets());
        false
    }

    fn encode(&self, object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
        let message = object.header(self.layer, out)?;
        let sample = object.append_rest(out)?;
        message.map_or(Ok(()), |message| message.fill(out, self.length, sample))
    }
}
