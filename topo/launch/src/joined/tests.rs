//! Clients that try to join a launcher.

use super::*;
use tokio::io::AsyncWriteExt;
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

/// The answers to clients that send these lines, and the number of daemons if all `count` have joined.
async fn attempt(
    listener: &TcpListener,
    clients: Vec<String>,
    count: usize,
) -> (Vec<String>, usize) {
    let address = listener.local_addr().expect("it is bound");
    let client = |words: String| async move {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let mut heard = String::new();
        // A connection closed with unread data is reset: that is no answer either.
        let _ = stream.write_all(words.as_bytes()).await;
        let _ = stream.write_all(b"\n").await;
        let _ = BufReader::new(&mut stream).read_line(&mut heard).await;
        heard
    };
    let mut tasks = JoinSet::new();
    let (mut heard, mut joined) = (Vec::new(), 0);
    for words in clients {
        tasks.spawn(client(words));
    }
    let token = Token::new(TOKEN);
    tokio::select! {
        all = accept_all(listener, &token, count) => joined = all.expect("all joined").len(),
        () = async { while let Some(Ok(words)) = tasks.join_next().await { heard.push(words) } } => {}
    }
    (heard, joined)
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
fn a_lab_is_complete_when_each_process_has_joined_in_any_order() {
    let (_, joined) = with_listener(async |listener| {
        let clients = [2, 0, 1].map(|process| line(join(process)));
        attempt(listener, clients.to_vec(), 3).await
    });
    assert_eq!(joined, 3);
}

#[test]
fn clients_without_the_token_get_no_answer_and_take_no_slot() {
    let wrong = Join { token: TOKEN.replace('f', "e"), ..join(0) };
    let short = Join { token: String::new(), ..join(0) };
    let words = vec![line(wrong), line(short), "GET / HTTP/1.1".to_owned(), "x".repeat(10_000)];
    let (heard, joined) = with_listener(async |listener| attempt(listener, words, 1).await);
    assert_eq!((heard, joined), (vec![String::new(); 4], 0));
}

#[test]
fn an_unknown_process_and_another_build_get_the_reason_of_the_refusal() {
    let beyond = line(join(7));
    let foreign = line(Join { shim_version: shim::VERSION + 1, ..join(0) });
    let (mut heard, joined) =
        with_listener(async |listener| attempt(listener, vec![beyond, foreign], 1).await);
    heard.sort();
    assert_eq!(joined, 0);
    assert!(heard[0].contains("its shim version is"), "{heard:?}");
    assert!(heard[1].contains("there is no process 7 of 1"), "{heard:?}");
}

#[test]
fn a_process_that_does_not_exist_is_refused() {
    let reason = |process| refusal(&join(process), &[None, None]);
    assert_eq!((reason(0), reason(1)), (None, None));
    assert_eq!(reason(2).as_deref(), Some("there is no process 2 of 2"));
}

#[test]
fn a_clock_is_read_between_request_and_answer() {
    assert_eq!(offset(1_000, 51_500, 2_000), ClockOffset { ahead_ns: 50_000, within_ns: 500 });
    assert_eq!(offset(51_000, 1_500, 52_000), ClockOffset { ahead_ns: -50_000, within_ns: 500 });
    assert_eq!(offset(5, 5, 5), ClockOffset { ahead_ns: 0, within_ns: 1 });
}
