//! What a recorder remembers of each device between bins: the totals last seen, and the series.

use crate::recorder::bins::{Closed, FlowBin, PortBin, Series, Span, port_totals};
use crate::recorder::snapshot::PortSnapshot;
use crate::recorder::{FlowSeries, PoolSeries, PortSeries};
use crate::wiring::End;
use proto::counters::{BinReading, FlowId, LaneReading, MovedFlow, PortReading, UnmovedFlows};
use proto::ids::PortNumber;
use proto::units::Duration;
use std::cmp::Reverse;

/// Flows that may have a series of their own at the end of a run.
pub const FLOWS_MAX: usize = 512;
/// Flows that may have one while it lasts; past this the least reduced join the pools for good.
const FLOWS_WORKING_MAX: usize = 4 * FLOWS_MAX;

/// One lane's totals when its last bin closed, and its bins.
struct LaneTrack {
    tc: u8,
    totals: [u64; 12],
    integrals: [u128; 3],
    series: Series<PortBin>,
}

impl LaneTrack {
    fn take(&mut self, lane: &LaneReading, drops: u64, closed: &Closed) {
        let counters = &lane.counters;
        let totals = port_totals(counters, drops);
        let gauges = [&counters.out_queue, &counters.in_queue, &counters.source_queue];
        let [out, input, source] =
            std::array::from_fn(|i| Span::since(gauges[i], self.integrals[i]));
        let counts = std::array::from_fn(|i| totals[i].saturating_sub(self.totals[i]));
        self.series.record(closed, PortBin { counts, out, input, source });
        self.totals = totals;
        self.integrals = gauges.map(|gauge| gauge.integral);
    }
}

/// Whether a flow has bins of its own.
enum Share {
    /// Its reaction point has been neutral throughout: it counts in the pool.
    Neutral,
    /// It has.
    Own(Series<FlowBin>),
    /// It had, and others were reduced more.
    Pooled,
}

/// One flow that its device tells of.
struct FlowTrack {
    flow: FlowId,
    share: Share,
}

/// The part of a flow in a bin of that length.
fn moved_bin(moved: &MovedFlow, length: Duration) -> FlowBin {
    FlowBin {
        tx_bytes: moved.tx_bytes,
        weight_ps: length.as_ps(),
        rate: moved.rate,
        gap: moved.gap,
        scalar: moved.scalar,
    }
}

/// The part of flows that are counted together.
fn unmoved_bin(unmoved: &UnmovedFlows, length: Duration) -> FlowBin {
    let weight_ps = length.as_ps().saturating_mul(unmoved.flows);
    FlowBin {
        tx_bytes: unmoved.tx_bytes,
        weight_ps,
        rate: Span::steady(unmoved.rate, weight_ps),
        gap: Span::steady(unmoved.gap, weight_ps),
        scalar: unmoved.scalar,
    }
}

/// All that is remembered of one device.
struct DeviceTrack {
    node: usize,
    ports: Vec<Vec<LaneTrack>>,
    flows: Vec<FlowTrack>,
}

impl DeviceTrack {
    fn take_port(&mut self, index: usize, reading: &PortReading, closed: &Closed, room: usize) {
        let lanes = &mut self.ports[index];
        for (at, lane) in reading.lanes.iter().enumerate() {
            // A lane appears when it first carries anything (VL15); the order is by number.
            if lanes.get(at).is_none_or(|track| track.tc != lane.tc) {
                let series = Series::with_room(room);
                let new = LaneTrack { tc: lane.tc, totals: [0; 12], integrals: [0; 3], series };
                lanes.insert(at, new);
            }
            let drops = if at == 0 { reading.drops.total() } else { 0 };
            lanes[at].take(lane, drops, closed);
        }
    }

    /// Enters the flows told of; how many of them now have the first bin of a series of their own.
    fn take_flows(
        &mut self,
        moved: &[MovedFlow],
        closed: &Closed,
        length: Duration,
        pools: &mut Pools,
        room: usize,
    ) -> usize {
        let mut begun = 0;
        for (at, moved) in moved.iter().enumerate() {
            if at == self.flows.len() {
                self.flows.push(FlowTrack { flow: moved.flow, share: Share::Neutral });
            }
            let track = &mut self.flows[at];
            debug_assert_eq!(track.flow, moved.flow, "who is told of once keeps its place");
            if moved.ever_reacted && matches!(track.share, Share::Neutral) {
                track.share = Share::Own(Series::with_room(room - room.min(closed.place as usize)));
                begun += 1;
            }
            let part = moved_bin(moved, length);
            match &mut track.share {
                Share::Own(series) => series.record(closed, part),
                Share::Neutral | Share::Pooled => pools.add(moved.flow.class, &part),
            }
        }
        begun
    }
}

/// The open bin of all flows without a series of their own, by class.
#[derive(Default)]
struct Pools(Vec<FlowBin>);

impl Pools {
    fn add(&mut self, class: u8, part: &FlowBin) {
        let class = usize::from(class);
        if self.0.len() <= class {
            self.0.resize(class + 1, FlowBin::default());
        }
        self.0[class].pool(part);
    }
}

