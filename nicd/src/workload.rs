//! What a NIC is asked to send: traffic items that post messages, open loop, or as a script says.
//!
//! Arrivals are computed when somebody looks, not when they happen: while the line is busy nobody
//! need wake for one. Every item draws from streams of its own (one for when, one for to whom), so
//! items do not disturb each other and looking more often changes nothing.

use crate::config::{Arrivals, NicConfig, Target, TrafficConfig};
use crate::wire::WireFormat;
use proto::ids::{Lid, VirtualLane};
use proto::random::Random;
use proto::units::{Duration, Instant};
pub use script::Progress;
use script::Script;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

mod script;

/// A message that an item posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkRequest {
    /// Local index of the item.
    pub item: u16,
    /// Connection class.
    pub class: u8,
    /// To whom.
    pub to: Lid,
    /// Its number within the item, modulo 2^32.
    pub number: u32,
    /// Octets.
    pub size: u32,
    /// When.
    pub at: Instant,
}

/// The first frame of a message has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageStarted {
    /// Local index of its traffic item.
    pub item: u16,
    /// To whom it goes.
    pub to: Lid,
    /// When its first bit left.
    pub at: Instant,
}

/// What an item does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadAction {
    /// It posts a message.
    Post(WorkRequest),
    /// It stops: its messages of which no frame has left are taken back.
    Stop {
        /// Local index of the item.
        item: u16,
        /// When.
        at: Instant,
    },
}

/// One traffic item at work.
#[derive(Clone, Debug)]
struct Item {
    config: TrafficConfig,
    lane: VirtualLane,
    arrivals: Random,
    targets: Random,
    posted: u64,
    /// For a backlog: how many of its targets have been given their first message.
    targets_supplied: usize,
    stopped: bool,
    /// Somebody wants it to be suspended for a while. Its arrivals go on, and nothing comes of them.
    suspended: bool,
    script: Option<Script>,
}

/// All items of one NIC.
#[derive(Clone, Debug)]
pub struct Workload {
    own: Lid,
    /// Position of our own LID among all adapters.
    own_index: usize,
    adapters: Vec<Lid>,
    items: Vec<Item>,
    /// By lane: when each item acts next, the earliest first.
    lanes: Vec<BinaryHeap<Reverse<(Instant, u16)>>>,
    /// No item acts earlier. Asked at every turn, and mostly for nothing.
    not_before: Instant,
}

impl Workload {
    /// The items of `config`, which has been checked.
    pub fn new(config: &NicConfig) -> Workload {
        let wire = WireFormat::new(config);
        let own_index = config.adapters.iter().position(|lid| *lid == config.lid);
        let mut workload = Workload {
            own: config.lid,
            own_index: own_index.unwrap_or(config.adapters.len()),
            adapters: config.adapters.clone(),
            items: Vec::with_capacity(config.traffic.len()),
            lanes: vec![BinaryHeap::new(); usize::from(config.link.data_lanes())],
            not_before: Instant::ZERO,
        };
        for (index, traffic) in config.traffic.iter().enumerate() {
            let level = config.classes[usize::from(traffic.class)].service_level;
            let stream = |purpose: &str| {
                let purpose = format_args!("{}/{purpose}", traffic.name);
                Random::stream(config.seed, &config.name, purpose)
            };
            let mut item = Item {
                config: traffic.clone(),
                lane: wire.lane(level),
                arrivals: stream("arrivals"),
                targets: stream("targets"),
                posted: 0,
                targets_supplied: 0,
                stopped: false,
                suspended: false,
                script: match &traffic.to {
                    Target::Script(steps) => Some(Script::new(steps)),
                    _ => None,
                },
            };
            let first = match &item.script {
                Some(script) => script.next().unwrap_or(Instant::NEVER).max(traffic.start),
                None => item.first_arrival(),
            };
            workload.items.push(item);
            workload.schedule(index as u16, first);
        }
        workload
    }

    /// When an item of `lane` acts next.
    pub fn next_action_at(&self, lane: VirtualLane) -> Instant {
        self.lanes[lane.index()].peek().map_or(Instant::NEVER, |Reverse((at, _))| *at)
    }

    /// The next action that is due at `now`; within a lane in order of time.
    pub fn poll_action(&mut self, now: Instant) -> Option<WorkloadAction> {
        let due = |heap: &BinaryHeap<Reverse<(Instant, u16)>>| {
            heap.peek().is_some_and(|Reverse((at, _))| *at <= now)
        };
        if now < self.not_before {
            return None;
        }
        let Some(lane) = self.lanes.iter().position(due) else {
            let first =
                |heap: &BinaryHeap<Reverse<(Instant, u16)>>| heap.peek().map(|next| next.0.0);
            self.not_before = self.lanes.iter().filter_map(first).min().unwrap_or(Instant::NEVER);
            return None;
        };
        let Reverse((at, index)) = self.lanes[lane].pop()?;
        let item = &mut self.items[usize::from(index)];
        if at >= item.config.stop {
            item.stopped = true;
            return Some(WorkloadAction::Stop { item: index, at });
        }
        if let Some(script) = &mut item.script {
            let Some(message) = script.poll(at) else { return self.poll_action(now) };
            let request = item.post_sized(index, message.to, message.size, at);
            self.schedule(index, message.next.unwrap_or(Instant::NEVER).max(at));
            return Some(WorkloadAction::Post(request));
        }
        let to = self.target(index);
        let targets = self.targets(index);
        let item = &mut self.items[usize::from(index)];
        let mut next = item.arrival_after(at, targets);
        if item.suspended {
            while next <= now {
                next = item.arrival_after(next, targets);
            }
            self.schedule(index, next);
            return self.poll_action(now);
        }
        let request = item.post(index, to, at);
        self.schedule(index, next);
        Some(WorkloadAction::Post(request))
    }

