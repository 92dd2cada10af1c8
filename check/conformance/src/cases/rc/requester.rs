//! RC-09 to RC-16: what a requester completes and repeats, when, and when it gives up.
//!
//! Each dialogue is with a peer of its own, in a time of its own: the NIC posts messages, the peer answers as written, and
//! everything that the NIC sends must be written there too, with its cause.

use super::{GAP, OWN, acknowledgement, arrival, errors, play_nic};
use crate::ethernet::RATE;
use crate::prelude::*;
use crate::stimulus::FIRST;
use Cause::{Answer, Posted, Silence, SilenceAfter, Wait};
use Turn::{Answers, Fails, Sends};
use proto::wire::infiniband::{NakCode, Opcode, Syndrome};
use proto::wire::roce::Packet;

/// Keys of the NIC: it goes back after 20 ms, twice; and repeats twice after RNR NAKs.
const KEYS: &str = "ack_timeout = \"20 ms\", retry_count = 2, rnr_retry = 2, receive_depth = 8, rnr_timer = \"10 us\"";
const TIMEOUT: Duration = us(20_000);
/// The code of an RNR NAK, and its wait of 10.24 ms. Source: IBTA Vol 1, 9.7.5.2.8, table of RNR NAK timer values.
const RNR: Syndrome = Syndrome::Rnr { timer: 20 };
const RNR_WAIT: Duration = us(10_240);

/// The time of a dialogue.
const LENGTH: Duration = us(120_000);

