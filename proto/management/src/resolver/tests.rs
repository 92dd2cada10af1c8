//! Tests of requests to subnet administration: repetition, refresh, refusal, and answers that do not fit.

use super::*;
use crate::records::{self, MLID};
use proto::wire::infiniband::Grh;

const PREFIX: u64 = 0xfe80_0000_0000_0000;
const KEY: u16 = 0x7fff;

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

fn answer(request: &Datagram, lid: u16) -> Datagram {
    let mut answer = request.clone();
    answer.answer(0);
    answer.data_mut()[DLID].copy_from_slice(&lid.to_be_bytes());
    answer.data_mut()[SLID].copy_from_slice(&9u16.to_be_bytes());
    answer.data_mut()[P_KEY].copy_from_slice(&0x8005u16.to_be_bytes());
    answer.data_mut()[LEVEL] = 0x13;
    answer
}

#[test]
fn a_peer_is_asked_for_until_an_answer_comes_and_again_after_a_refresh() {
    let mut resolver = Resolver::new(Lid::new(2), 0x0250_4200_0000_0200, &[]);
    assert_eq!(resolver.poll_timeout(), Instant::NEVER);
    resolver.want(Lid::new(7));
    let request = resolver.poll(PREFIX, KEY, at(0)).expect("a request");
    assert_eq!(
        request.data()[DGID],
        [PREFIX, 0x0250_4200_0000_0701].map(u64::to_be_bytes).concat()
    );
    assert_eq!(
        request.data()[SGID],
        [PREFIX, 0x0250_4200_0000_0201].map(u64::to_be_bytes).concat()
    );
    assert!(resolver.poll(PREFIX, KEY, at(0)).is_none());
    assert_eq!(resolver.poll_timeout(), at(2_000));
    assert_eq!(resolver.poll_unknown(), None);
    assert!(resolver.poll(PREFIX, KEY, at(2_000)).is_some());
    assert_eq!(resolver.poll_unknown(), Some(Lid::new(7)), "no answer to the first request");
    assert_eq!(resolver.poll_timeout(), at(6_000));
    let answer = answer(&request, 70);
    assert!(is_own(&answer) && !is_own(&request));
    let level = ServiceLevel::truncate(3);
    let path = PathRecord { lid: Lid::new(70), source: Lid::new(9), level, key: 0x8005 };
    assert_eq!(resolver.receive(&answer), (Some(Answer::Path(Lid::new(7), path)), None));
    assert_eq!(resolver.poll_timeout(), Instant::NEVER);
    resolver.want(Lid::new(7));
    assert!(resolver.poll(PREFIX, KEY, at(70_000)).is_none(), "it is known");
    resolver.refresh();
    assert!(resolver.poll(PREFIX, KEY, at(70_000)).is_some());
}

#[test]
fn no_more_than_sixteen_peers_are_asked_for_at_once() {
    let mut resolver = Resolver::new(Lid::new(2), 0x0250_4200_0000_0200, &[]);
    (10..40).for_each(|lid| resolver.want(Lid::new(lid)));
    let all: Vec<_> = std::iter::from_fn(|| resolver.poll(PREFIX, KEY, at(0))).collect();
    assert_eq!(all.len(), OPEN_MAX);
    assert_eq!(resolver.poll_timeout(), at(2_000));
    resolver.receive(&answer(&all[3], 70));
    assert_eq!(resolver.poll_timeout(), Instant::ZERO);
    assert!(
        resolver.poll(PREFIX, KEY, at(1)).is_some() && resolver.poll(PREFIX, KEY, at(1)).is_none()
    );
}

#[test]
fn answers_that_do_not_fit_change_nothing() {
    let mut resolver = Resolver::new(Lid::new(2), 0x0250_4200_0000_0200, &[]);
    resolver.want(Lid::new(7));
    let request = resolver.poll(PREFIX, KEY, at(0)).expect("a request");
    let spoilt = |change: fn(&mut Datagram)| {
        let mut answer = answer(&request, 70);
        change(&mut answer);
        answer
    };
    let all = [
        spoilt(|it| it.answer(0x0300)),
        spoilt(|it| it.data_mut()[DGID.end - 1] ^= 1),
        spoilt(|it| it.data_mut()[DLID].fill(0)),
        spoilt(|it| it.set(&TRANSACTION, OWN << 48 | 8)),
        spoilt(|it| it.set(&crate::datagram::ATTRIBUTE, 0x11)),
    ];
    for answer in all {
        assert_eq!(resolver.receive(&answer).0, None, "{answer:?}");
    }
    let unknown = std::iter::from_fn(|| resolver.poll_unknown());
    assert_eq!(unknown.collect::<Vec<_>>(), [Lid::new(7); 3]);
    // It is asked for ever less often, and no oftener than four times a second.
    let mut now = at(0);
    for _ in 0..12 {
        now = resolver.poll_timeout();
        assert!(resolver.poll(PREFIX, KEY, now).is_some());
    }
    assert_eq!(resolver.poll_timeout().since(now), PATIENCE * (1 << DOUBLINGS));
}

fn group(is_member: bool) -> GroupConfig {
    let (name, lid) = ("all".to_owned(), Lid::new(0xc003));
    GroupConfig { name, lid, mgid: "ff12::1:7".parse().expect("an address"), is_member }
}

fn joining(is_member: bool) -> Resolver {
    Resolver::new(Lid::new(2), 0x0250_4200_0000_0200, &[group(is_member)])
}

