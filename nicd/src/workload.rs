//! The workload of a NIC: traffic items that post messages, open loop or in the steps of a script.
//!
//! Arrivals are computed when the NIC polls, not when they happen, so a NIC with a busy line does not wake
//! for them. Each item draws from two random streams of its own, one for arrival times and one for receivers.
//! So items do not influence each other, and polling more often changes nothing.

use crate::config::{Arrivals, NicConfig, Target, TrafficConfig};
use crate::wire::WireFormat;
use proto::ids::{Lid, ServiceLevel, VirtualLane};
use proto::random::Random;
use proto::units::{Duration, Instant};
pub use script::Progress;
use script::Script;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

mod script;

/// A message to post. Source: IBTA Vol 1, 10.8.2 (work requests).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkRequest {
    /// Local index of the traffic item.
    pub item: u16,
    /// Connection class.
    pub class: u8,
    /// The receiver.
    pub to: Lid,
    /// The message's number within its item, modulo 2^32.
    pub number: u32,
    /// Octets of the message.
    pub size: u32,
    /// When the message is posted.
    pub at: Instant,
}

/// The first frame of a message has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageStarted {
    /// Local index of the traffic item.
    pub item: u16,
    /// The receiver.
    pub to: Lid,
    /// When the first bit left.
    pub at: Instant,
}

/// An action of a traffic item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadAction {
    /// The item posts a message.
    Post(WorkRequest),
    /// The item stops. Its messages of which no frame has left are withdrawn.
    Stop {
        /// Local index of the item.
        item: u16,
        /// When the item stops.
        at: Instant,
    },
}

/// The state of a traffic item.
#[derive(Clone, Debug)]
struct Item {
    config: TrafficConfig,
    level: ServiceLevel,
    lane: VirtualLane,
    arrivals: Random,
    targets: Random,
    posted: u64,
    /// Backlog only: how many receivers have got their first message.
    targets_supplied: usize,
    stopped: bool,
    /// The item is suspended by an operator. Its arrivals continue but post nothing.
    suspended: bool,
    script: Option<Script>,
}

/// Times of the next actions of items, soonest first.
type Actions = BinaryHeap<Reverse<(Instant, u16)>>;

fn first_at(actions: &Actions) -> Instant {
    actions.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at)
}

/// The traffic items of one NIC.
#[derive(Clone, Debug)]
pub struct Workload {
    own: Lid,
    /// Index of this NIC's LID in `adapters`.
    own_index: usize,
    adapters: Vec<Lid>,
    items: Vec<Item>,
    /// Per lane: the time of each item's next action, soonest first.
    lanes: Vec<Actions>,
    /// No item acts before this instant. It makes the usual poll cheap.
    not_before: Instant,
}

impl Workload {
    /// The items of the validated `config`.
    pub fn new(config: &NicConfig) -> Workload {
        let wire = WireFormat::new(config);
        let own_index = config.adapters.iter().position(|lid| *lid == config.lid);
        let mut workload = Workload {
            own: config.lid,
            own_index: own_index.unwrap_or(config.adapters.len()),
            adapters: config.adapters.clone(),
            items: Vec::with_capacity(config.traffic.len()),
            lanes: vec![Actions::new(); usize::from(config.link.data_lanes())],
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
                level,
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

    /// Items of service level s act on lane `lane(s)` from now on.
    pub fn set_lanes(&mut self, lane: impl Fn(ServiceLevel) -> VirtualLane) {
        let due: Vec<_> = self.lanes.iter_mut().flat_map(|lane| lane.drain()).collect();
        for item in &mut self.items {
            let lane = lane(item.level);
            if lane.index() < self.lanes.len() {
                item.lane = lane;
            }
        }
        for Reverse((at, index)) in due {
            let lane = self.items[usize::from(index)].lane;
            self.lanes[lane.index()].push(Reverse((at, index)));
        }
    }

    /// When an item of `lane` acts next; [`Instant::NEVER`] if none does.
    pub fn next_action_at(&self, lane: VirtualLane) -> Instant {
        first_at(&self.lanes[lane.index()])
    }

    /// When an item of any lane acts next.
    pub fn next_action(&self) -> Instant {
        self.lanes.iter().map(first_at).min().unwrap_or(Instant::NEVER)
    }

    /// When an item stops next, later than `now`: its messages that wait are withdrawn.
    pub fn next_stop(&self, now: Instant) -> Instant {
        let stops = self.items.iter().map(|item| item.config.stop).filter(|stop| *stop > now);
        stops.min().unwrap_or(Instant::NEVER)
    }

    /// The next action that is due at `now`, in order of time within a lane.
    pub fn poll_action(&mut self, now: Instant) -> Option<WorkloadAction> {
        if now < self.not_before {
            return None;
        }
        let Some(lane) = self.lanes.iter().position(|lane| first_at(lane) <= now) else {
            self.not_before = self.lanes.iter().map(first_at).min().unwrap_or(Instant::NEVER);
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

    /// Resumes (`on`) or suspends the items called `name`, or all items; returns the local indexes of those
    /// that changed. Scripts are not suspended, because other adapters may wait for their messages.
    pub fn let_post(&mut self, name: Option<&str>, on: bool, now: Instant) -> Vec<u16> {
        let mut changed = Vec::new();
        for index in 0..self.items.len() {
            let item = &mut self.items[index];
            if !item.is_switched_by(name) || item.stopped || item.suspended != on {
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

    /// Arrivals before `now` post nothing.
    pub fn skip_to(&mut self, now: Instant) {
        self.let_post(None, false, now);
        // Items that are suspended post nothing, and those that stop have nothing to withdraw.
        while self.poll_action(now).is_some() {}
        self.let_post(None, true, now);
    }

    /// Whether [`Workload::let_post`] can change an item of this name, or any item.
    pub fn has(&self, name: Option<&str>) -> bool {
        self.items.iter().any(|item| item.is_switched_by(name))
    }

    /// Posts the next message of a backlog, whose previous message has started.
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

    /// Lets scripts continue that wait for this progress.
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

    /// Queues the item's next action: its arrival, or its stop if that comes first.
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

    /// The receiver of the item's next message. A backlog takes each receiver in turn, other items draw one.
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
                debug_assert_ne!(lid, self.own, "an adapter never sends to itself");
                lid
            }
        }
    }
}

impl Item {
    /// Whether an operator who names `name`, or all items, lets this item post or stops it. Scripts always run.
    fn is_switched_by(&self, name: Option<&str>) -> bool {
        self.script.is_none() && name.is_none_or(|name| name == self.config.name)
    }

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

    /// When the item posts next after a message at `at`, which `posted` does not include yet.
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

    /// The first slot at or after `slot` in which the item posts.
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
