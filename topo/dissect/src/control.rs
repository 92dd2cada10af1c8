//! Frames that control: PAUSE and PFC of MAC control, and the congestion notification message.

use super::ethernet::ETHERNET;
use super::layer::{Layer, layer};
use super::object::{Fault, Object};
use super::sink::Sink;
use super::{Broken, Rules, judge, tell, too_short, transport};
use proto::wire::ethernet::{Cnm, MacAddress, Pause, Pfc};

layer! {
    /// PAUSE. Source: IEEE 802.3, 31B.
    PAUSE "mac_control" "PAUSE" 4 named mac_control_name; {
        "opcode" 16 Code Or(0x0001);
        "pause_time" 16 Number Required;
    }
}

layer! {
    /// Priority-based flow control. Source: IEEE 802.3, 31D; IEEE 802.1Q, 36.
    PFC "mac_control" "PFC" 20 named mac_control_name; {
        "opcode" 16 Code Or(0x0101);
        "enbv" 16 Code Required;
        "pause_time_c0" 16 Number Or(0);
        "pause_time_c1" 16 Number Or(0);
        "pause_time_c2" 16 Number Or(0);
        "pause_time_c3" 16 Number Or(0);
        "pause_time_c4" 16 Number Or(0);
        "pause_time_c5" 16 Number Or(0);
        "pause_time_c6" 16 Number Or(0);
        "pause_time_c7" 16 Number Or(0);
    }
}

layer! {
    /// Any other opcode; what follows is payload.
    MAC_CONTROL "mac_control" "MAC control" 2 named mac_control_name; {
        "opcode" 16 Code Required;
    }
}

layer! {
    /// Congestion notification message, before its sample. Source: IEEE 802.1Q, 33.4.
    CNM "cnm" "CNM" 24 {
        "version" 4 Number Or(0);
        "reserved_v" 6 Number Or(0);
        "qfb" 6 Number Required;
        "cpid" 64 Wide Required;
        "qoffset" 16 Signed Required;
        "qdelta" 16 Signed Required;
        "encap_priority" 3 Number Or(0);
        "reserved13" 13 Number Or(0);
        "encap_dst" 48 Mac Required;
        "msdu_length" 16 Number Computed;
    }
}

fn mac_control_name(opcode: u64) -> Option<&'static str> {
    match opcode {
        0x0001 => Some("PAUSE"),
        0x0101 => Some("PFC"),
        _ => None,
    }
}

/// The table that a MAC control frame's `body` follows; the rest is padding if the opcode is known.
fn mac_control(body: &[u8]) -> &'static Layer {
    let opcode = body.first_chunk().map(|opcode| u16::from_be_bytes(*opcode));
    match opcode {
        Some(Pause::OPCODE) if body.len() >= PAUSE.octets => &PAUSE,
        Some(Pfc::OPCODE) if body.len() >= PFC.octets => &PFC,
        _ => &MAC_CONTROL,
    }
}

/// Octets that the opcode of a MAC control frame's `body` asks for, if it is known.
pub(super) fn mac_control_octets(body: &[u8]) -> Option<usize> {
    let layer = mac_control(body);
    (layer.octets != MAC_CONTROL.octets).then_some(layer.octets)
}

/// Walks over MAC control; true if an error was told.
pub(super) fn decode_mac_control(
    sink: &mut impl Sink,
    all: &[u8],
    at: usize,
    end: usize,
    rules: Rules,
) -> bool {
    let body = &all[at..end];
    let layer = mac_control(body);
    if body.len() < layer.octets {
        return too_short(sink, layer, all, at..end, rules);
    }
    sink.header(layer, body);
    judge_addresses(sink, all, at);
    let rest = &body[layer.octets..];
    if layer.octets == PFC.octets && body[2] != 0 {
        sink.wrong(format_args!(
            "mac_control.enbv has {:#04x} in its high octet, should be 0",
            body[2]
        ));
    }
    if layer.octets == MAC_CONTROL.octets {
        let opcode = MAC_CONTROL.get(body, "opcode");
        match mac_control_name(opcode) {
            Some(name) if rules.missing == 0 => {
                sink.wrong(format_args!("too short for {name}: {} octets", body.len()));
            }
            Some(_) => {}
            None => sink.wrong(format_args!("mac_control.opcode {opcode:#06x} is not known")),
        }
    }
    if !rest.is_empty() {
        sink.octets("payload", rest);
    }
    false
}

/// It goes to whoever is at the other end of the link, and bears no tag.
fn judge_addresses(sink: &mut impl Sink, all: &[u8], at: usize) {
    let group = MacAddress::MAC_CONTROL;
    if all[..MacAddress::LEN] != group.octets() {
        sink.wrong(format_args!("ethernet.dst is not {group}, where MAC control goes"));
    }
    if at > ETHERNET.octets {
        sink.wrong(format_args!("MAC control is never tagged"));
    }
}

/// What fills a MAC control frame is reserved.
pub(super) fn judge_padding(sink: &mut impl Sink, padding: &[u8]) {
    if padding.iter().any(|octet| *octet != 0) {
        sink.wrong(format_args!("padding of MAC control is not zero"));
    }
}

/// Appends MAC control; which it is follows from its keys.
pub(super) fn encode_mac_control(
    object: &mut Object,
    out: &mut Vec<u8>,
    error: Option<Broken>,
) -> Result<(), Fault> {
    let layer = if object.has_within("mac_control", "enbv") {
        &PFC
    } else if object.has_within("mac_control", "pause_time") {
        &PAUSE
    } else {
        &MAC_CONTROL
    };
    object.header(layer, out)?;
    transport::encode_rest(object, out, error)
}

/// Octets of the CNM at the front of `body`, its sample included.
pub(super) fn cnm_octets(body: &[u8]) -> Option<usize> {
    let is_there = body.len() >= CNM.octets;
    is_there.then(|| CNM.octets + CNM.get(body, "msdu_length") as usize)
}

/// Walks over a CNM; true if an error was told.
pub(super) fn decode_cnm(
    sink: &mut impl Sink,
    all: &[u8],
    at: usize,
    end: usize,
    rules: Rules,
) -> bool {
    let body = &all[at..end];
    if body.len() < CNM.octets {
        return too_short(sink, &CNM, all, at..end, rules);
    }
    tell(sink, &CNM, body);
    judge(sink, "cnm.version", CNM.get(body, "version") as usize, usize::from(Cnm::VERSION));
    let (said, present) = (CNM.get(body, "msdu_length") as usize, body.len() - CNM.octets);
    if said != present && rules.missing == 0 {
        sink.wrong(format_args!("cnm.msdu_length is {said}, {present} octets are there"));
    }
    if said > Cnm::MSDU_MAX {
        let most = Cnm::MSDU_MAX;
        sink.wrong(format_args!("cnm.msdu_length is {said}, at most {most} is allowed"));
    }
    sink.octets("payload", &body[CNM.octets..]);
    false
}

/// Appends a CNM.
pub(super) fn encode_cnm(
    object: &mut Object,
    out: &mut Vec<u8>,
    error: Option<Broken>,
) -> Result<(), Fault> {
    let cnm = object.header(&CNM, out)?;
    let begin = out.len();
    transport::encode_rest(object, out, error)?;
    let sample = out.len() - begin;
    cnm.map_or(Ok(()), |cnm| cnm.fill(out, "msdu_length", sample))
}
