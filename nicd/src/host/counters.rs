//! Counters of the host stack.

/// What the host stack has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostCounters {
    /// ARP requests and neighbour solicitations answered.
    pub neighbours: u64,
    /// Echo requests answered.
    pub echoes: u64,
    /// Addresses that did not answer.
    pub unreachable: u64,
    /// Management datagrams received.
    pub datagrams: u64,
    /// Management datagrams sent.
    pub datagrams_sent: u64,
    /// Management datagrams sent again.
    pub repetitions: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections to foreign hosts that were set up.
    pub connected: u64,
    /// Connections to foreign hosts that were refused, given up or ended.
    pub lost: u64,
    /// Requests for a connection refused.
    pub refused: u64,
    /// Messages that peers have completed: SEND, WRITE, READ and atomics.
    pub messages: u64,
    /// Packets sent again by queue pairs that have ended.
    pub repeated: u64,
    /// Frames dropped because a queue of the host was full.
    pub overruns: u64,
}

impl HostCounters {
    /// Appends the counters with their names. `open` counts queue pairs; `repeated` packets that they sent
    /// again.
    pub fn read(&self, open: u64, repeated: u64, named: &mut Vec<(String, u64)>) {
        let all = [
            ("host_neighbours_answered", self.neighbours),
            ("host_echoes_answered", self.echoes),
            ("host_unreachable", self.unreachable),
            ("host_cm_received", self.datagrams),
            ("host_cm_sent", self.datagrams_sent),
            ("host_cm_repeated", self.repetitions),
            ("host_accepted", self.accepted),
            ("host_refused", self.refused),
            ("host_connected", self.connected),
            ("host_lost", self.lost),
            ("host_messages", self.messages),
            ("host_overruns", self.overruns),
            ("host_queue_pairs", open),
            ("host_repeated", self.repeated + repeated),
        ];
        named.extend(all.map(|(name, value)| (name.to_owned(), value)));
    }
}
