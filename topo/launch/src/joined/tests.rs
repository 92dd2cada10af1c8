//! Visitors at a launcher's door.

use super::*;
use tokio::runtime::Builder;

const TOKEN: &str = "00112233445566778899aabbccddeeff";

fn join(process: usize) -> Join {
    Join {
        process,
        token: TOKEN.to_owned(),
        shim_version: shim::VERSION,
        boot: boot(),
        path_mtu: 65_536,
    }
}

/// What a visitor hears who says `words` at the door, and how many of `count` seats are taken then.
async fn knock(
    listener: &TcpListener,
    visitors: Vec<String>,
    count: usize,
) -> (Vec<String>, usize) {
    let address = listener.local_addr().expect("it is bound");
    let speak = |words: String| async move {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let mut heard = String::new();
        // A door that shuts on unread words resets the connection: that too is silence.
        let _ = stream.write_all(words.as_bytes()).await;
        let _ = stream.write_all(b"\n").await;
        let _ = BufReader::new(&mut stream).read_line(&mut heard).await;
        heard
    };
    let mut tasks = JoinSet::new();
    let (mut heard, mut seated) = (Vec::new(), 0);
    for words in visitors {
        tasks.spawn(speak(words));
    }
    let token = Token::told(TOKEN);
    tokio::select! {
        gathered = gather(listener, &token, count) => seated = gathered.expect("all came").len(),
        () = async { while let Some(Ok(words)) = tasks.join_next().await { heard.push(words) } } => {}
    }
    (heard, seated)
}

fn with_listener<T>(test: impl AsyncFnOnce(&TcpListener) -> T) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback");
        test(&listener).await
    })
}

fn line(join: Join) -> String {
    serde_json::to_string(&FromJoining::Join(join)).expect("it serialises")
}

#[test]
fn a_lab_is_complete_when_each_process_has_come_in_whatever_order() {
    let (_, seated) = with_listener(async |listener| {
        let visitors = [2, 0, 1].map(|process| line(join(process)));
        knock(listener, visitors.to_vec(), 3).await
    });
    assert_eq!(seated, 3);
}

#[test]
fn strangers_learn_nothing_and_take_no_seat() {
    let wrong = Join { token: TOKEN.replace('f', "e"), ..join(0) };
    let short = Join { token: String::new(), ..join(0) };
    let words = vec![line(wrong), line(short), "GET / HTTP/1.1".to_owned(), "x".repeat(10_000)];
    let (heard, seated) = with_listener(async |listener| knock(listener, words, 1).await);
    assert_eq!((heard, seated), (vec![String::new(); 4], 0));
}

#[test]
fn a_process_too_many_or_of_another_build_is_told_why_it_may_not_join() {
    let beyond = line(join(7));
    let foreign = line(Join { shim_version: shim::VERSION + 1, ..join(0) });
    let (mut heard, seated) =
        with_listener(async |listener| knock(listener, vec![beyond, foreign], 1).await);
    heard.sort();
    assert_eq!(seated, 0);
    assert!(heard[0].contains("it speaks shim version"), "{heard:?}");
    assert!(heard[1].contains("there is no process 7 of 1"), "{heard:?}");
}

#[test]
fn the_second_to_come_as_one_process_is_refused() {
    let seat = |process| objection(&join(process), &[None, None]);
    assert_eq!((seat(0), seat(1)), (None, None));
    assert_eq!(seat(2).as_deref(), Some("there is no process 2 of 2"));
}

#[test]
fn a_clock_is_read_between_question_and_answer() {
    assert_eq!(offset(1_000, 51_500, 2_000), Offset { ahead_ns: 50_000, within_ns: 500 });
    assert_eq!(offset(51_000, 1_500, 52_000), Offset { ahead_ns: -50_000, within_ns: 500 });
    assert_eq!(offset(5, 5, 5), Offset { ahead_ns: 0, within_ns: 1 });
}
