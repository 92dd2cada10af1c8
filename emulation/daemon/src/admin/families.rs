//! All metric families: names and help texts. Exporters and dashboards take the names from here.

/// Prefix of all names.
const PREFIX: &str = "pausebed_";

/// A family of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The name without the prefix.
    name: &'static str,
    /// The help text.
    pub help: &'static str,
}

impl Family {
    const fn new(name: &'static str, help: &'static str) -> Family {
        Family { name, help }
    }

    /// The name with the prefix.
    pub fn full_name(self) -> String {
        format!("{PREFIX}{}", self.name)
    }
}

/// Declares families: visibility, constant, name without the prefix, help text.
macro_rules! families {
    ($($(#[$doc:meta])* $visible:vis $family:ident $name:literal $help:literal;)*) => { $(
        $(#[$doc])*
        $visible const $family: Family = Family::new($name, $help);
    )* };
}

families! {
    /// Properties of the run, as labels.
    pub(crate) RUN_INFO "run_info" "what runs";
    /// By process.
    pub FABRIC_TIME_SECONDS "fabric_time_seconds" "fabric time";
    /// By process.
    pub LATENESS_P99_FRAMES "fidelity_lateness_p99_frames" "lateness, in frame times";
    /// By process.
    pub LOST_FRAMES "fidelity_lost_frames_total" "frames that the sockets lost";
    /// By process.
    pub UNSENT_FRAMES "fidelity_unsent_frames_total" "frames that a socket did not take";
    /// By process.
    pub REFUSED_DATAGRAMS "fidelity_refused_datagrams_total" "datagrams and records that are not of this run or not whole";
    /// By process and event.
    pub(crate) CLIENT_EVENTS "management_client_events_total"
        "messages and datagrams of programs that manage the fabric";
    /// By lane.
    pub TRANSMITTED_BYTES "port_transmit_bytes_total" "octets of data frames sent";
    /// By lane.
    pub(crate) TRANSMITTED_PACKETS "port_transmit_packets_total" "data frames sent";
    /// By lane.
    pub RECEIVED_BYTES "port_receive_bytes_total" "octets of data frames received";
    /// By lane.
    pub(crate) RECEIVED_PACKETS "port_receive_packets_total" "data frames received";
    /// By lane.
    pub(crate) TRANSMITTED_CONTROL "port_transmit_control_packets_total"
        "acknowledgements, notifications and flow-control frames sent";
    /// By lane.
    pub(crate) RECEIVED_CONTROL "port_receive_control_packets_total"
        "acknowledgements, notifications and flow-control frames received";
    /// By lane.
    pub NO_ROOM_PACKETS "port_no_room_packets_total" "frames lost for want of room";
    /// By lane.
    pub MARKED_PACKETS "queue_marked_packets_total" "frames marked by the congestion point";
    /// By lane.
    pub NOTIFICATIONS_SENT "port_notifications_sent_total" "congestion notifications sent";
    /// By lane.
    pub NOTIFICATIONS_RECEIVED "port_notifications_received_total"
        "congestion notifications received";
    /// By lane.
    pub TRANSMIT_WAIT_SECONDS "port_transmit_wait_seconds_total"
        "fabric time in which a frame was ready and flow control forbade it (PortXmitWait)";
    /// By lane.
    pub PAUSED_SECONDS "port_paused_seconds_total"
        "fabric time in which flow control forbade the lane, ready frame or not";
    /// By lane.
    pub QUEUE_DEPTH_BYTES "queue_depth_bytes" "octets that wait to leave";
    /// By lane.
    pub QUEUE_WATERMARK_BYTES "queue_watermark_bytes" "the most that ever waited";
    /// By lane.
    pub BUFFER_DEPTH_BYTES "buffer_depth_bytes" "octets in the input buffer";
    /// By port.
    pub LINK_WATCHDOGS "link_watchdogs_total" "links retrained";
    /// By port and reason.
    pub DISCARDS "port_discards_total" "frames that ended here";
    /// By port and action.
    pub(crate) INJECTED_FRAMES "port_injected_frames_total" "frames that faults on purpose hit";
    /// By port, direction and priority; on Ethernet.
    pub PFC_FRAMES "pfc_frames_total" "PFC frames of a priority";
}

/// Port counters under operators' names, for ports that have them.
pub const NAMED: &[(&str, Family)] = &[
    ("np_cnp_sent", Family::new("np_cnp_sent_total", "CNPs sent")),
    (
        "np_ecn_marked_roce_packets",
        Family::new("np_ecn_marked_packets_total", "marked frames received"),
    ),
    (
        "np_ecn_marked_packets",
        Family::new("np_fecn_marked_packets_total", "packets with FECN received"),
    ),
    ("np_becn_sent", Family::new("np_becn_sent_total", "packets with BECN sent")),
    ("rp_cnp_handled", Family::new("rp_cnp_handled_total", "CNPs that slowed a flow")),
    ("rp_cnp_ignored", Family::new("rp_cnp_ignored_total", "CNPs about nothing known")),
    (
        "rp_becn_handled",
        Family::new("rp_becn_handled_total", "packets with BECN that slowed a flow"),
    ),
    ("rp_cnm_handled", Family::new("rp_cnm_handled_total", "CNMs that slowed a flow")),
    ("port_rcv_fecn", Family::new("port_fecn_received_total", "packets with FECN received")),
    ("port_rcv_becn", Family::new("port_becn_received_total", "packets with BECN received")),
    ("rx_global_pause", Family::new("pause_frames_received_total", "PAUSE frames received")),
    ("tx_global_pause", Family::new("pause_frames_sent_total", "PAUSE frames sent")),
    ("out_of_sequence", Family::new("out_of_sequence_total", "requests out of sequence")),
    ("retransmitted_packets", Family::new("retransmitted_packets_total", "packets sent again")),
];