/// One thing that happens in a dialogue.
enum Turn {
    /// The NIC sends these PSNs back to back.
    Sends(Cause, &'static [u32]),
    /// The peer answers so many milliseconds after the first packet began: syndrome, PSN, MSN.
    Answers(u64, Syndrome, u32, u32),
    /// The queue pair enters the error state.
    Fails(Cause),
}

/// From which instant on something happens.
#[derive(Clone, Copy)]
enum Cause {
    /// The messages are posted.
    Posted,
    /// The last answer has come.
    Answer,
    /// So long after the last answer.
    Wait(Duration),
    /// The timeout is over since the first packet of the last burst.
    Silence,
    /// The timeout is over since the answer of this millisecond.
    SilenceAfter(u64),
}

/// What the NIC and one peer say.
struct Dialogue {
    case: &'static str,
    /// Messages that the NIC posts, and their octets.
    messages: (u64, u32),
    turns: &'static [Turn],
    /// Messages that complete.
    completed: u64,
}

const ACK: Syndrome = Syndrome::ACK;
const INVALID: Syndrome = Syndrome::Nak(NakCode::InvalidRequest);
const ACCESS: Syndrome = Syndrome::Nak(NakCode::RemoteAccess);
const OPERATIONAL: Syndrome = Syndrome::Nak(NakCode::RemoteOperational);
/// Octets of a message of one packet, and of three.
const SHORT: u32 = 64;
const THREE: u32 = 4_100;

static DIALOGUES: [Dialogue; 15] = [
    // One acknowledgement completes all messages before it.
    Dialogue {
        case: "RC-09",
        messages: (4, SHORT),
        turns: &[Sends(Posted, &[0, 1, 2, 3]), Answers(5, ACK, 3, 4)],
        completed: 4,
    },
    Dialogue {
        case: "RC-09",
        messages: (2, THREE),
        turns: &[
            Sends(Posted, &[0, 1, 2, 3, 4, 5]),
            Answers(12, ACK, 4, 1),
            Answers(15, ACK, 5, 2),
        ],
        completed: 2,
    },
    // A NAK of a gap: from its PSN on, and no more; what is before it is acknowledged.
    Dialogue {
        case: "RC-10",
        messages: (5, SHORT),
        turns: &[
            Sends(Posted, &[0, 1, 2, 3, 4]),
            Answers(5, GAP, 2, 2),
            Sends(Answer, &[2, 3, 4]),
            Answers(10, ACK, 4, 5),
        ],
        completed: 5,
    },
    Dialogue {
        case: "RC-10",
        messages: (1, THREE),
        turns: &[
            Sends(Posted, &[0, 1, 2]),
            Answers(8, GAP, 1, 0),
            Sends(Answer, &[1, 2]),
            Answers(15, ACK, 2, 1),
        ],
        completed: 1,
    },
    // Answers about PSNs that are acknowledged, or were never sent.
    Dialogue {
        case: "RC-11",
        messages: (3, SHORT),
        turns: &[
            Sends(Posted, &[0, 1, 2]),
            Answers(5, ACK, 1, 2),
            Answers(7, ACK, 0, 1),
            Answers(8, ACK, 0xff_ffff, 0),
            Answers(9, ACK, 3, 4),
            Answers(10, ACK, 0x80_0001, 4),
            Answers(11, GAP, 0, 0),
            Answers(12, INVALID, 3, 3),
            Answers(13, RNR, 0xff_ffff, 0),
            Sends(SilenceAfter(5), &[2]),
            Answers(40, ACK, 2, 3),
        ],
        completed: 3,
    },
    // Without an answer all that is not acknowledged comes again; progress begins the time anew.
    Dialogue {
        case: "RC-12",
        messages: (3, SHORT),
        turns: &[
            Sends(Posted, &[0, 1, 2]),
            Sends(Silence, &[0, 1, 2]),
            Answers(30, ACK, 0, 1),
            Sends(SilenceAfter(30), &[1, 2]),
            Answers(60, ACK, 2, 3),
        ],
        completed: 3,
    },
    // The retry count: timeouts and NAKs of gaps, without progress in between.
    Dialogue {
        case: "RC-13",
        messages: (2, SHORT),
        turns: &[
            Sends(Posted, &[0, 1]),
            Sends(Silence, &[0, 1]),
            Sends(Silence, &[0, 1]),
            Fails(Silence),
        ],
        completed: 0,
    },
    Dialogue {
        case: "RC-13",
        messages: (1, SHORT),
        turns: &[
            Sends(Posted, &[0]),
            Answers(3, GAP, 0, 0),
            Sends(Answer, &[0]),
            Answers(6, GAP, 0, 0),
            Sends(Answer, &[0]),
            Answers(9, GAP, 0, 0),
            Fails(Answer),
        ],
        completed: 0,
    },
    Dialogue {
        case: "RC-13",
        messages: (2, SHORT),
        turns: &[
            Sends(Posted, &[0, 1]),
            Sends(Silence, &[0, 1]),
            Sends(Silence, &[0, 1]),
            Answers(45, ACK, 0, 1),
            Sends(SilenceAfter(45), &[1]),
            Sends(Silence, &[1]),
            Answers(95, ACK, 1, 2),
        ],
        completed: 2,
    },
    // RNR NAKs: the wait, what is before their PSN, and their own count.
    Dialogue {
        case: "RC-15",
        messages: (2, SHORT),
        turns: &[
            Sends(Posted, &[0, 1]),
            Answers(3, RNR, 0, 0),
            Sends(Wait(RNR_WAIT), &[0, 1]),
            Answers(20, RNR, 0, 0),
            Sends(Wait(RNR_WAIT), &[0, 1]),
            Answers(40, RNR, 1, 1),
            Sends(Wait(RNR_WAIT), &[1]),
            Answers(60, RNR, 1, 1),
            Sends(Wait(RNR_WAIT), &[1]),
            Answers(80, ACK, 1, 2),
        ],
        completed: 2,
    },
    Dialogue {
        case: "RC-15",
        messages: (2, SHORT),
        turns: &[
            Sends(Posted, &[0, 1]),
            Answers(3, RNR, 0, 0),
            Sends(Wait(RNR_WAIT), &[0, 1]),
            Answers(20, RNR, 0, 0),
            Sends(Wait(RNR_WAIT), &[0, 1]),
            Answers(40, RNR, 0, 0),
            Fails(Answer),
        ],
        completed: 0,
    },
    // Other NAKs end the connection at once.
    Dialogue {
        case: "RC-16",
        messages: (3, SHORT),
        turns: &[Sends(Posted, &[0, 1, 2]), Answers(5, INVALID, 1, 1), Fails(Answer)],
        completed: 1,
    },
    Dialogue {
        case: "RC-16",
        messages: (2, SHORT),
        turns: &[Sends(Posted, &[0, 1]), Answers(5, ACCESS, 0, 0), Fails(Answer)],
        completed: 0,
    },
    Dialogue {
        case: "RC-16",
        messages: (1, SHORT),
        turns: &[Sends(Posted, &[0]), Answers(5, OPERATIONAL, 0, 0), Fails(Answer)],
        completed: 0,
    },
    // An answer behind the error changes nothing.
    Dialogue {
        case: "RC-16",
        messages: (2, SHORT),
        turns: &[
            Sends(Posted, &[0, 1]),
            Answers(5, INVALID, 0, 0),
            Fails(Answer),
            Answers(10, ACK, 1, 2),
            Answers(12, GAP, 0, 0),
        ],
        completed: 0,
    },
];

/// The peers of the dialogues, and when each begins.
fn dialogues() -> impl Iterator<Item = (u16, Instant, &'static Dialogue)> {
    let numbered = (0u16..).zip(&DIALOGUES);
    numbered.map(|(n, dialogue)| (n + OWN + 1, FIRST + LENGTH * u64::from(n), dialogue))
}

/// When the answer of this millisecond of a dialogue comes.
fn came(begin: Instant, peer: u16, at: u64) -> Instant {
    arrival(begin + us(at * 1_000), &acknowledgement(peer, ACK, 0, 0))
}

static RUN: Shared<Record> = Shared::new(|on| {
    let items = dialogues().map(|(peer, begin, dialogue)| {
        let (messages, size) = dialogue.messages;
        let start = begin.as_ps() / 1_000_000_000;
        let keys = format!(
            "arrivals = \"backlog\"\nmessages = {messages}\nsize = \"{size} B\"\nstart = \"{start} ms\""
        );
        traffic(&format!("to {peer}"), "h1", &format!("h{peer}"), &keys)
    });
    let peers = DIALOGUES.len() as u8;
    let end = FIRST + LENGTH * u64::from(peers);
    let duration = format!("{} ms", end.as_ps() / 1_000_000_000);
    play_nic(on, (peers, &duration), (KEYS, &items.collect::<String>()), |script| {
        for (peer, begin, dialogue) in dialogues() {
            for turn in dialogue.turns {
                let Answers(at, syndrome, psn, msn) = *turn else { continue };
                let frame = acknowledgement(peer, syndrome, psn, msn);
                script.at(begin + us(at * 1_000), move |bed| bed.send_frame(1, &frame));
            }
        }
    })
});

/// What the NIC has sent in a dialogue: PSN, opcode and payload, and the frame.
type Sending<'a> = ((u32, Opcode, Vec<u8>), &'a Seen);

