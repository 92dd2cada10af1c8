//! FID-11 live: between namespaces no frame passes but those of the fabric.

use crate::ethernet::{STAR, roomy};
use crate::prelude::*;
use scenario::run::Backend;

/// FID-11. A kernel announces itself on an interface within its first second.
pub fn no_foreign_noise(_: Level) -> Finding {
    let keys = "load = 0.2\ntransport = \"rc\"\nstart = \"1 s\"\nstop = \"2 s\"";
    let rest = roomy("") + &traffic("some", "h1", "h2", keys);
    let text = Star { nics: 2, duration: "3 s", rest: &rest, ..STAR }.text();
    let fabric = Fabric::on(Backend::Netns, &text, 1)?;
    fabric.kept_up()?;
    let mut frames = 0;
    for (nic, port) in [("h1", 1), ("h2", 2)] {
        let (nic, switch) = (fabric.totals(nic, 1)?, fabric.totals("s0", port)?);
        let [nic, switch] =
            [nic, switch].map(|end| (end.tx_frames + end.ctl_tx, end.rx_frames + end.ctl_rx));
        same("frames that the switch received of those its neighbour sent", switch.1, nic.0)?;
        same("frames that the neighbour received of those the switch sent", nic.1, switch.0)?;
        frames += nic.0;
    }
    ensure!(frames > 0, "no frame has passed");
    same("frames dropped", fabric.dropped(), 0)?;
    let foreign = fabric.experiment.result.refused.get("foreign").copied().unwrap_or(0);
    Ok(format!("{frames} frames sent and received, none dropped, {foreign} foreign ones refused"))
}