/// Every device of a worker, and the pools of flows without a series.
pub(super) struct Tracks {
    devices: Vec<DeviceTrack>,
    pools: Vec<Series<FlowBin>>,
    open_pools: Pools,
    /// How many flows have a series of their own.
    own_series: usize,
    /// How many bins a series will have that begins with the run.
    room: usize,
}

impl Tracks {
    /// Tracks for devices given as (node, number of ports), and for so many bins.
    pub(super) fn new(devices: impl Iterator<Item = (usize, usize)>, room: usize) -> Tracks {
        let devices = devices.map(|(node, ports)| DeviceTrack {
            node,
            ports: (0..ports).map(|_| Vec::new()).collect(),
            flows: Vec::new(),
        });
        Tracks {
            devices: devices.collect(),
            pools: Vec::new(),
            open_pools: Pools::default(),
            own_series: 0,
            room,
        }
    }

    /// Begins to enter a bin.
    pub(super) fn begin(&mut self) {
        self.open_pools.0.fill(FlowBin::default());
    }

    /// Enters what a device tells of the bin just closed, which was so long.
    pub(super) fn take(
        &mut self,
        device: usize,
        reading: &BinReading,
        closed: &Closed,
        length: Duration,
    ) {
        let device = &mut self.devices[device];
        for (index, port) in reading.ports.iter().enumerate().take(device.ports.len()) {
            device.take_port(index, port, closed, self.room);
        }
        let pools = &mut self.open_pools;
        self.own_series += device.take_flows(&reading.moved, closed, length, pools, self.room);
        for unmoved in reading.unmoved.iter().filter(|unmoved| unmoved.flows > 0) {
            pools.add(unmoved.class, &unmoved_bin(unmoved, length));
        }
    }

    /// All devices have told of the bin just closed.
    pub(super) fn end(&mut self, closed: &Closed) {
        self.pools.resize_with(self.open_pools.0.len(), Series::new);
        for (pool, bin) in self.pools.iter_mut().zip(&self.open_pools.0) {
            pool.record(closed, *bin);
        }
        if self.own_series > FLOWS_WORKING_MAX {
            self.keep_most_reduced(FLOWS_MAX);
        }
    }

    /// What every port did in the bin at `place`, which was so long.
    pub(super) fn snapshot(&self, place: u32, length_ps: u64) -> Vec<PortSnapshot> {
        let ports = self.devices.iter().flat_map(|device| {
            device.ports.iter().enumerate().map(|(index, lanes)| {
                (End { node: device.node, port: PortNumber::from_index(index) }, lanes)
            })
        });
        let sums = ports.map(|(at, lanes)| {
            let mut sum = PortSnapshot::idle(at);
            lanes.iter().for_each(|lane| sum.add(&lane.series.get(place), length_ps));
            sum
        });
        sums.collect()
    }

    /// Leaves `keep` flows their series, those with the largest reduction; ties go by flow.
    fn keep_most_reduced(&mut self, keep: usize) {
        let flows = self.devices.iter_mut().flat_map(|device| &mut device.flows);
        let mut flows: Vec<(Reverse<u64>, &mut FlowTrack)> = flows
            .filter_map(|track| match &track.share {
                Share::Own(series) => Some((Reverse(series.rate_reduction()), track)),
                Share::Neutral | Share::Pooled => None,
            })
            .collect();
        flows.sort_by_key(|(reduction, track)| (*reduction, track.flow));
        self.own_series = flows.len().min(keep);
        for (_, track) in flows.into_iter().skip(keep) {
            let Share::Own(series) = std::mem::replace(&mut track.share, Share::Pooled) else {
                continue;
            };
            let class = usize::from(track.flow.class);
            if self.pools.len() <= class {
                self.pools.resize_with(class + 1, Series::new);
                self.open_pools.0.resize(class + 1, FlowBin::default());
            }
            for (place, bin) in series.iter() {
                self.pools[class].entry(place).pool(bin);
            }
        }
    }

    /// The series, bounded.
    pub(super) fn finish(mut self) -> (Vec<PortSeries>, Vec<FlowSeries>, Vec<PoolSeries>) {
        self.keep_most_reduced(FLOWS_MAX);
        let (mut ports, mut flows) = (Vec::new(), Vec::new());
        for mut device in self.devices {
            device.flows.sort_by_key(|track| track.flow);
            for (index, lanes) in device.ports.into_iter().enumerate() {
                let at = End { node: device.node, port: PortNumber::from_index(index) };
                ports.extend(lanes.into_iter().map(|lane| PortSeries {
                    at,
                    tc: lane.tc,
                    bins: lane.series,
                }));
            }
            flows.extend(device.flows.into_iter().filter_map(|track| match track.share {
                Share::Own(bins) => Some(FlowSeries { flow: track.flow, bins }),
                Share::Neutral | Share::Pooled => None,
            }));
        }
        let pools = self.pools.into_iter().enumerate().map(|(class, bins)| PoolSeries {
            class: u8::try_from(class).expect("a flow's class is a u8"),
            bins,
        });
        (ports, flows, pools.collect())
    }
}

#[cfg(test)]
mod tests;
