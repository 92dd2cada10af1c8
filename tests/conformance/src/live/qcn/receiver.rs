//! QCN-06 live: messages to a NIC that sends, of versions that nobody knows yet and with bits set that are
//! reserved; what they do to its rate is read off its line.

use super::{qcn, star};
use crate::bench::packets::congestion::CNPV;
use crate::case::{Failure, Finding, ensure, same};
use crate::groups::qcn::receiver::{KINDS, message};
use crate::live::cached::Cached;
use crate::live::ethernet::{FRAME, RATE};
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::tester::Script;
use crate::live::{ms, us};
use proto::units::{Bytes, Duration, Instant};
use proto::wire::ethernet::VlanTag;

static RUN: Cached<Record> = Cached::new(run, |record| record.fidelity.ok);

/// Nothing but messages changes the rate: neither timer nor counter.
const STILL: &str =
    "rpg_time_reset = \"100 s\"\nrpg_byte_reset = \"1 GB\"\nrpg_min_rate = \"0.1 Mbps\"";
/// When the first message comes, how far apart they are, and what of that time is for frames that left
/// before the message was known.
const FIRST: Instant = ms(300);
const EVERY: Duration = us(200_000);
const AFTER: Duration = us(10_000);

fn told(number: usize) -> Instant {
    FIRST + EVERY * number as u64
}

fn run() -> Result<Record, Failure> {
    let rest = format!(
        "{}[[traffic]]\nname = \"flow\"\nfrom = \"h1\"\nto = \"h2\"\nsl = {CNPV}\n\
         arrivals = \"backlog\"\nsize = \"2048 B\"\ntransport = \"uc\"\nstart = \"100 ms\"\n",
        qcn(STILL)
    );
    let domain = format!("cnpv = [{CNPV}]");
    let stage = Stage::new(&star(2, "1600 ms", &domain, &rest), "h1")?;
    let mut script = Script::default();
    for (number, (kind, _)) in KINDS.into_iter().enumerate() {
        let frame = message(kind, (1, 2));
        script.at(told(number), move |tester| tester.send_frame(1, &frame));
    }
    stage.run(script)
}

/// QCN-06.
pub fn version() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let frame = Bytes::new(FRAME + VlanTag::LEN as u64);
    let (mut owed, mut seen) = (RATE.get(), Vec::new());
    for (number, ((version, reserved), is_known)) in KINDS.into_iter().enumerate() {
        let what = format!("version {version}, reserved {reserved:#x}");
        let (from, to) = (told(number), told(number + 1));
        let lost: Vec<_> = record.dropped(1, from, to).iter().map(|reason| reason.name()).collect();
        let expected: &[&str] = if is_known { &[] } else { &["malformed"] };
        ensure(lost == expected, || format!("{what}: lost for {lost:?}"))?;
        if is_known {
            owed = owed / 4 * 3;
        }
        let times: Vec<Instant> = record.packets(1).map(|seen| seen.at).collect();
        let mut times = times.into_iter().filter(|at| *at >= from + AFTER && *at < to);
        let first = times.next().ok_or_else(|| format!("{what}: nothing leaves"))?;
        let (last, gaps) = times.fold((first, 0), |(_, gaps), at| (at, gaps + 1));
        let octets = frame.get() * gaps;
        let rate =
            u128::from(octets) * 8_000_000_000_000 / u128::from(last.since(first).as_ps().max(1));
        let off = (rate as f64 / owed as f64 - 1.0).abs();
        ensure(off < 0.005, || format!("{what}: {rate} bit/s leave, expected {owed}"))?;
        seen.push(format!("{:.2}", rate as f64 / 1e6));
    }
    let known = KINDS.iter().filter(|(_, is_known)| *is_known).count() as u64;
    same("messages heeded", record.named(1, "rp_cnm_handled"), known)?;
    same("messages discarded", record.named(1, "rp_cnm_malformed"), KINDS.len() as u64 - known)?;
    let flow = record.device().flows.first().ok_or_else(|| "the NIC has no flow".to_owned())?;
    same("rate at the end", flow.rate.value, owed)?;
    Ok(format!(
        "versions 1 and 15 discarded and counted, reserved bits ignored: {} Mb/s on the line after each",
        seen.join(", ")
    ))
}
