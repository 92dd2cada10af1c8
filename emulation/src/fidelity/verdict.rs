//! The verdict on the host: whether a run is valid, and if not, which dilation should be enough.

use super::meter::Lateness;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// The largest p99 of lateness, in thousandths of a frame time, with which a run is valid.
///
/// Not applied where interfaces of the host are attached, since no dilation would help there. This is the only
/// definition of the limit, a choice of this project.
pub const LATENESS_LIMIT: u64 = 100;

/// Margin of the suggested dilation, in percent.
const MARGIN_PERCENT: u64 = 125;
/// Target for the CPU load of a worker, in thousandths of a core; above it there is no reserve for bursts.
const CPU_GOAL_PERMILLE: u64 = 700;

/// The findings of all workers of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Lateness of all departures in measured windows.
    pub lateness: Lateness,
    /// Frames that the transport lost, without impairments.
    pub lost: u64,
    /// Processes that missed a heartbeat.
    pub missed: Vec<usize>,
    /// Processes that never learned of a change of the clock, or without stamps after it had taken effect.
    pub uninformed: Vec<usize>,
    /// An interface of the host is attached, whose clock cannot be dilated: lateness is reported and not
    /// judged.
    pub attached: bool,
    /// CPU time over wall time of the busiest worker, in thousandths of a core.
    pub busiest_permille: u64,
}

/// The object `fidelity` of `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// The host kept up.
    pub ok: bool,
    /// p99 of lateness over all departures in measured windows, in frame times; `None` with attached ports alone of
    /// which none has a rate.
    pub lateness_p99_frames: Option<f64>,
    /// Frames that the transport lost, without impairments.
    pub transport_lost: u64,
    /// A dilation with which this host should keep up with this scenario.
    pub suggested_dilation: u64,
    /// Why the run is not valid, one sentence each; empty if `ok`.
    pub reasons: Vec<String>,
}

/// Judges a run whose greatest dilation was `dilation`.
pub fn judge(evidence: &Evidence, dilation: NonZeroU64) -> Fidelity {
    let p99 = evidence.lateness.frames.p99();
    let is_defined = !evidence.attached || evidence.lateness.frames.count() > 0;
    let mut reasons = Vec::new();
    if p99 > LATENESS_LIMIT && !evidence.attached {
        reasons.push(format!(
            "one departure in a hundred was more than {} frame times late, {} is allowed",
            decimal(p99),
            decimal(LATENESS_LIMIT)
        ));
    }
    if evidence.lost > 0 {
        reasons.push(format!(
            "the cables lost {} frames in addition to those injected",
            evidence.lost
        ));
    }
    for process in &evidence.missed {
        reasons.push(format!("process {process} missed a heartbeat"));
    }
    for process in &evidence.uninformed {
        reasons.push(format!(
            "process {process} did not learn of a change of the dilation before it took effect"
        ));
    }
    Fidelity {
        ok: reasons.is_empty(),
        lateness_p99_frames: is_defined.then_some(p99 as f64 / 1_000.0),
        transport_lost: evidence.lost,
        suggested_dilation: suggest(evidence, p99, dilation.get()),
        reasons,
    }
}

/// While the host keeps up, lateness in wall time hardly depends on dilation. So its share of a frame time
/// falls as dilation grows, and so does the load.
fn suggest(evidence: &Evidence, p99: u64, dilation: u64) -> u64 {
    let for_lateness = dilation.saturating_mul(p99) / LATENESS_LIMIT;
    let for_load = dilation.saturating_mul(evidence.busiest_permille) / CPU_GOAL_PERMILLE;
    let failed =
        evidence.lost > 0 || !evidence.missed.is_empty() || !evidence.uninformed.is_empty();
    let for_loss = if failed { dilation.saturating_mul(2) } else { 0 };
    let enough = for_lateness.max(for_load).max(for_loss);
    round_up(enough.saturating_mul(MARGIN_PERCENT) / 100).max(1)
}

/// Rounds up to two leading digits: the estimate is not more exact than that.
fn round_up(value: u64) -> u64 {
    let mut unit = 1;
    while value / unit >= 100 {
        unit *= 10;
    }
    value.div_ceil(unit).saturating_mul(unit)
}

fn decimal(thousandths: u64) -> String {
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(late: u64) -> Evidence {
        let mut evidence = Evidence::default();
        (0..100).for_each(|_| evidence.lateness.frames.record(late));
        evidence
    }

    fn thousand() -> NonZeroU64 {
        NonZeroU64::new(1000).expect("not zero")
    }

    #[test]
    fn a_tenth_of_a_frame_time_is_allowed_and_not_more() {
        assert!(judge(&evidence(100), thousand()).ok);
        let late = judge(&evidence(101), thousand());
        assert!(!late.ok);
        assert_eq!(late.lateness_p99_frames, Some(0.101));
        assert!(late.reasons[0].contains("0.101"), "{:?}", late.reasons);
    }

    #[test]
    fn attached_ports_without_a_rate_have_no_lateness() {
        let mut evidence = Evidence { attached: true, ..Evidence::default() };
        evidence.lateness.wall_ns.record(96_862);
        let fidelity = judge(&evidence, NonZeroU64::MIN);
        assert_eq!((fidelity.ok, fidelity.lateness_p99_frames), (true, None));
        evidence.attached = false;
        assert_eq!(judge(&evidence, NonZeroU64::MIN).lateness_p99_frames, Some(0.0));
    }

    #[test]
    fn with_an_interface_attached_lateness_is_told_and_a_loss_judged() {
        let late = Evidence { attached: true, ..evidence(400) };
        let judged = judge(&late, NonZeroU64::MIN);
        assert!(judged.ok);
        assert_eq!(judged.lateness_p99_frames, Some(0.4));
        assert!(!judge(&Evidence { lost: 1, ..late }, NonZeroU64::MIN).ok);
    }

    #[test]
    fn one_lost_frame_or_one_missed_heartbeat_is_enough() {
        let lost = Evidence { lost: 1, ..evidence(0) };
        let missed = Evidence { missed: vec![3], ..evidence(0) };
        assert!(judge(&evidence(0), thousand()).ok);
        assert!(!judge(&lost, thousand()).ok);
        let verdict = judge(&missed, thousand());
        assert_eq!(verdict.reasons, ["process 3 missed a heartbeat"]);
        assert_eq!(verdict.suggested_dilation, 2500);
        let uninformed = Evidence { uninformed: vec![1], ..evidence(0) };
        assert!(judge(&uninformed, thousand()).reasons[0].contains("process 1 did not learn"));
    }

    #[test]
    fn the_suggested_dilation_would_bring_lateness_and_load_under_their_limits() {
        assert_eq!(judge(&evidence(400), thousand()).suggested_dilation, 5000);
        assert_eq!(judge(&evidence(20), thousand()).suggested_dilation, 250);
        let busy = Evidence { busiest_permille: 980, ..evidence(20) };
        assert_eq!(judge(&busy, thousand()).suggested_dilation, 1800);
        assert_eq!(judge(&evidence(0), thousand()).suggested_dilation, 1);
    }
}
