//! PSN wrap, window, retransmission, withdrawal.

use super::*;
use proto::units::Instant;
use proto::wire::infiniband::Syndrome;

const LIMITS: RetryLimits = RetryLimits { retry_count: 7, rnr_retry: 7 };
const GAP: Syndrome = Syndrome::Nak(NakCode::PsnSequence);

fn message(size: u32, item: u16) -> Message {
    Message { posted: Instant::ZERO, sequence: 0, number: 0, size, item }
}

fn requester(sizes: &[u32]) -> Requester {
    let mut requester = Requester::new(Service::Rc, 1000, LIMITS);
    for size in sizes {
        requester.post(message(*size, 0));
    }
    requester
}

fn send(requester: &mut Requester, n: u32) -> Vec<u32> {
    (0..n)
        .map(|_| {
            let psn = requester.next_packet().expect("something to send").psn.get();
            requester.on_transmit();
            psn
        })
        .collect()
}

fn psn(value: u32) -> Psn {
    Psn::truncate(value)
}

#[test]
fn an_acknowledgement_completes_every_message_it_covers_and_no_part_of_one() {
    let mut requester = requester(&[2500, 1000, 1500]);
    assert_eq!(send(&mut requester, 6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(requester.on_acknowledge(psn(1), Syndrome::ACK).completed, 0);
    assert_eq!(requester.on_acknowledge(psn(4), Syndrome::ACK).completed, 2);
    let echo = requester.on_acknowledge(psn(1), Syndrome::ACK);
    assert_eq!((echo.completed, echo.progress, echo.action), (0, false, RequesterAction::Continue));
    let unsent = requester.on_acknowledge(psn(6), Syndrome::ACK);
    assert!(!unsent.progress, "a PSN that was never sent confirms nothing");
    assert_eq!(requester.on_acknowledge(psn(5), Syndrome::ACK).completed, 1);
    assert!(!requester.awaits_acknowledgement());
    assert_eq!(requester.next_packet(), None);
}

#[test]
fn a_peer_that_starts_again_gets_all_unfinished_messages_from_the_first_psn_on() {
    let mut requester = requester(&[2500, 1000, 1500]);
    send(&mut requester, 5);
    requester.on_acknowledge(psn(3), Syndrome::ACK);
    requester.give_up();
    requester.restart();
    assert_eq!(requester.next_packet(), None, "the error state has withdrawn everything");
    assert!(requester.post(message(1000, 0)));
    assert!(requester.next_packet().unwrap().is_first_transmission);
    let mut requester = self::requester(&[2500, 1000, 1500]);
    send(&mut requester, 5);
    requester.on_acknowledge(psn(2), Syndrome::ACK);
    requester.restart();
    let first = requester.next_packet().unwrap();
    assert_eq!((first.psn, first.message.size), (psn(0), 1000));
    let sent: Vec<bool> = (0..3)
        .map(|_| {
            let is_first = requester.next_packet().unwrap().is_first_transmission;
            requester.on_transmit();
            is_first
        })
        .collect();
    assert_eq!(sent, [false, false, true], "two of these packets had been sent");
    assert_eq!(requester.on_acknowledge(psn(2), Syndrome::ACK).completed, 2);
}

#[test]
fn a_nak_goes_back_to_the_packet_it_names_whatever_its_message() {
    let mut requester = requester(&[2500, 1000, 1500]);
    send(&mut requester, 6);
    let outcome = requester.on_acknowledge(psn(4), GAP);
    assert_eq!((outcome.completed, outcome.action), (2, RequesterAction::GoBack));
    let again = requester.next_packet().unwrap();
    assert_eq!(
        (again.psn, again.position, again.is_first_transmission),
        (psn(4), Position::First, false)
    );
    assert_eq!(send(&mut requester, 2), [4, 5]);
}

#[test]
fn an_acknowledgement_during_retransmission_skips_confirmed_packets() {
    let mut requester = requester(&[1000; 6]);
    send(&mut requester, 6);
    requester.on_timeout();
    assert_eq!(send(&mut requester, 1), [0]);
    requester.on_acknowledge(psn(3), Syndrome::ACK);
    let next = requester.next_packet().unwrap();
    assert_eq!((next.psn, next.is_first_transmission), (psn(4), false));
}

#[test]
fn sequence_numbers_wrap() {
    let mut requester = requester(&[1500; 4]);
    let start = psn(Psn::MAX - 2);
    (requester.front_psn, requester.unacknowledged) = (start, start);
    (requester.next_psn, requester.newest_psn) = (start, start);
    let last = Psn::MAX;
    assert_eq!(send(&mut requester, 5), [last - 2, last - 1, last, 0, 1]);
    let outcome = requester.on_acknowledge(psn(0), GAP);
    assert_eq!((outcome.completed, outcome.action), (1, RequesterAction::GoBack));
    assert_eq!(send(&mut requester, 5), [0, 1, 2, 3, 4]);
    assert_eq!(requester.on_acknowledge(psn(4), Syndrome::ACK).completed, 3);
}

#[test]
fn the_window_is_half_the_sequence_space() {
    let mut requester = Requester::new(Service::Rc, 256, LIMITS);
    requester.post(message(1 << 31, 0));
    requester.post(message(25_600, 0));
    let mut sent = 0;
    while requester.next_packet().is_some() {
        requester.on_transmit();
        sent += 1;
    }
    assert_eq!(sent, (1 << 23) - 1);
    assert!(requester.on_acknowledge(psn(9), Syndrome::ACK).progress);
    send(&mut requester, 10);
    assert_eq!(requester.next_packet(), None);
}

#[test]
fn retries_run_out_without_progress_and_start_anew_with_it() {
    let limits = RetryLimits { retry_count: 2, rnr_retry: 1 };
    let mut requester = Requester { limits, ..requester(&[1000; 4]) };
    send(&mut requester, 4);
    for _ in 0..2 {
        assert_eq!(requester.on_timeout(), RequesterAction::GoBack);
        send(&mut requester, 4);
    }
    requester.on_acknowledge(psn(0), Syndrome::ACK);
    assert_eq!(requester.on_timeout(), RequesterAction::GoBack);
    send(&mut requester, 3);
    assert_eq!(requester.on_timeout(), RequesterAction::GoBack);
    send(&mut requester, 3);
    assert_eq!(requester.on_timeout(), RequesterAction::GiveUp);
    let rnr = Syndrome::Rnr { timer: 1 };
    let wait = RequesterAction::Wait(Duration::from_us(10));
    assert_eq!(requester.on_acknowledge(psn(1), rnr).action, wait);
    assert_eq!(requester.next_packet(), None);
    requester.on_receiver_ready();
    assert_eq!(send(&mut requester, 1), [1]);
    assert_eq!(requester.on_acknowledge(psn(1), rnr).action, RequesterAction::GiveUp);
}

#[test]
fn only_unsent_messages_of_the_item_are_withdrawn() {
    let mut requester = requester(&[2500]);
    for item in [0, 1, 0] {
        requester.post(message(700, item));
    }
    send(&mut requester, 1);
    assert_eq!(requester.withdraw(0), Withdrawn { messages: 2, octets: 1400 });
    assert_eq!(send(&mut requester, 3), [1, 2, 3]);
    assert_eq!(requester.next_packet(), None);
    let mut begun = Requester::new(Service::Uc, 1000, LIMITS);
    begun.post(message(2500, 0));
    begun.on_transmit();
    assert_eq!(begun.withdraw(0), Withdrawn::default());
    assert_eq!(begun.give_up(), Withdrawn { messages: 1, octets: 1500 });
    assert!(!begun.post(message(1, 0)), "a failed requester takes no message");
}
