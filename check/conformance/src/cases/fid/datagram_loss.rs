//! FID-05 live: a firewall drops some of one link's datagrams without a report.

use crate::prelude::*;
use crate::star::star;
use emulation::cable::firewall::Firewall;
use nix::unistd::Pid;
use std::sync::mpsc;
use testbed::frames::infiniband::Packet;

/// Packets over the link, each a datagram, and how many of these go through for one that does not.
const PACKETS: u32 = 10_000;
const ONE_IN: u32 = 1_000;

/// The link of the first NIC; the second's is spared.
const LINK: u32 = 0;

/// FID-05.
pub fn datagram_loss(on: Level) -> Finding {
    let stage = Stage::new(on, &star(2, "1200 ms", "", ""), "s0")?;
    let mut script = Script::default();
    script.at(ms(150), move |bed| {
        for psn in 0..PACKETS {
            bed.enqueue(1, Packet { payload: 64, ..Packet::new(1, 2, psn) }.octets());
        }
    });
    let (sender, outcome) = mpsc::channel();
    let record = stage.run_with(script, move |opening| {
        let process = Pid::from_raw(opening.daemons[0] as i32);
        let address = opening.peers[0].parse().expect("a socket reported this address itself");
        let firewall = Firewall::before(process, address, LINK, ONE_IN);
        let opening = opening.clone();
        std::thread::spawn(move || {
            let dropped = firewall.and_then(|firewall| {
                opening.wait_until(ms(1_150));
                firewall.dropped()
            });
            // An error means that the case has given up.
            let _ = sender.send(dropped);
        });
    })?;
    let dropped = outcome.recv().map_err(Failure::of_host)?;
    let dropped =
        dropped.map_err(|error| Failure::Inconclusive(format!("no firewall: {error}")))?;
    ensure!(dropped > 0, "chance dropped nothing");
    same("frames declared lost on the link", record.lines[0].lost, dropped)?;
    same("frames declared lost on the other", record.lines[1].lost, 0)?;
    same("losses that the verdict knows", record.live()?.fidelity.transport_lost, dropped)?;
    same("the run passes for faithful", record.live()?.fidelity.ok, false)?;
    Ok(format!("{dropped} of {PACKETS} dropped, declared lost on that link; inconclusive"))
}