    /// The items called `name`, or all, may post from now on, or shall be suspended; which of them change.
    /// A script goes on: what others wait for cannot be left out.
    pub fn let_post(&mut self, name: Option<&str>, on: bool, now: Instant) -> Vec<u16> {
        let mut changed = Vec::new();
        for index in 0..self.items.len() {
            let item = &mut self.items[index];
            let is_meant = name.is_none_or(|name| name == item.config.name);
            if !is_meant || item.script.is_some() || item.stopped || item.suspended != on {
                continue;
            }
            item.suspended = !on;
            changed.push(index as u16);
            if on && item.config.arrivals == Arrivals::Backlog && item.config.start <= now {
                item.targets_supplied = 0;
                self.schedule(index as u16, now);
            }
        }
        changed
    }

    /// Whether there is an item of this name that [`Workload::let_post`] can change, or any at all.
    pub fn has(&self, name: Option<&str>) -> bool {
        let is_meant = |item: &Item| name.is_none_or(|name| name == item.config.name);
        self.items.iter().any(|item| is_meant(item) && item.script.is_none())
    }

    /// The first frame of a message of `item` to `to` has left: a backlog posts the next.
    pub fn on_started(&mut self, started: &MessageStarted) -> Option<WorkRequest> {
        let MessageStarted { item, to, at } = *started;
        let state = &mut self.items[usize::from(item)];
        let refills = state.config.arrivals == Arrivals::Backlog
            && !state.stopped
            && !state.suspended
            && !state.is_exhausted()
            && at < state.config.stop;
        refills.then(|| state.post(item, to, at))
    }

    /// A conversation has come so far: scripts may go on.
    pub fn on_progress(&mut self, progress: &Progress, now: Instant) {
        for index in 0..self.items.len() {
            let item = &mut self.items[index];
            let is_its = item.config.class == progress.class && !item.stopped;
            let Some(script) = item.script.as_mut().filter(|_| is_its) else { continue };
            let before = script.next();
            script.on_progress(progress, now);
            let next = script.next();
            if next != before {
                self.schedule(index as u16, next.unwrap_or(Instant::NEVER));
            }
        }
    }

    /// Enters the item's next action: an arrival, or its stop if that comes first.
    fn schedule(&mut self, index: u16, arrival: Instant) {
        let item = &self.items[usize::from(index)];
        let at = arrival.min(item.config.stop);
        if at < Instant::NEVER {
            self.lanes[item.lane.index()].push(Reverse((at, index)));
            self.not_before = self.not_before.min(at);
        }
    }

    fn targets(&self, item: u16) -> usize {
        match &self.items[usize::from(item)].config.to {
            Target::Uniform => self.adapters.len() - 1,
            Target::Lids(lids) => lids.len(),
            Target::Script(steps) => steps.len(),
        }
    }

    /// To whom the item's next message goes. A backlog supplies each target in turn, any other
    /// item draws one.
    fn target(&mut self, index: u16) -> Lid {
        let count = self.targets(index);
        let item = &mut self.items[usize::from(index)];
        let drawn = match item.config.arrivals {
            Arrivals::Backlog => item.targets_supplied % count,
            _ if count == 1 => 0,
            _ => item.targets.below(count as u64) as usize,
        };
        match &item.config.to {
            Target::Lids(lids) => lids[drawn],
            Target::Script(steps) => steps[drawn].to,
            Target::Uniform => {
                let lid = self.adapters[drawn + usize::from(drawn >= self.own_index)];
                debug_assert_ne!(lid, self.own, "nobody sends to himself");
                lid
            }
        }
    }
}

impl Item {
    fn is_exhausted(&self) -> bool {
        self.config.messages != 0 && self.posted >= self.config.messages
    }

    fn post(&mut self, index: u16, to: Lid, at: Instant) -> WorkRequest {
        let size = self.config.size.get() as u32;
        self.post_sized(index, to, size, at)
    }

    fn post_sized(&mut self, index: u16, to: Lid, size: u32, at: Instant) -> WorkRequest {
        let number = self.posted as u32;
        self.posted += 1;
        WorkRequest { item: index, class: self.config.class, to, number, size, at }
    }

    fn first_arrival(&mut self) -> Instant {
        let start = self.config.start;
        match self.config.arrivals {
            Arrivals::Poisson => start + self.exponential(),
            Arrivals::Bernoulli => self.bernoulli(start),
            Arrivals::Paced | Arrivals::Backlog => start,
        }
    }

    /// When the item posts next, having posted at `at`; asked before that request is counted.
    fn arrival_after(&mut self, at: Instant, targets: usize) -> Instant {
        if self.config.messages != 0 && self.posted + 1 >= self.config.messages {
            return Instant::NEVER;
        }
        match self.config.arrivals {
            Arrivals::Poisson => at + self.exponential(),
            Arrivals::Bernoulli => self.bernoulli(at + self.config.slot),
            Arrivals::Paced => at + self.config.interval,
            Arrivals::Backlog => {
                self.targets_supplied += 1;
                if self.targets_supplied < targets { at } else { Instant::NEVER }
            }
        }
    }

    fn exponential(&mut self) -> Duration {
        Duration::from_ps(self.arrivals.exponential(self.config.interval.as_ps()))
    }

    /// The first slot from `slot` on in which the item posts.
    fn bernoulli(&mut self, slot: Instant) -> Instant {
        let (slot_ps, interval_ps) = (self.config.slot.as_ps(), self.config.interval.as_ps());
        let mut at = slot;
        while at < self.config.stop && !self.arrivals.chance(slot_ps, interval_ps) {
            at = at + self.config.slot;
        }
        at
    }
}

#[cfg(test)]
mod tests;
