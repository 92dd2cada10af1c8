//! Properties that every congestion control scheme must have: each row of the registry is tested
//! here automatically.
//!
//! The three roles of a scheme exchange frames and notifications over one line, as in a fabric of one sender and
//! one receiver. `check/testbed` holds devices; a role is a part of one and has no ports.
//! `PAUSEBED_REWRITE_SNAPSHOTS=1 cargo test -p pausebed-tests` rewrites the expected step responses in
//! `tests/snapshots/`; check the result with `git diff`.

use proto::congestion::schemes::{self, Scheme, none};
use proto::congestion::{
    BcnBody, BcnFlags, CnmBody, CongestionPoint, Effect, Marking, Notification, NotificationPoint,
    Permission, Place, QueueSample, ReactionPoint, ReactionState, Roles, Tag, TransportNote,
    Travel,
};
use proto::frame::FrameHeaders;
use proto::ids::{CongestionPointId, Ecn, Lid, PortNumber};
use proto::params::{Key, Kind, ParamError};
use proto::random::Random;
use proto::units::{BitRate, Bytes, Duration, Instant};
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use toml::{Table, Value};

#[path = "../../examples/aimd/scheme.rs"]
mod aimd;

/// Those of the registry, and the one that docs/book/scheme.md explains.
static SCHEMES: LazyLock<Vec<&Scheme>> =
    LazyLock::new(|| [schemes::SCHEMES, &[&aimd::SCHEME]].concat());

const LINE: BitRate = BitRate::gbps(8);
const FRAME: Bytes = Bytes::new(2074);
/// One frame at line rate.
const TAU: Duration = Duration::from_ns(2074);
/// 36 frames of 33 credit blocks.
const BUFFER: Bytes = Bytes::new(36 * 2112);

fn place(seed: u64, role: &str) -> Place {
    Place {
        line_rate: LINE,
        full_frame: FRAME,
        buffer: BUFFER,
        port: PortNumber::from_index(0),
        faces_adapter: true,
        congestion_point: CongestionPointId::new(1),
        random: Random::stream(seed, "s0", role),
    }
}

fn at(frames: u64) -> Instant {
    Instant::ZERO + TAU * frames
}

/// A sender with unlimited data, a queue with a depth set by the test, and a receiver.
struct Conversation {
    congestion_point: Box<dyn CongestionPoint>,
    notification_point: Box<dyn NotificationPoint>,
    reaction_point: Box<dyn ReactionPoint>,
    now: Instant,
    last_departure: Option<Instant>,
    notified: u64,
}

impl Conversation {
    fn new(scheme: &Scheme, params: &Table, seed: u64) -> Conversation {
        let roles = roles(scheme, params);
        Conversation {
            congestion_point: roles.congestion_point(place(seed, "congestion")),
            notification_point: roles.notification_point(place(seed, "notification")),
            reaction_point: roles.reaction_point(place(seed, "reaction")),
            now: Instant::ZERO,
            last_departure: None,
            notified: 0,
        }
    }

    /// Sends frames until `end`, with `queue` octets queued at the output.
    fn run(&mut self, end: Instant, queue: Bytes) {
        for _ in 0..1_000_000 {
            let send = match self.reaction_point.may_send_at(self.last_departure) {
                Permission::At(at) => at.max(self.last_departure.unwrap_or(at)).max(self.now),
                Permission::Stopped => Instant::NEVER,
            };
            let react = self.reaction_point.poll_timeout().unwrap_or(Instant::NEVER);
            let note = self.notification_point.poll_timeout().unwrap_or(Instant::NEVER);
            let next = send.min(react).min(note);
            if next >= end {
                return;
            }
            self.now = next.max(self.now);
            if next == react {
                self.reaction_point.handle_timeout(self.now);
            } else if next == note {
                let notification = self.notification_point.handle_timeout(self.now);
                self.notify(notification.map(Notification::from));
            } else {
                self.send(next + TAU, queue);
            }
        }
        panic!("no progress at {:?} of {end:?}", self.now);
    }

