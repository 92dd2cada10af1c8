//! The recorder's state for each device between bins: the last totals, and the series.

use crate::recorder::bins::{Closed, FlowBin, PortBin, Span, port_totals};
use crate::recorder::ledger::Ledger;
use crate::recorder::snapshot::PortSnapshot;
use crate::recorder::{FlowSeries, PoolSeries, PortSeries};
use crate::wiring::End;
use proto::counters::{BinReading, FlowId, LaneReading, MovedFlow, PortTotals, UnmovedFlows};
use proto::ids::PortNumber;
use proto::units::Duration;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Flows that may have a series of their own at the end of a run.
pub const FLOWS_MAX: usize = 512;
/// Flows that may have one during the run. Beyond it the least reduced flows join the pools permanently.
const FLOWS_WORKING_MAX: usize = 4 * FLOWS_MAX;

/// One lane's totals at its last bin edge, and the index of its series.
struct LaneTrack {
    tc: u8,
    totals: [u64; 12],
    integrals: [u128; 3],
    series: u32,
}

impl LaneTrack {
    /// The increase since the last bin edge.
    fn take(&mut self, lane: &LaneReading, drops: u64) -> PortBin {
        let counters = &lane.counters;
        let totals = port_totals(counters, drops);
        let gauges = [&counters.out_queue, &counters.in_queue, &counters.source_queue];
        let [out, input, source] =
            std::array::from_fn(|i| Span::since(gauges[i], self.integrals[i]));
        let counts = std::array::from_fn(|i| totals[i].saturating_sub(self.totals[i]));
        self.totals = totals;
        self.integrals = gauges.map(|gauge| gauge.integral);
        PortBin { counts, out, input, source }
    }
}

/// Whether a flow has a series of its own.
enum Share {
    /// No: its reaction point has been neutral throughout, and the pool counts it.
    Neutral,
    /// Yes, this one.
    Own(u32),
    /// No longer: other flows were reduced more.
    Pooled,
}

/// A flow that its device reports individually.
struct FlowTrack {
    flow: FlowId,
    share: Share,
}

/// The state of one device.
struct DeviceTrack {
    node: usize,
    ports: Vec<Vec<LaneTrack>>,
    flows: Vec<FlowTrack>,
}

impl DeviceTrack {
    fn take_port(&mut self, index: usize, totals: &PortTotals, bins: &mut Ledger<PortBin>) {
        let lanes = &mut self.ports[index];
        for (at, lane) in totals.lanes.iter().enumerate() {
            // A lane appears when it first carries anything (VL15); lanes are ordered by number.
            if lanes.get(at).is_none_or(|track| track.tc != lane.tc) {
                let series = bins.begin_series();
                let new = LaneTrack { tc: lane.tc, totals: [0; 12], integrals: [0; 3], series };
                lanes.insert(at, new);
            }
            let drops = if at == 0 { totals.drops } else { 0 };
            bins.enter(lanes[at].series, lanes[at].take(lane, drops));
        }
    }

    /// Records the reported flows. Returns how many of them got a series of their own.
    fn take_flows(
        &mut self,
        moved: &[MovedFlow],
        length: Duration,
        bins: &mut Ledger<FlowBin>,
        pools: &mut Vec<FlowBin>,
    ) -> usize {
        let mut begun = 0;
        for (at, moved) in moved.iter().enumerate() {
            if at == self.flows.len() {
                self.flows.push(FlowTrack { flow: moved.flow, share: Share::Neutral });
            }
            let track = &mut self.flows[at];
            debug_assert_eq!(track.flow, moved.flow, "a reported flow keeps its index");
            if moved.ever_reacted && matches!(track.share, Share::Neutral) {
                track.share = Share::Own(bins.begin_series());
                begun += 1;
            }
            let &MovedFlow { tx_bytes, rate, gap, scalar, .. } = moved;
            let part = FlowBin { tx_bytes, weight_ps: length.as_ps(), rate, gap, scalar };
            match track.share {
                Share::Own(series) => bins.enter(series, part),
                Share::Neutral | Share::Pooled => add_to_pool(pools, moved.flow.class, &part),
            }
        }
        begun
    }
}

/// Adds `part` to the open pool of `class`.
fn add_to_pool(pools: &mut Vec<FlowBin>, class: u8, part: &FlowBin) {
    let class = usize::from(class);
    if pools.len() <= class {
        pools.resize(class + 1, FlowBin::default());
    }
    pools[class].pool(part);
}

/// [`FlowBin::rate_reduction`] of each series, from one pass over all bins.
fn rate_reductions(bins: &Ledger<FlowBin>) -> BTreeMap<u32, u64> {
    let mut extremes: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (_, series, bin) in bins.iter() {
        let (least, most) = extremes.entry(series).or_insert((u64::MAX, 0));
        (*least, *most) = ((*least).min(bin.rate.min), (*most).max(bin.rate.max));
    }
    extremes
        .into_iter()
        .map(|(series, (least, most))| (series, most.saturating_sub(least)))
        .collect()
}

/// The state of every device of a worker, and the pools of flows without a series.
pub(super) struct Tracks {
    devices: Vec<DeviceTrack>,
    port_bins: Ledger<PortBin>,
    flow_bins: Ledger<FlowBin>,
    /// By class.
    pools: Ledger<FlowBin>,
    /// The pools of the open bin, by class.
    open_pools: Vec<FlowBin>,
    /// Number of flows with a series of their own.
    own_series: usize,
}

