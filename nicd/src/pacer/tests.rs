//! Which flows share a reaction point, and which events the pacer logs.

use super::*;
use proto::congestion::{ReactionPoint, Travel};
use proto::events::EventKind;
use proto::units::{BitRate, Duration};

/// A reaction point that counts notifications. Each one adds 10 ps to the gap; the third one stops it.
struct Counting {
    notified: u64,
}

impl ReactionPoint for Counting {
    fn on_notification(&mut self, _: &Notification, _: Instant) -> Effect {
        self.notified += 1;
        if self.notified == 2 { Effect::Crossed } else { Effect::Valid }
    }
    fn may_send_at(&self, last_departure: Option<Instant>) -> Permission {
        match (self.notified, last_departure) {
            (3.., _) => Permission::Stopped,
            (_, None) => Permission::At(Instant::ZERO),
            (n, Some(last)) => Permission::At(last + Duration::from_ps(10) * n),
        }
    }
    fn is_released(&self) -> bool {
        self.notified == 0
    }
    fn state(&self) -> ReactionState {
        let gap = Duration::from_ps(10) * self.notified;
        ReactionState { gap, rate: BitRate::gbps(1), scalar: self.notified.min(2) }
    }
}

/// A scheme with this scope, and two reaction points a priority.
#[derive(Debug)]
struct Scoped(Scope);

impl Roles for Scoped {
    fn scope(&self) -> Scope {
        self.0
    }
    fn reaction_points(&self) -> usize {
        2
    }
    fn reaction_point(&self, _: Place) -> Box<dyn ReactionPoint> {
        Box::new(Counting { notified: 0 })
    }
}

fn config() -> NicConfig {
    let text = r#"
        name = "h1"
        seed = 1
        lid = 1
        qp_order = "posting"
        ack_every = 1
        ack_delay = "0 ps"
        ack_timeout = "0 ps"
        retry_count = 7
        rnr_retry = 7
        rnr_timer = "0 ps"
        receive_depth = 0
        receive_refill = "0 ps"
        cnp_body = "none"
        sl2vl = [0, 0]
        adapters = [1, 2, 3]
        classes = []
        traffic = []
        scheme = { kind = "none", params = {} }
        [link]
        rate = "8 Gbps"
        mtu = "2048 B"
        buffer = "76032 B"
        [link.control.credits]
        lanes = 4
        data_lanes = 1
        arbitration = { high = [], low = [[0, 4]], high_limit = 0 }
    "#;
    toml::from_str(text).expect("a NIC's configuration")
}

fn flow(destination: u64, class: u8) -> FlowId {
    FlowId { source: 1, destination, class }
}

fn groups(scope: Scope) -> Vec<u32> {
    let config = config();
    let mut pacer = Pacer::new(Arc::new(Scoped(scope)), &config, Bytes::new(2074));
    // Destination, class, service level.
    [(2, 0, 0), (3, 0, 0), (2, 1, 1), (2, 0, 0)]
        .into_iter()
        .map(|(destination, class, level)| {
            let flow = flow(destination, class);
            pacer.group_for(&config, flow, VirtualLane::ZERO, level, Instant::ZERO).0
        })
        .collect()
}

#[test]
fn flows_share_a_reaction_point_as_the_scope_says() {
    assert_eq!(groups(Scope::QueuePair), [0, 1, 2, 3], "every queue pair has its own group");
    assert_eq!(groups(Scope::ServiceLevel), [0, 0, 1, 0]);
    assert_eq!(groups(Scope::Destination), [0, 1, 0, 0]);
}

/// IEEE 802.1Q, 32.9.3 (cnRpPortPriMaxRps) limits the reaction points of a priority.
#[test]
fn flows_beyond_the_last_reaction_point_share_it() {
    let config = config();
    let mut pacer = Pacer::new(Arc::new(Scoped(Scope::Destination)), &config, Bytes::new(2074));
    let mut group_for = |destination, lane| {
        let lane = VirtualLane::truncate(lane);
        pacer.group_for(&config, flow(destination, 0), lane, lane.get(), Instant::ZERO)
    };
    let destinations = [2, 3, 4, 5, 2, 4].map(|destination| group_for(destination, 0));
    assert_eq!(
        destinations,
        [(0, true), (1, true), (1, false), (1, false), (0, false), (1, false)]
    );
    assert_eq!(
        [2, 3, 4].map(|to| group_for(to, 1).0),
        [2, 3, 3],
        "another priority has its own groups"
    );
}

#[test]
fn permission_counts_from_the_last_departure_and_each_change_is_one_event() {
    let config = config();
    let mut pacer = Pacer::new(Arc::new(Scoped(Scope::QueuePair)), &config, Bytes::new(2074));
    let at = Instant::from_ps;
    let (group, is_new) = pacer.group_for(&config, flow(2, 0), VirtualLane::ZERO, 0, at(0));
    assert!(is_new);
    let mut out = Outputs::default();
    let note = Notification::becn(Travel::Cnp);
    let size = Bytes::new(100);
    assert_eq!(pacer.on_transmit(group, size, (at(0), at(100)), &mut out), Permission::At(at(100)));
    let mut notify = |n: u64, out: &mut Outputs| {
        pacer.on_notification(group, flow(2, 0), &note, at(100 + n), out)
    };
    let reaction = |permission, triggered: Option<u64>| Reaction {
        permission,
        triggered,
        outcome: if triggered.is_some() { Effect::Crossed } else { Effect::Valid },
    };
    assert_eq!(notify(1, &mut out), reaction(Permission::At(at(110)), None));
    assert_eq!(notify(2, &mut out), reaction(Permission::At(at(120)), Some(2)));
    assert_eq!(notify(3, &mut out), reaction(Permission::Stopped, None));
    let mut kinds = Vec::new();
    while let Some(event) = out.events.pop() {
        kinds.push((event.at.as_ps(), event.kind));
    }
    let react = |n: u64, scalar| EventKind::React {
        flow: flow(2, 0),
        gap: Duration::from_ps(10) * n,
        scalar,
    };
    assert_eq!(kinds, [(101, react(1, 1)), (102, react(2, 2)), (103, react(3, 2))]);
}
