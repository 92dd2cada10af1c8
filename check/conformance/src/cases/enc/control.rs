//! ENC-08, ENC-09: PFC and PAUSE octet for octet, and what is neither.

use crate::prelude::*;
use crate::samples::{crc32, hex};
use proto::wire::ethernet::{MacAddress, MacControl, Pause, Pfc, crc};

const PORT: MacAddress = MacAddress::new([0x02, 0x00, 0x00, 0x00, 0x12, 0x34]);

/// What both begin with: the group, the port, the EtherType.
const HEADER: [u8; 14] = [0x01, 0x80, 0xc2, 0, 0, 1, 0x02, 0, 0, 0, 0x12, 0x34, 0x88, 0x08];

/// The frame as it should be: header, parameters, zeros up to 60 octets.
fn expected(parameters: &[u8]) -> Vec<u8> {
    let mut frame = [&HEADER[..], parameters].concat();
    frame.resize(60, 0);
    frame
}

fn check(control: MacControl, parameters: &[u8]) -> Result<()> {
    let frame = control.to_octets(PORT);
    same(format!("{control:?}"), hex(&frame), hex(&expected(parameters)))?;
    let read = MacControl::parse(&frame)?;
    ensure!(read == control, "{control:?} is read back as {read:?}");
    let fcs = crc::fcs(&frame);
    same("FCS bit by bit", crc32(&frame), fcs)?;
    let on_the_wire = [&frame[..], &fcs.to_le_bytes()].concat();
    same("octets with FCS", on_the_wire.len(), 64)?;
    let without = crc::without_fcs(&on_the_wire)?;
    ensure!(without == frame, "the FCS that was appended does not hold");
    Ok(())
}

/// ENC-08: pause for priority 3, resume for 4; then every vector there is.
pub fn pfc_layout(_: Level) -> Finding {
    let [three, four] = [3, 4].map(Priority::truncate);
    let pfc = Pfc::default().with(three, 65_535).with(four, 0);
    let mut parameters = [0; 20];
    parameters[..4].copy_from_slice(&[0x01, 0x01, 0x00, 0x18]);
    parameters[4 + 6..4 + 8].copy_from_slice(&[0xff, 0xff]);
    check(MacControl::Pfc(pfc), &parameters)?;
    for vector in 0..=u8::MAX {
        let mut pfc = Pfc::default();
        let mut parameters = vec![0x01, 0x01, 0x00, vector];
        for priority in (0..8).map(Priority::truncate) {
            let speaks = vector >> priority.get() & 1 == 1;
            let time = if speaks { 0x0102 * (u16::from(priority.get()) + 1) } else { 0 };
            parameters.extend(time.to_be_bytes());
            if speaks {
                pfc = pfc.with(priority, time);
            }
            same("what it says", pfc.time(priority) == Some(time), speaks)?;
        }
        check(MacControl::Pfc(pfc), &parameters)?;
    }
    Ok("257 frames octet for octet: group address, untagged, zeros up to 60 octets, FCS".into())
}

/// ENC-09: PAUSE, and what the opcode tells apart.
pub fn pause_layout(_: Level) -> Finding {
    for time in [0x1234, 0, 1, 0xffff] {
        let [high, low] = u16::to_be_bytes(time);
        check(MacControl::Pause(Pause { time }), &[0x00, 0x01, high, low])?;
    }
    let read = |parameters: &[u8]| MacControl::parse(&expected(parameters));
    let pause = read(&[0, 1, 0x12, 0x34]);
    ensure!(pause == Ok(MacControl::Pause(Pause { time: 0x1234 })), "{pause:?}");
    let pfc = read(&[1, 1, 0, 1]);
    let xon = Pfc::default().with(Priority::truncate(0), 0);
    ensure!(pfc == Ok(MacControl::Pfc(xon)), "{pfc:?}");
    let mut unknown = 0;
    for opcode in (0..=u16::MAX).filter(|opcode| !matches!(opcode, 0x0001 | 0x0101)) {
        let found = read(&opcode.to_be_bytes());
        ensure!(found == Ok(MacControl::Unknown(opcode)), "{opcode:#06x}: {found:?}");
        unknown += 1;
    }
    Ok(format!("PAUSE and PFC are told apart; {unknown} other opcodes are unknown and no error"))
}