impl Tracks {
    /// For devices given as (node, number of ports).
    pub(super) fn new(devices: impl Iterator<Item = (usize, usize)>) -> Tracks {
        let devices = devices.map(|(node, ports)| DeviceTrack {
            node,
            ports: (0..ports).map(|_| Vec::new()).collect(),
            flows: Vec::new(),
        });
        Tracks {
            devices: devices.collect(),
            port_bins: Ledger::new(),
            flow_bins: Ledger::new(),
            pools: Ledger::new(),
            open_pools: Vec::new(),
            own_series: 0,
        }
    }

    /// Starts to record the bin that the grid just closed.
    pub(super) fn begin(&mut self, closed: &Closed) {
        self.port_bins.turn(closed);
        self.flow_bins.turn(closed);
        self.pools.turn(closed);
        self.open_pools.fill(FlowBin::default());
    }

    /// Records what `device` reports of that bin of this length.
    pub(super) fn take(&mut self, device: usize, reading: &BinReading, length: Duration) {
        let device = &mut self.devices[device];
        for (index, totals) in reading.ports.iter().enumerate().take(device.ports.len()) {
            device.take_port(index, totals, &mut self.port_bins);
        }
        let pools = &mut self.open_pools;
        self.own_series += device.take_flows(&reading.moved, length, &mut self.flow_bins, pools);
        for unmoved in reading.unmoved.iter().filter(|unmoved| unmoved.flows > 0) {
            let &UnmovedFlows { class, flows, tx_bytes, rate, gap, scalar } = unmoved;
            let weight_ps = length.as_ps().saturating_mul(flows);
            let [rate, gap] = [rate, gap].map(|value| Span::steady(value, weight_ps));
            add_to_pool(pools, class, &FlowBin { tx_bytes, weight_ps, rate, gap, scalar });
        }
    }

    /// All devices have been recorded for that bin.
    pub(super) fn end(&mut self) {
        for (class, bin) in (0..).zip(&self.open_pools) {
            self.pools.enter(class, *bin);
        }
        if self.own_series > FLOWS_WORKING_MAX {
            self.keep_most_reduced(FLOWS_MAX);
        }
    }

    /// Every port's snapshot of that bin, whose length is now `length_ps`.
    pub(super) fn snapshot(&self, length_ps: u64) -> Vec<PortSnapshot> {
        let mut bins: Vec<Option<&PortBin>> = Vec::new();
        for (series, bin) in self.port_bins.last() {
            bins.resize(bins.len().max(*series as usize + 1), None);
            bins[*series as usize] = Some(bin);
        }
        let bin = |lane: &LaneTrack| bins.get(lane.series as usize).copied().flatten();
        let ports = self.devices.iter().flat_map(|device| {
            device.ports.iter().enumerate().map(|(index, lanes)| {
                (End { node: device.node, port: PortNumber::from_index(index) }, lanes)
            })
        });
        let sums = ports.map(|(at, lanes)| {
            let mut sum = PortSnapshot::idle(at);
            lanes.iter().filter_map(bin).for_each(|bin| sum.add(bin, length_ps));
            sum
        });
        sums.collect()
    }

    /// Keeps the series of `keep` flows, those with the largest reduction; ties are broken by flow.
    fn keep_most_reduced(&mut self, keep: usize) {
        self.own_series = self.own_series.min(keep);
        let reductions = rate_reductions(&self.flow_bins);
        let reduction = |series: u32| reductions.get(&series).copied().unwrap_or(0);
        let flows = self.devices.iter_mut().flat_map(|device| &mut device.flows);
        let mut flows: Vec<(Reverse<u64>, u32, &mut FlowTrack)> = flows
            .filter_map(|track| match track.share {
                Share::Own(series) => Some((Reverse(reduction(series)), series, track)),
                Share::Neutral | Share::Pooled => None,
            })
            .collect();
        flows.sort_by_key(|(reduction, _, track)| (*reduction, track.flow));
        let mut classes: BTreeMap<u32, u32> = BTreeMap::new();
        for (_, series, track) in flows.into_iter().skip(keep) {
            track.share = Share::Pooled;
            classes.insert(series, u32::from(track.flow.class));
        }
        let Some(most) = classes.values().max() else { return };
        let pools = self.open_pools.len().max(*most as usize + 1);
        self.open_pools.resize(pools, FlowBin::default());
        for (place, series, bin) in self.flow_bins.take_out(|s| classes.contains_key(&s)) {
            self.pools.at(place, classes[&series]).pool(&bin);
        }
    }

    /// The series, limited to [`FLOWS_MAX`] flows.
    pub(super) fn finish(mut self) -> (Vec<PortSeries>, Vec<FlowSeries>, Vec<PoolSeries>) {
        self.keep_most_reduced(FLOWS_MAX);
        let (mut ports, mut flows) = (Vec::new(), Vec::new());
        let (mut port_bins, mut flow_bins) =
            (self.port_bins.into_series(), self.flow_bins.into_series());
        for mut device in self.devices {
            device.flows.sort_by_key(|track| track.flow);
            for (index, lanes) in device.ports.into_iter().enumerate() {
                let at = End { node: device.node, port: PortNumber::from_index(index) };
                ports.extend(lanes.into_iter().map(|lane| PortSeries {
                    at,
                    tc: lane.tc,
                    bins: std::mem::take(&mut port_bins[lane.series as usize]),
                }));
            }
            flows.extend(device.flows.into_iter().filter_map(|track| match track.share {
                Share::Own(series) => {
                    let bins = std::mem::take(&mut flow_bins[series as usize]);
                    Some(FlowSeries { flow: track.flow, bins })
                }
                Share::Neutral | Share::Pooled => None,
            }));
        }
        let pools = (0..).zip(self.pools.into_series());
        let pools = pools.map(|(class, bins)| PoolSeries { class, bins });
        (ports, flows, pools.collect())
    }
}

#[cfg(test)]
mod tests;
