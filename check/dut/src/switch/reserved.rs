//! RES: reserved group addresses stay on their link.

use super::{Scripts, Switch};
use crate::verdict::{Check, Fault};
use proto::wire::ethernet::{EthernetHeader, MacAddress};

pub(super) const SCRIPTS: Scripts = &[
    ("RES-01", |switch| stays(switch, 0x01, &[0x8808])),
    ("RES-02", |switch| stays(switch, 0x0e, &[0x88cc])),
    ("RES-03", |switch| stays(switch, 0x00, &[0x0026])),
    ("RES-04", |switch| stays(switch, 0x02, &[0x8809])),
    ("RES-05", |switch| stays(switch, 0x03, &[0x888e])),
    ("RES-06", rest),
];

/// The first of sixteen addresses. Source: IEEE 802.1Q, table 8-1.
const BLOCK: u64 = 0x0180_c200_0000;

/// The ports by which a frame to 01-80-C2-00-00-`last` comes out, with any of these EtherTypes or another.
fn leaves(switch: &mut Switch<'_>, last: u64, ethertypes: &[u16]) -> Check<Option<(u16, Vec<u8>)>> {
    for ethertype in ethertypes.iter().chain(&[0x88b5]) {
        let destination = MacAddress::from_number(BLOCK | last);
        let source = switch.station(0x100 + last as u16);
        let mut frame = switch.short(destination, source);
        EthernetHeader { destination, source, ethertype: *ethertype }.emit(&mut frame.octets);
        let came = switch.copies(1, &frame, 0)?;
        if !came.is_empty() {
            return Ok(Some((*ethertype, came.into_iter().map(|(port, _)| port).collect())));
        }
    }
    Ok(None)
}

fn stays(switch: &mut Switch<'_>, last: u64, ethertypes: &[u16]) -> Check {
    match leaves(switch, last, ethertypes)? {
        None => Ok("it leaves by no port".to_owned()),
        Some((ethertype, ports)) => {
            Err(Fault::fail(format!("with EtherType {ethertype:04x} it leaves by {ports:?}")))
        }
    }
}

fn rest(switch: &mut Switch<'_>) -> Check {
    let mut forwarded = Vec::new();
    for last in (0x04..=0x0d).chain([0x0f]) {
        if leaves(switch, last, &[])?.is_some() {
            forwarded.push(format!("-{last:02X}"));
        }
    }
    if forwarded.is_empty() {
        return Ok("none of the other eleven addresses leaves by another port".to_owned());
    }
    Err(Fault::deviation(format!("forwarded: {}", forwarded.join(" "))))
}
