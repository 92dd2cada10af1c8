//! What a recorder remembers of each device between bins: the totals last seen, and the series.

use crate::recorder::bins::{Closed, FlowBin, PortBin, Series, Span, port_totals};
use crate::recorder::snapshot::PortSnapshot;
use crate::recorder::{FlowSeries, PoolSeries, PortSeries};
use crate::wiring::End;
use proto::counters::{DeviceReading, FlowId, FlowReading, LaneReading, PortReading};
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use std::cmp::Reverse;

/// Flows that may have a series of their own at the end of a run.
pub const FLOWS_MAX: usize = 512;
/// Flows that may have one while it lasts; past this the least reduced join the pools for good.
const FLOWS_WORKING_MAX: usize = 4 * FLOWS_MAX;

/// The bin just closed, in time.
#[derive(Clone, Copy)]
pub(super) struct Elapsed {
    /// How long it was.
    pub length: Duration,
    /// When it ended.
    pub end: Instant,
}

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

/// One flow's totals when the last bin closed.
struct FlowTrack {
    flow: FlowId,
    tx_bytes: u64,
    rate: u128,
    gap: u128,
    share: Share,
}

impl FlowTrack {
    fn new(flow: FlowId) -> FlowTrack {
        FlowTrack { flow, tx_bytes: 0, rate: 0, gap: 0, share: Share::Neutral }
    }

    /// The flow's part in the bin that ends now.
    fn take(&mut self, reading: &FlowReading, bin: Elapsed) -> FlowBin {
        let [rate, gap] = [&reading.rate, &reading.gap].map(|gauge| gauge.integral_at(bin.end));
        let taken = FlowBin {
            tx_bytes: reading.tx_bytes.saturating_sub(self.tx_bytes),
            weight_ps: bin.length.as_ps(),
            rate: Span::between(&reading.rate, self.rate, rate),
            gap: Span::between(&reading.gap, self.gap, gap),
            scalar: reading.scalar,
        };
        (self.tx_bytes, self.rate, self.gap) = (reading.tx_bytes, rate, gap);
        taken
    }
}

/// All that is remembered of one device.
struct DeviceTrack {
    node: usize,
    ports: Vec<Vec<LaneTrack>>,
    flows: Vec<FlowTrack>,
}

impl DeviceTrack {
    fn take_port(&mut self, index: usize, reading: &PortReading, closed: &Closed) {
        let lanes = &mut self.ports[index];
        for (at, lane) in reading.lanes.iter().enumerate() {
            // A lane appears when it first carries anything (VL15); the order is by number.
            if lanes.get(at).is_none_or(|track| track.tc != lane.tc) {
                let series = Series::new();
                let new = LaneTrack { tc: lane.tc, totals: [0; 12], integrals: [0; 3], series };
                lanes.insert(at, new);
            }
            let drops = if at == 0 { reading.drops.total() } else { 0 };
            lanes[at].take(lane, drops, closed);
        }
    }

    fn take_flows(
        &mut self,
        readings: &[FlowReading],
        closed: &Closed,
        elapsed: Elapsed,
        pools: &mut Vec<FlowBin>,
    ) {
        for (at, reading) in readings.iter().enumerate() {
            if self.flows.get(at).is_none_or(|track| track.flow != reading.flow) {
                self.flows.insert(at, FlowTrack::new(reading.flow));
            }
            let track = &mut self.flows[at];
            let bin = track.take(reading, elapsed);
            if reading.ever_reacted && matches!(track.share, Share::Neutral) {
                track.share = Share::Own(Series::new());
            }
            match &mut track.share {
                Share::Own(series) => series.record(closed, bin),
                Share::Neutral | Share::Pooled => {
                    let class = usize::from(reading.flow.class);
                    if pools.len() <= class {
                        pools.resize(class + 1, FlowBin::default());
                    }
                    pools[class].pool(&bin);
                }
            }
        }
    }
}

/// Every device of a worker, and the pools of flows without a series.
pub(super) struct Tracks {
    devices: Vec<DeviceTrack>,
    pools: Vec<Series<FlowBin>>,
    open_pools: Vec<FlowBin>,
}

impl Tracks {
    /// Tracks for devices given as (node, number of ports).
    pub(super) fn new(devices: impl Iterator<Item = (usize, usize)>) -> Tracks {
        let devices = devices.map(|(node, ports)| DeviceTrack {
            node,
            ports: (0..ports).map(|_| Vec::new()).collect(),
            flows: Vec::new(),
        });
        Tracks { devices: devices.collect(), pools: Vec::new(), open_pools: Vec::new() }
    }

    /// Enters the bin just closed from every device's reading.
    pub(super) fn take(&mut self, readings: &[DeviceReading], closed: &Closed, elapsed: Elapsed) {
        self.open_pools.fill(FlowBin::default());
        for (device, reading) in self.devices.iter_mut().zip(readings) {
            for (index, port) in reading.ports.iter().enumerate().take(device.ports.len()) {
                device.take_port(index, port, closed);
            }
            device.take_flows(&reading.flows, closed, elapsed, &mut self.open_pools);
        }
        self.pools.resize_with(self.open_pools.len(), Series::new);
        for (pool, bin) in self.pools.iter_mut().zip(&self.open_pools) {
            pool.record(closed, *bin);
        }
        if self.own_series() > FLOWS_WORKING_MAX {
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

    fn own_series(&self) -> usize {
        let flows = self.devices.iter().flat_map(|device| &device.flows);
        flows.filter(|track| matches!(track.share, Share::Own(_))).count()
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
        for (_, track) in flows.into_iter().skip(keep) {
            let Share::Own(series) = std::mem::replace(&mut track.share, Share::Pooled) else {
                continue;
            };
            let class = usize::from(track.flow.class);
            if self.pools.len() <= class {
                self.pools.resize_with(class + 1, Series::new);
                self.open_pools.resize(class + 1, FlowBin::default());
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
        for device in self.devices {
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