fn member_record(request: &Datagram, lid: u16) -> Datagram {
    let mut answer = request.clone();
    answer.answer(0);
    let values = [
        (MLID, lid.into()),
        (records::QUEUE_KEY, 0xb1b),
        (records::MTU, 4),
        (records::TRAFFIC_CLASS, 9),
        (records::P_KEY, 0x8005),
        (records::LEVEL, 3),
        (records::FLOW_LABEL, 0xabcde),
        (records::HOP_LIMIT, 1),
    ];
    values.into_iter().for_each(|(field, value)| field.set(answer.data_mut(), value));
    answer
}

#[test]
fn a_group_is_joined_until_an_answer_comes_and_again_after_a_refresh() {
    let mut resolver = joining(true);
    let request = resolver.poll(PREFIX, KEY, at(0)).expect("a request");
    assert_eq!((request.method(), request.attribute()), (method::SET, MC_MEMBER_RECORD));
    // MGID, PortGID, Q_Key, TClass, P_Key, SL, FlowLabel and JoinState; octets as IBTA Vol 1, 15.2.5.17 has them.
    assert_eq!(request.get(&COMPONENT_MASK), 0x1_30c7);
    let guids = [0xff12_0000_0000_0000, 0x1_0007, PREFIX, 0x0250_4200_0000_0201];
    assert_eq!(request.data()[..32], guids.map(u64::to_be_bytes).concat());
    assert_eq!(request.data()[32..36], records::GROUP_QUEUE_KEY.to_be_bytes());
    assert_eq!(request.data()[40..42], 0xffffu16.to_be_bytes(), "its partition, as a full member");
    assert_eq!(request.data()[48], 1, "a full member");
    assert!(resolver.poll(PREFIX, KEY, at(0)).is_none());
    assert!(resolver.poll(PREFIX, KEY, at(2_000)).is_some(), "the first got no answer");
    assert_eq!((resolver.poll_timeout(), resolver.poll_unknown()), (at(6_000), None));
    let found = resolver.receive(&member_record(&request, 0xc001)).0;
    let Some(Answer::Joined(planned, found)) = found else { panic!("{found:?}") };
    assert_eq!((planned, found.path.lid), (Lid::new(0xc003), Lid::new(0xc001)));
    assert_eq!((found.path.level.get(), found.path.key), (3, 0x8005));
    assert_eq!((found.queue_key, found.mtu, found.is_member), (0xb1b, 2048, true));
    let Grh { sgid, dgid, traffic_class, flow_label, hop_limit, .. } = found.grh;
    assert_eq!((traffic_class, flow_label, hop_limit), (9, 0xabcde, 1));
    assert_eq!((dgid, sgid), (group(true).mgid, "fe80::250:4200:0:201".parse().expect("a GID")));
    assert_eq!(resolver.poll_timeout(), Instant::NEVER);
    resolver.refresh();
    let again = resolver.poll(PREFIX, KEY, at(9_000)).expect("a request");
    let found = resolver.receive(&member_record(&again, 0xc009)).0;
    let Some(Answer::Joined(_, found)) = found else { panic!("{found:?}") };
    assert_eq!(found.path.lid, Lid::new(0xc009), "the multicast LID is another");
}

#[test]
fn a_refused_member_asks_for_the_group_as_it_is_and_a_sender_never_creates_one() {
    const REFUSED: u16 = 0x0200;
    let mut member = joining(true);
    let mut now = at(0);
    let mut masks = Vec::new();
    for _ in 0..3 {
        let request = member.poll(PREFIX, KEY, now).expect("a request");
        masks.push(request.get(&COMPONENT_MASK));
        let mut refusal = request.clone();
        refusal.answer(REFUSED);
        let refused = Some(Answer::Refused(Lid::new(0xc003)));
        assert_eq!(member.receive(&refusal).0, refused);
        assert!(member.poll_timeout() > now, "it does not insist at once");
        now = member.poll_timeout();
    }
    assert_eq!(masks, [0x1_30c7, 0x1_0003, 0x1_30c7]);
    let mut sender = joining(false);
    let request = sender.poll(PREFIX, KEY, at(0)).expect("a request");
    assert_eq!((request.get(&COMPONENT_MASK), request.data()[48]), (0x1_0003, 4));
    let found = sender.receive(&member_record(&request, 0xc001)).0;
    assert!(matches!(found, Some(Answer::Joined(_, found)) if !found.is_member), "{found:?}");
}

#[test]
fn answers_about_another_group_change_nothing() {
    let mut resolver = joining(true);
    let request = resolver.poll(PREFIX, KEY, at(0)).expect("a request");
    let spoilt = |change: fn(&mut Datagram)| {
        let mut answer = member_record(&request, 0xc001);
        change(&mut answer);
        answer
    };
    let all = [
        spoilt(|it| it.data_mut()[15] ^= 1),
        spoilt(|it| MLID.set(it.data_mut(), 0xbfff)),
        spoilt(|it| it.set(&TRANSACTION, OWN << 48 | 0xc004)),
        spoilt(|it| it.set(&TRANSACTION, OWN << 48 | 2)),
        spoilt(|it| it.set(&crate::datagram::ATTRIBUTE, PATH_RECORD.into())),
    ];
    for answer in all {
        assert_eq!(resolver.receive(&answer).0, None, "{answer:?}");
    }
    assert_eq!(resolver.poll_timeout(), at(2_000));
}