    /// Passes one frame, whose last bit leaves at `leaves`, through the queue to the receiver.
    fn send(&mut self, leaves: Instant, queue: Bytes) {
        self.last_departure = Some(leaves);
        self.reaction_point.on_transmit(FRAME, leaves);
        let tag = self.reaction_point.tag(self.now);
        let regulated_by = tag.map(|Tag::RateRegulated { cpid, .. }| cpid);
        let mut headers = FrameHeaders {
            size: FRAME,
            source: Lid::new(1).into(),
            destination: Lid::new(2).into(),
            queue_pair: 2,
            ecn: Ecn::Capable0,
            regulated_by,
            payload: Bytes::new(2048),
            ..FrameHeaders::default()
        };
        let sample = QueueSample {
            ingress: PortNumber::from_index(1),
            queue,
            ingress_buffer: queue,
            line_rate: LINE,
            blocked_since: None,
            last_departure: None,
        };
        let markings = [
            self.congestion_point.on_enqueue(&headers, &sample, leaves),
            self.congestion_point.on_head(&headers, &sample, leaves),
            self.congestion_point.on_dequeue(&headers, &sample, leaves),
        ];
        for marking in markings {
            match marking {
                Marking::Pass => {}
                Marking::Fecn { .. } => headers.fecn = true,
                Marking::Ce { .. } => headers.ecn = Ecn::CongestionExperienced,
                Marking::Notify(notification) => self.notify(Some(notification)),
            }
        }
        let notification = self.notification_point.on_receive(&headers, FRAME, leaves);
        self.notify(notification.map(Notification::from));
    }

    fn notify(&mut self, notification: Option<Notification>) {
        if let Some(notification) = notification {
            self.notified += 1;
            self.reaction_point.on_notification(&notification, self.now);
        }
    }

    fn state(&self) -> ReactionState {
        self.reaction_point.state()
    }
}

fn roles(scheme: &Scheme, params: &Table) -> Arc<dyn Roles> {
    scheme.configure(params).expect("the parameters are valid")
}

/// The parameters that a scheme refuses.
fn refused(scheme: &Scheme, params: &Table) -> Vec<ParamError> {
    scheme.configure(params).err().unwrap_or_default()
}

fn parameters(scheme: &Scheme) -> impl Iterator<Item = &'static Key> {
    scheme.keys.iter().copied().flatten()
}

fn only(key: &str, value: impl Into<Value>) -> Table {
    Table::from_iter([(key.to_owned(), value.into())])
}

/// A table with one number, and the largest congestion control table where the number is an index of it.
fn number(key: &str, value: i64) -> Table {
    let mut table = only(key, value);
    if key == "ccti_min" {
        table.insert("cct".to_owned(), (0..256).map(Value::Integer).collect::<Vec<_>>().into());
        table.insert("ccti_limit".to_owned(), Value::Integer(255));
    }
    table
}

/// The minimum and maximum of each integer parameter.
fn ranges(scheme: &Scheme) -> impl Iterator<Item = (&'static str, i64, i64)> {
    parameters(scheme).filter_map(|key| match key.kind {
        Kind::Whole(min, max) => Some((key.name, min, max)),
        _ => None,
    })
}

/// A scheme's defaults, and every table with one number at its limit.
fn tables(scheme: &Scheme) -> Vec<Table> {
    let limits = ranges(scheme).flat_map(|(key, min, max)| [number(key, min), number(key, max)]);
    std::iter::once(Table::new()).chain(limits).collect()
}

#[test]
fn the_registry_is_not_empty_and_its_names_are_distinct() {
    let mut names: Vec<_> = SCHEMES.iter().map(|scheme| scheme.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SCHEMES.len());
    assert!(names.len() >= 2 && SCHEMES.iter().all(|scheme| !scheme.source.is_empty()));
    assert!(SCHEMES.iter().any(|scheme| parameters(scheme).next().is_some()));
}

#[test]
#[should_panic(expected = "two schemes have one name")]
fn a_scheme_with_a_name_of_the_registry_is_refused() {
    schemes::add(&[&none::SCHEME]);
}

#[test]
#[should_panic(expected = "in use already")]
fn no_scheme_comes_after_the_registry_was_read() {
    assert!(schemes::find("none").is_some());
    schemes::add(&[&aimd::SCHEME]);
}

#[test]
fn defaults_are_accepted() {
    for scheme in SCHEMES.iter().copied() {
        assert_eq!(refused(scheme, &Table::new()), [], "{}", scheme.name);
        for key in parameters(scheme) {
            assert!(!key.about.is_empty(), "{}: {} has no meaning", scheme.name, key.name);
        }
    }
}

#[test]
fn an_invalid_parameter_is_refused_by_its_name() {
    let absurd = || {
        let list = vec![Value::Integer(i64::MIN)];
        let word = Value::String("no such word".to_owned());
        [Value::Integer(i64::MIN), Value::Integer(i64::MAX), Value::Float(-0.5), word]
            .into_iter()
            .chain([Value::Boolean(true), Value::Array(list), Value::Array(Vec::new())])
    };
    for scheme in SCHEMES.iter().copied() {
        for key in parameters(scheme) {
            for value in absurd() {
                let written = value.to_string();
                let errors = refused(scheme, &only(key.name, value));
                let [error] = &errors[..] else {
                    panic!("{}: {} = {written} gives {errors:?}", scheme.name, key.name)
                };
                assert_eq!(error.key, key.name, "{}", scheme.name);
                assert!(!error.complaint.hint.is_empty(), "{}: {}", scheme.name, key.name);
            }
        }
    }
}