fn read(seen: &Seen) -> Option<Sending<'_>> {
    let packet = Packet::parse(&seen.frame.octets).ok()??.transport;
    Some(((packet.bth.psn.get(), packet.bth.opcode, packet.payload.to_vec()), seen))
}

/// Follows one dialogue.
fn follow(record: &Record, peer: u16, begin: Instant, dialogue: &Dialogue) -> Result<()> {
    let within = record.within(us(200));
    let here = record.packets(1).within((begin, begin + LENGTH));
    let sent: Vec<Sending<'_>> = here.filter_map(read).collect();
    let failed = errors(record, peer);
    let (mut left, mut burst, mut answer, mut fails) = (&sent[..], begin, begin, 0);
    for turn in dialogue.turns {
        let due = |cause: &Cause| match *cause {
            Posted => begin,
            Answer => answer,
            Wait(wait) => answer + wait,
            Silence => burst + TIMEOUT,
            SilenceAfter(at) => came(begin, peer, at) + TIMEOUT,
        };
        match turn {
            Answers(at, ..) => answer = came(begin, peer, *at),
            Fails(cause) => {
                fails += 1;
                same("errors of the queue pair", failed.len(), 1)?;
                near("the error", failed[0], due(cause), within)?;
            }
            Sends(cause, psns) => {
                let count = psns.len().min(left.len());
                let (now, later) = left.split_at(count);
                let found: Vec<u32> = now.iter().map(|((psn, ..), _)| *psn).collect();
                same("PSNs sent", &found[..], *psns)?;
                near(format!("PSN {}", psns[0]), now[0].1.start(RATE), due(cause), within)?;
                (left, burst) = (later, now[0].1.at);
            }
        }
    }
    same("packets more", left.len(), 0)?;
    same("errors of the queue pair", failed.len(), fails)?;
    repeats_are_equal(&sent)?;
    let flows = record.reading.flows.iter();
    let flow = flows.clone().find(|flow| flow.flow.destination == u64::from(peer));
    let flow = flow.ok_or("the NIC has no such flow")?;
    let withdrawn = if fails > 0 { dialogue.messages.0 - dialogue.completed } else { 0 };
    let expected = (dialogue.messages.0, dialogue.completed, withdrawn);
    same(
        "messages, completed, withdrawn",
        (flow.messages, flow.completed, flow.withdrawn),
        expected,
    )
}

