//! A link under a subnet manager: it advances only as far as the manager permits.
//!
//! Without a manager a link advances by itself as soon as both ends have announced their buffers. With one it
//! waits in Initialize and in Arm, and it reports its peer. Source: IBTA Vol 1, 7.2.7 (link state machine).

use super::{CreditFlow, LinkState};
use crate::units::Instant;

/// What a manager has permitted, and what the link has noticed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supervision {
    /// The link advances to this state at most. `Down` disables the port.
    ceiling: LinkState,
    is_up: bool,
    restarts: u64,
}

/// What a supervised link does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// A peer is there: it has sent link packets within the time of the watchdog.
    pub is_up: bool,
    /// The state that flow control has reached.
    pub state: LinkState,
    /// How often the peer, or its silence, has put the link back to Initialize.
    pub restarts: u64,
}

impl CreditFlow {
    /// Permits the link to advance to `ceiling` and no further. A lower ceiling takes the link back; `Down`
    /// disables the port: it sends and receives nothing.
    pub fn permit(&mut self, ceiling: LinkState, now: Instant) {
        let new = Supervision { ceiling, is_up: false, restarts: 0 };
        let supervision = self.supervision.get_or_insert(new);
        let before = std::mem::replace(&mut supervision.ceiling, ceiling);
        if ceiling == LinkState::Down {
            supervision.is_up = false;
        }
        match ceiling {
            LinkState::Down => self.fall_silent(now),
            LinkState::Initialize if before == LinkState::Down || self.state > ceiling => {
                self.retrain(now);
                self.lanes.iter_mut().for_each(|lane| lane.announce_by = now);
            }
            LinkState::Initialize => {}
            LinkState::Arm | LinkState::Active => {
                self.advance(now);
                self.schedule();
            }
        }
    }

    /// What the link does; `None` without a manager.
    pub fn observe(&self) -> Option<Observation> {
        let Supervision { is_up, restarts, .. } = self.supervision?;
        Some(Observation { is_up, state: self.state(), restarts })
    }

    /// Whether a manager has disabled the port.
    #[inline]
    pub fn is_disabled(&self) -> bool {
        self.supervision.is_some_and(|supervision| supervision.ceiling == LinkState::Down)
    }

    /// A good data packet arrived. The first one makes an armed link active.
    #[inline]
    pub fn on_data(&mut self, now: Instant) {
        if let Some(supervision) = &mut self.supervision
            && supervision.ceiling == LinkState::Arm
        {
            supervision.ceiling = LinkState::Active;
            self.advance(now);
        }
    }

    fn fall_silent(&mut self, now: Instant) {
        self.retrain(now);
        for lane in &mut self.lanes {
            lane.due_since = None;
            lane.announce_by = Instant::NEVER;
        }
        self.next_timeout = Instant::NEVER;
    }

    /// The state beyond which the link must not advance.
    pub(super) fn ceiling(&self) -> LinkState {
        self.supervision.map_or(LinkState::Active, |supervision| supervision.ceiling)
    }

    /// Whether a packet for initialization on the lane at `index` says that the peer starts again. While this end
    /// is armed, the peer may still wait for its manager; once it has left Initialize it only returns.
    pub(super) fn peer_retrains(&self, index: usize) -> bool {
        match self.state {
            LinkState::Active => true,
            LinkState::Arm => self.supervision.is_some() && self.lanes[index].received_normal,
            LinkState::Down | LinkState::Initialize => false,
        }
    }

    /// A link packet arrived on the lane at `index`.
    pub(super) fn hear(&mut self, index: usize) {
        if let Some(supervision) = &mut self.supervision {
            supervision.is_up = true;
            if self.state == LinkState::Initialize {
                // What the peer sent before it started again does not count.
                self.lanes[index].received_normal = false;
            }
        }
    }

    /// Whether the watchdog counts. A port without a peer keeps announcing itself; it has no state to retrain.
    pub(super) fn is_watched(&self) -> bool {
        self.state != LinkState::Initialize
            || self.supervision.is_some_and(|supervision| supervision.is_up)
    }

    /// The peer has been silent for too long.
    pub(super) fn lose_peer(&mut self) {
        if let Some(supervision) = &mut self.supervision {
            supervision.is_up = false;
        }
    }