#[test]
fn an_integer_is_accepted_at_both_limits_and_refused_beyond() {
    for scheme in SCHEMES.iter().copied() {
        for (key, min, max) in ranges(scheme) {
            for (value, faults) in [(min, 0), (max, 0), (min - 1, 1), (max + 1, 1)] {
                let found = refused(scheme, &number(key, value));
                assert_eq!(found.len(), faults, "{}: {key} = {value}", scheme.name);
            }
        }
    }
}

#[test]
fn all_faults_are_reported_together() {
    for scheme in SCHEMES.iter().copied() {
        let wrong = |key: &'static Key| (key.name.to_owned(), Value::Boolean(true));
        let table: Table = parameters(scheme).map(wrong).collect();
        assert_eq!(refused(scheme, &table).len(), table.len(), "{}", scheme.name);
    }
}

/// Notifications, frames and timers in any order, at any instant, under any legal parameters.
#[test]
fn a_reaction_point_never_exceeds_line_rate() {
    for scheme in SCHEMES.iter().copied() {
        for params in tables(scheme) {
            let mut point = roles(scheme, &params).reaction_point(place(1, "reaction"));
            let mut random = Random::stream(1, scheme.name, "what happens");
            let (mut now, mut last) = (Instant::ZERO, None);
            for _ in 0..2_000 {
                now = now + Duration::from_ps(random.below(4 * TAU.as_ps()));
                match random.below(4) {
                    0 => {
                        notify_all(&mut *point, now);
                    }
                    1 => {
                        point.on_notification(&noise(&mut random), now);
                    }
                    2 if point.poll_timeout().is_some_and(|due| due <= now) => {
                        point.handle_timeout(now);
                    }
                    _ => {
                        point.on_transmit(FRAME, now);
                        last = Some(now);
                    }
                }
                let state = point.state();
                assert!(state.rate <= LINE, "{} {params}: {state:?}", scheme.name);
                let Some(last) = last else { continue };
                if let Permission::At(at) = point.may_send_at(Some(last)) {
                    assert!(at >= last, "{} {params}: a negative gap", scheme.name);
                }
            }
        }
    }
}

/// A notification with random contents.
fn noise(random: &mut Random) -> Notification {
    let mut body = [0; 16];
    body.fill_with(|| random.next_u64() as u8);
    let [kind, feedback, mild, severe, ..] = body;
    let mut number = || random.next_u64();
    let cpid = CongestionPointId::new(number() % 2 + 1).expect("the identifier is not zero");
    let (q_offset, q_delta) = (number() as i16, number() as i16);
    match kind % 3 {
        0 => TransportNote { travel: Travel::Cnp, becn: feedback % 2 == 0, body }.into(),
        1 => Notification::Cnm(CnmBody { quantized_feedback: feedback, cpid, q_offset, q_delta }),
        _ => {
            let [mild, severe, stop] = [mild, severe, feedback].map(|octet| octet % 4 == 0);
            let flags = BcnFlags { mild, severe, stop };
            let timestamp = number() as u32;
            Notification::Bcn(BcnBody { cpid, q_offset, q_delta, flags, timestamp })
        }
    }
}

#[test]
fn a_slowed_sender_returns_to_line_rate_without_congestion() {
    for scheme in SCHEMES.iter().copied() {
        let mut conversation = Conversation::new(scheme, &Table::new(), 7);
        conversation.run(at(600), BUFFER);
        // QCN needs the longest time: five stages of 15 ms.
        conversation.run(at(100_000), Bytes::ZERO);
        // RR CC sends no notification to a flow above 98 % of line rate.
        let rate = conversation.state().rate.get();
        assert!(rate >= LINE.get() / 100 * 98, "{}: {rate}", scheme.name);
    }
}

/// One congestion notification of each kind; each scheme accepts its own kind and refuses the others.
fn bad_news() -> [Notification; 3] {
    let cpid = CongestionPointId::new(1).expect("the identifier is not zero");
    let (q_offset, q_delta) = (-100, 0);
    let flags = BcnFlags { mild: true, ..BcnFlags::default() };
    [
        Notification::becn(Travel::Cnp),
        Notification::Cnm(CnmBody { quantized_feedback: 40, cpid, q_offset, q_delta }),
        Notification::Bcn(BcnBody { cpid, q_offset, q_delta, flags, timestamp: 0 }),
    ]
}

fn notify_all(point: &mut dyn ReactionPoint, now: Instant) -> [Effect; 3] {
    bad_news().map(|news| point.on_notification(&news, now))
}