/// A packet that comes again is as it was: opcode and payload.
fn repeats_are_equal(sent: &[Sending<'_>]) -> Result<()> {
    let mut first = BTreeMap::new();
    sent.iter().try_for_each(|((psn, opcode, payload), _)| {
        let before = *first.entry(psn).or_insert((opcode, payload));
        same(format!("PSN {psn} again"), (opcode, payload), before)
    })
}

/// The dialogues of `case`.
pub fn finding(on: Level, case: &str) -> Finding {
    let record = RUN.on(on)?;
    let mut count = 0;
    for (peer, begin, dialogue) in dialogues().filter(|(.., dialogue)| dialogue.case == case) {
        count += 1;
        let followed = follow(&record, peer, begin, dialogue);
        followed.map_err(|failure| failure.of(format!("dialogue {count}")))?;
    }
    Ok(format!("dialogues that go as written, each packet in its time: {count}"))
}

/// The waits of the RNR NAK timer, by code, in units of 10 µs.
/// Source: IBTA Vol 1, 9.7.5.2.8, table of RNR NAK timer values.
const WAITS: [u64; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024,
    1_536, 2_048, 3_072, 4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

/// RC-14: a requester without a limit is asked to wait by every code.
pub fn waits(on: Level) -> Finding {
    const PEER: u16 = 2;
    let codes: Vec<u8> = match on {
        // Together less than a second.
        Level::Live => vec![1, 8, 20, 24, 26],
        _ => (0..32).collect(),
    };
    let rest = 5_000;
    let mut at = FIRST + us(rest);
    let mut asked = Vec::new();
    for code in &codes {
        asked.push((at, acknowledgement(PEER, Syndrome::Rnr { timer: *code }, 0, 0)));
        at = at + us(10 * WAITS[usize::from(*code)] + rest);
    }
    let duration = format!("{} ms", at.as_ps() / 1_000_000_000 + 10);
    let keys = "rnr_retry = 7, receive_depth = 8, rnr_timer = \"10 us\"";
    let start = FIRST.as_ps() / 1_000_000_000;
    let item =
        format!("arrivals = \"backlog\"\nmessages = 1\nsize = \"64 B\"\nstart = \"{start} ms\"");
    let item = traffic("to 2", "h1", "h2", &item);
    let record = play_nic(on, (1, &duration), (keys, &item), |script| {
        for (at, frame) in asked.clone() {
            script.at(at, move |bed| bed.send_frame(1, &frame));
        }
    })?;
    let starts = record.packets(1).starts(RATE);
    same("transmissions", starts.len(), codes.len() + 1)?;
    for ((code, (at, frame)), found) in codes.iter().zip(&asked).zip(&starts[1..]) {
        let due = arrival(*at, frame) + us(10 * WAITS[usize::from(*code)]);
        near(format!("after code {code}"), *found, due, record.within(us(200)))?;
    }
    same("errors", errors(&record, PEER).len(), 0)?;
    Ok(format!("{} RNR NAKs, each waited for as its code says, and no end", codes.len()))
}
