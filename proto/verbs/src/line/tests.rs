//! The form of lines, and what a bad line gets.

use super::*;
use crate::BATCH_MAX;
use crate::attributes::{Access, QpAttributes, State};
use crate::octets::Octets;
use crate::runs::Run;
use crate::work::{Completed, Completion, Operation, Places, SendWork, Status};
use proptest::prelude::*;

/// An agent that returns the answer it was given.
struct Fixed(Answer);

impl Agent for Fixed {
    fn execute(&mut self, call: &Call) -> Result<Answer, Refusal> {
        match call {
            Call::Hello => Ok(self.0.clone()),
            _ => Err(Refusal::unsupported("only hello")),
        }
    }
}

fn text(call: Call) -> String {
    String::from_utf8(line(&NumberedCall { id: 7, call })).expect("JSON is UTF-8")
}

#[test]
fn the_lines_are_those_of_the_reference() {
    assert_eq!(text(Call::Hello), "{\"id\":7,\"call\":\"hello\"}\n");
    let attributes = QpAttributes { path_mtu: Some(3), ..QpAttributes::to(State::Rtr) };
    assert_eq!(
        text(Call::ModifyQp { qp: 4, attributes }),
        "{\"id\":7,\"call\":{\"modify_qp\":{\"qp\":4,\"attributes\":{\"state\":\"rtr\",\"path_mtu\":3}}}}\n"
    );
    let places = Places::adjacent(3, 0, 64);
    let work = SendWork { immediate: Some(5), ..SendWork::new(9, Operation::Send, places) };
    assert_eq!(
        text(Call::PostSend { qp: 4, work, count: 2 }),
        "{\"id\":7,\"call\":{\"post_send\":{\"qp\":4,\"work\":{\"id\":9,\"operation\":\"send\",\"places\":{\"memory\":3,\
         \"offset\":0,\"length\":64,\"stride\":64},\"immediate\":5,\"solicited\":false,\"fence\":false},\"count\":2}}}\n"
    );
    let refused = NumberedAnswer { id: 7, outcome: Outcome::Refused(Refusal::unknown("cq", 3)) };
    assert_eq!(
        String::from_utf8_lossy(&line(&refused)),
        "{\"id\":7,\"refused\":{\"name\":\"unknown\",\"text\":\"object 3 is not a cq\"}}\n"
    );
}

#[test]
fn each_line_has_one_answer_and_an_empty_line_none() {
    let mut agent = Fixed(Answer::Done);
    let mut ask = |line: &str| {
        let answer = answer(&mut agent, line.as_bytes())?;
        Some(serde_json::from_slice::<NumberedAnswer>(&answer).expect("an answer"))
    };
    assert_eq!(ask(""), None);
    let done = Some(NumberedAnswer { id: 7, outcome: Outcome::Answer(Answer::Done) });
    assert_eq!(ask(text(Call::Hello).trim_end()), done);
    let other = ask(text(Call::AllocPd { device: 1 }).trim_end()).expect("an answer");
    assert!(matches!(&other.outcome, Outcome::Refused(refusal) if refusal.name == "unsupported"));
    for bad in [
        "x",
        "{}",
        "{\"id\":1}",
        "{\"id\":1,\"call\":\"nothing\"}",
        "[]",
        "{\"id\":-1,\"call\":\"hello\"}",
    ] {
        let answer = ask(bad).expect("an answer");
        assert!(
            matches!(&answer.outcome, Outcome::Refused(refusal) if refusal.name == "invalid"),
            "{bad}: {answer:?}"
        );
        assert_eq!(answer.id, 0);
    }
    let long = format!("{{\"id\":1,\"call\":\"hello\"{}}}", " ".repeat(CALL_LIMIT));
    assert!(matches!(ask(&long).expect("an answer").outcome, Outcome::Refused(_)));
}

#[test]
fn the_longest_answers_fit_in_a_line() {
    let completion = |id| Completion {
        id,
        completed: Completed::ReceiveWrite,
        status: Status::RnrRetriesExceeded,
        length: u32::MAX,
        immediate: Some(u32::MAX),
        number: 0xff_ffff,
        source: 0xff_ffff,
        vendor: u32::MAX,
    };
    let runs =
        (0..u64::from(BATCH_MAX)).map(|k| Run { first: completion(u64::MAX - 2 * k), count: 1 });
    let whole = Answer::Completions(runs.collect());
    let answer =
        answer(&mut Fixed(whole.clone()), b"{\"id\":1,\"call\":\"hello\"}").expect("an answer");
    assert!(answer.len() <= ANSWER_LIMIT, "{} octets", answer.len());
    let again: NumberedAnswer = serde_json::from_slice(&answer).expect("an answer");
    assert_eq!(again.outcome, Outcome::Answer(whole));
    let octets = Octets(vec![255; crate::OCTETS_MAX as usize]);
    let call = Call::WriteMemory { memory: 1, offset: 0, octets };
    assert!(text(call).len() < CALL_LIMIT);
    let call = Call::RegisterMemory { pd: 1, length: 8, access: Access::ALL };
    let parsed: NumberedCall = serde_json::from_str(&text(call.clone())).expect("a call");
    assert_eq!(parsed.call, call);
}

#[test]
fn a_message_survives_half_a_line_before_it() {
    let message = NumberedCall { id: 7, call: Call::Hello };
    let whole = line(&message);
    let mut lines = Lines::new(CALL_LIMIT);
    lines.push(&whole[whole.len() / 2..]);
    for octet in &whole {
        lines.push(&[*octet]);
    }
    assert_eq!(lines.next_message(), Some(message));
    assert_eq!(lines.next_message::<NumberedCall>(), None);
}

#[test]
fn a_line_without_end_takes_bounded_memory_and_is_dropped_whole() {
    let mut lines = Lines::new(CALL_LIMIT);
    for _ in 0..40 {
        lines.push(&[b'x'; 16 * 1024]);
        assert_eq!(lines.next_line(), None);
        assert!(lines.pending.len() < CALL_LIMIT);
    }
    lines.push(b"tail\n7\n");
    assert_eq!(lines.next_message(), Some(7));
}

proptest! {
    #[test]
    fn no_line_makes_an_agent_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
        answer(&mut Fixed(Answer::Done), &text);
    }
}