#[test]
fn a_reaction_point_accepts_only_notifications_of_its_own_scheme() {
    for scheme in SCHEMES.iter().copied().filter(|scheme| scheme.name != none::SCHEME.name) {
        let params = Table::new();
        let mut point = roles(scheme, &params).reaction_point(place(1, "reaction"));
        let effect = notify_all(&mut *point, Instant::ZERO);
        let refused = effect.iter().filter(|effect| **effect == Effect::Refused).count();
        assert_eq!(refused, effect.len() - 1, "{}: {effect:?}", scheme.name);
    }
}

/// A reaction point with a timer recovers alone. One without, like RR CC's or BCN's, needs a positive notification.
#[test]
fn a_reaction_point_with_a_timer_recovers_without_notifications() {
    for scheme in SCHEMES.iter().copied() {
        let params = Table::new();
        let mut point = roles(scheme, &params).reaction_point(place(1, "reaction"));
        notify_all(&mut *point, Instant::ZERO);
        if point.poll_timeout().is_none() {
            continue;
        }
        for _ in 0..200 {
            notify_all(&mut *point, Instant::ZERO);
        }
        let held = point.state();
        let mut now = Instant::ZERO;
        let mut steps = 0;
        while let Some(due) = point.poll_timeout() {
            assert!(due >= now && steps < 1_000_000, "{}: the timer does not advance", scheme.name);
            now = due;
            point.handle_timeout(now);
            assert!(
                point.state().rate >= held.rate,
                "{}: the rate falls without notifications",
                scheme.name
            );
            steps += 1;
        }
        let state = point.state();
        assert!(point.is_released(), "{}: {state:?}", scheme.name);
        assert_eq!((state.gap, state.rate), (Duration::ZERO, LINE), "{}", scheme.name);
    }
}

#[test]
fn congestion_slows_the_sender_and_no_congestion_does_not() {
    for scheme in SCHEMES.iter().copied().filter(|scheme| scheme.name != none::SCHEME.name) {
        let mut conversation = Conversation::new(scheme, &Table::new(), 7);
        conversation.run(at(200), Bytes::ZERO);
        assert_eq!(
            (conversation.state().rate, conversation.notified),
            (LINE, 0),
            "{}",
            scheme.name
        );
        conversation.run(at(600), BUFFER);
        assert!(conversation.state().rate < LINE, "{}", scheme.name);
        assert!(conversation.notified > 0, "{}", scheme.name);
    }
}

/// The state after each of 400 frame times, half of them with congestion.
fn trace(scheme: &Scheme, params: &Table, seed: u64) -> Vec<ReactionState> {
    let mut conversation = Conversation::new(scheme, params, seed);
    let states = (1..=400).map(|frame| {
        conversation.run(at(frame), if frame % 200 < 100 { BUFFER } else { Bytes::ZERO });
        conversation.state()
    });
    states.collect()
}

#[test]
fn equal_seeds_give_equal_traces() {
    for scheme in SCHEMES.iter().copied() {
        for params in tables(scheme) {
            let (one, other) = (trace(scheme, &params, 7), trace(scheme, &params, 7));
            assert_eq!(one, other, "{} {params}", scheme.name);
        }
    }
}

/// The response to a queue that is full from 100 τ to 600 τ, with the scheme's defaults.
fn step_response(scheme: &Scheme) -> String {
    let mut table = format!("{}: the queue is full from 100 τ to 600 τ\n\n", scheme.name);
    table.push_str("    τ   gap ns  rate Mbit/s  scalar\n");
    let mut conversation = Conversation::new(scheme, &Table::new(), 7);
    let onset = [50, 100, 101, 102, 104, 106, 110, 115, 120, 130, 140, 160, 180];
    let rest = (200..=2_600).step_by(100);
    for frame in onset.into_iter().chain(rest) {
        let congested = (101..=600).contains(&frame);
        conversation.run(at(frame), if congested { BUFFER } else { Bytes::ZERO });
        let ReactionState { gap, rate, scalar } = conversation.state();
        let (gap, rate) = (gap.as_ps() / 1_000, rate.get() / 1_000_000);
        writeln!(table, "{frame:>5} {gap:>8} {rate:>12} {scalar:>7}")
            .expect("writing to a string does not fail");
    }
    table
}

#[test]
fn step_responses_match_their_snapshots() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots");
    for scheme in SCHEMES.iter().copied() {
        let path = folder.join(format!("step-response-{}.txt", scheme.name));
        let is = step_response(scheme);
        if std::env::var_os("PAUSEBED_REWRITE_SNAPSHOTS").is_some() {
            std::fs::write(&path, &is).expect("the folder of snapshots is writable");
        }
        let was = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(is == was, "{}: expected\n{was}\nfound\n{is}", path.display());
    }
}
