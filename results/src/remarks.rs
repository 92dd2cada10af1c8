//! Remarks: what a reader may expect of a run and does not find, with the reason.

use emulation::recorder::Recording;
use emulation::wiring::End;
use proto::counters::FlowReading;
use proto::ids::PortNumber;
use scenario::host::ForeignHost;
use scenario::inventory::Fabric;

/// The scheme whose notifications a foreign receiver has to send.
const BY_NOTIFICATION: &str = "dcqcn";

/// Hosts at attached ports that have got marked frames and sent no notification: the scheme could not act.
pub fn unanswered_marks(
    scheme: &str,
    foreign: &[ForeignHost],
    fabric: &Fabric,
    recordings: &[Recording],
) -> Vec<String> {
    let devices =
        || recordings.iter().flat_map(|recording| recording.nodes.iter().zip(&recording.last));
    let is_attached = |node: usize, index: usize| {
        let end = End { node, port: PortNumber::from_index(index) };
        fabric.wiring.attached_at(end).is_some()
    };
    let ports = devices().flat_map(|(node, reading)| {
        let ports = reading.ports.iter().enumerate();
        ports.filter(|(index, _)| is_attached(*node, *index)).map(|(_, port)| port)
    });
    let marks = ports.flat_map(|port| &port.lanes).map(|lane| lane.counters.marks).sum();
    let flows: Vec<&FlowReading> = devices().flat_map(|(_, reading)| &reading.flows).collect();
    foreign.iter().filter_map(|host| unanswered(scheme, marks, host, &flows)).collect()
}

/// The remark about one host, after `marks` frames left for attached hosts with a mark.
fn unanswered(
    scheme: &str,
    marks: u64,
    ForeignHost { name, number, .. }: &ForeignHost,
    flows: &[&FlowReading],
) -> Option<String> {
    let number = u64::from(number.get());
    let to_host = || {
        let to_host = flows.iter().filter(|sent| sent.flow.destination == number);
        to_host.filter(|sent| sent.first.is_some())
    };
    let is_silent = to_host().count() > 0 && to_host().all(|sent| sent.notes == 0);
    (scheme == BY_NOTIFICATION && marks > 0 && is_silent).then(|| {
        format!(
            "{marks} frames left for attached hosts with CE, and no CNP has come from {name}: a receiver that \
             sends none, as soft-RoCE, leaves {scheme} without effect on what is sent to it"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::counters::FlowId;
    use proto::ids::Lid;
    use proto::units::{Bytes, Instant};

    #[test]
    fn a_silent_receiver_of_marked_frames_is_named() {
        let (number, path_mtu) = (Lid::new(200), Bytes::new(1024));
        let host = ForeignHost { name: "v1".to_owned(), number, path_mtu };
        let flow = |destination, notes, has_left: bool| FlowReading {
            first: has_left.then_some(Instant::ZERO),
            notes,
            ..FlowReading::new(FlowId { source: 1, destination, class: 0 })
        };
        let said = |scheme, marks, sent: FlowReading| unanswered(scheme, marks, &host, &[&sent]);
        let remark = said("dcqcn", 7, flow(200, 0, true)).expect("a remark");
        assert!(remark.starts_with("7 frames left") && remark.contains("from v1:"), "{remark}");
        for none in [
            said("none", 7, flow(200, 0, true)),
            said("dcqcn", 0, flow(200, 0, true)),
            said("dcqcn", 7, flow(200, 1, true)),
            said("dcqcn", 7, flow(200, 0, false)),
            said("dcqcn", 7, flow(2, 0, true)),
        ] {
            assert_eq!(none, None);
        }
    }
}
