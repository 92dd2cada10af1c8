//! ROB: packets made to break a receiver. Afterwards a new queue pair works.

use super::pair::{Terms, names};
use super::receive::repair_icrc;
use super::{Nic, Scripts};
use crate::verdict::{Check, must};
use proto::random::Random;
use proto::units::Duration;
use proto::wire::infiniband::Syndrome;

pub(super) const SCRIPTS: Scripts =
    &[("ROB-01", every_opcode), ("ROB-02", random), ("ROB-03", shortest)];

/// The BTH in a frame.
const BTH: usize = 42;

fn still_works(nic: &mut Nic<'_>) -> Check<()> {
    let pair = nic.connect(Terms::default())?;
    nic.post_receives(&pair, 1)?;
    let mark = nic.mark();
    nic.send(&pair.message(0))?;
    let (syndrome, ..) =
        nic.answer(&pair, mark).map_err(|fault| fault.of("then a new queue pair"))?;
    must!(matches!(syndrome, Syndrome::Ack { .. }), "then a new queue pair answers {syndrome:?}");
    Ok(())
}

fn every_opcode(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect(Terms::default())?;
    for opcode in 0..=255u8 {
        for length in [0, 4, 48] {
            let mut octets = nic
                .frame(&pair.packet(
                    proto::wire::infiniband::Opcode::RC_SEND_ONLY,
                    0,
                    &vec![0; length],
                ))
                .octets;
            octets[BTH] = opcode;
            repair_icrc(&mut octets);
            nic.send_octets(&octets)?;
        }
    }
    let mark = nic.mark();
    nic.during(mark, Duration::from_us(20_000))?;
    still_works(nic)?;
    Ok("768 packets of every opcode, and the device goes on".to_owned())
}

fn random(nic: &mut Nic<'_>) -> Check {
    const PACKETS: u32 = 2_000;
    let mut random = Random::stream(29, "dut", "hostile packets");
    let pair = nic.connect(Terms::default())?;
    let good = nic.frame(&pair.message(0)).octets;
    for n in 0..PACKETS {
        let mut octets = good.clone();
        for _ in 0..=random.below(4) {
            let at = BTH + random.below((octets.len() - BTH) as u64) as usize;
            octets[at] = random.below(256) as u8;
        }
        repair_icrc(&mut octets);
        nic.send_octets(&octets)?;
        if n % 64 == 63 {
            let mark = nic.mark();
            nic.during(mark, Duration::from_us(2_000))?;
        }
    }
    still_works(nic)?;
    Ok(format!("{PACKETS} random packets with a right ICRC, and the device goes on"))
}

/// Datagrams of UDP that are too short for a BTH and an ICRC.
fn shortest(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect(Terms::default())?;
    let good = nic.frame(&pair.message(0)).octets;
    let mark = nic.mark();
    for length in 0..16usize {
        let mut octets = good.clone();
        octets[16..18].copy_from_slice(&(28 + length as u16).to_be_bytes());
        octets[38..40].copy_from_slice(&(8 + length as u16).to_be_bytes());
        let right = proto::wire::internet::checksum::ipv4_header(&octets[14..34]).to_be_bytes();
        octets[24..26].copy_from_slice(&right);
        octets.truncate(BTH + length);
        octets.resize(octets.len().max(60), 0);
        nic.send_octets(&octets)?;
    }
    let got = nic.packets(mark, 0)?;
    must!(got.is_empty(), "they are answered by {}", names(&got));
    still_works(nic)?;
    Ok("sixteen datagrams without a whole packet draw nothing".to_owned())
}