    /// Retrains because of the peer. The manager must permit each step again.
    pub(super) fn restart(&mut self, now: Instant) {
        if let Some(supervision) = &mut self.supervision {
            supervision.ceiling = LinkState::Initialize;
            supervision.restarts += 1;
        }
        self.retrain(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::VirtualLane;
    use crate::units::{BitRate, Bytes, Duration};

    const BUFFER: Bytes = Bytes::new(64 * 100);
    const FULL: Bytes = Bytes::new(2074);

    fn at(ns: u64) -> Instant {
        Instant::ZERO + Duration::from_ns(ns)
    }

    /// Two ends on one lane, both under a manager.
    struct Pair([CreditFlow; 2]);

    impl Pair {
        fn new() -> Pair {
            let end = || {
                let mut flow = CreditFlow::new(1, BUFFER, FULL, BitRate::gbps(8), 4, at(0));
                flow.permit(LinkState::Initialize, at(0));
                flow
            };
            Pair([end(), end()])
        }

        /// Each end sends what is due, until nothing is.
        fn settle(&mut self, now: Instant) {
            for _ in 0..8 {
                for from in 0..2 {
                    self.0[from].handle_timeout(now);
                    while let Some(packet) =
                        self.0[from].control_due(now).and_then(|_| self.0[from].poll_control(now))
                    {
                        self.0[1 - from].on_control(&packet, now);
                    }
                }
            }
        }

        fn permit(&mut self, end: usize, ceiling: LinkState, now: Instant) {
            self.0[end].permit(ceiling, now);
            self.settle(now);
        }

        fn states(&self) -> [LinkState; 2] {
            [self.0[0].state(), self.0[1].state()]
        }

        fn active() -> Pair {
            let mut pair = Pair::new();
            pair.settle(at(0));
            for ceiling in [LinkState::Arm, LinkState::Active] {
                (0..2).for_each(|end| pair.permit(end, ceiling, at(10)));
            }
            assert_eq!(pair.states(), [LinkState::Active; 2]);
            pair
        }
    }

    #[test]
    fn a_link_advances_only_as_far_as_both_ends_are_permitted() {
        let mut pair = Pair::new();
        pair.settle(at(0));
        assert_eq!(pair.states(), [LinkState::Initialize; 2]);
        assert!(pair.0.iter().all(|end| end.observe().is_some_and(|seen| seen.is_up)));
        pair.permit(0, LinkState::Arm, at(10));
        assert_eq!(pair.states(), [LinkState::Arm, LinkState::Initialize]);
        pair.permit(0, LinkState::Active, at(20));
        assert_eq!(pair.states(), [LinkState::Arm, LinkState::Initialize]);
        pair.permit(1, LinkState::Arm, at(30));
        assert_eq!(pair.states(), [LinkState::Active, LinkState::Arm]);
        assert!(pair.0[0].may_transmit(VirtualLane::ZERO, FULL));
        assert!(!pair.0[1].may_transmit(VirtualLane::ZERO, FULL));
        pair.0[1].on_data(at(40));
        assert_eq!(pair.states(), [LinkState::Active; 2]);
    }

    #[test]
    fn an_end_that_starts_again_takes_its_peer_back_once() {
        let mut pair = Pair::active();
        pair.permit(1, LinkState::Initialize, at(50));
        assert_eq!(pair.states(), [LinkState::Initialize; 2]);
        assert_eq!(pair.0[0].observe().map(|seen| seen.restarts), Some(1));
        assert_eq!(pair.0[1].observe().map(|seen| seen.restarts), Some(0));
        for ceiling in [LinkState::Arm, LinkState::Active] {
            (0..2).for_each(|end| pair.permit(end, ceiling, at(60)));
        }
        assert_eq!(pair.states(), [LinkState::Active; 2]);
    }

    #[test]
    fn a_disabled_end_is_silent_and_its_peer_notices() {
        let mut pair = Pair::active();
        pair.permit(1, LinkState::Down, at(50));
        assert_eq!(pair.states(), [LinkState::Active, LinkState::Down]);
        assert_eq!(pair.0[1].control_due(at(1_000_000)), None);
        assert_eq!(pair.0[1].poll_timeout(), Instant::NEVER);
        let late = pair.0[0].poll_timeout().max(at(50)) + pair.0[0].watchdog;
        pair.settle(late);
        let seen = pair.0[0].observe().expect("a manager");
        assert_eq!((seen.is_up, seen.state), (false, LinkState::Initialize));
        pair.permit(1, LinkState::Initialize, late);
        pair.settle(late + pair.0[0].refresh);
        assert!(pair.0[0].observe().is_some_and(|seen| seen.is_up));
    }
}
