//! Clients that try to join a launcher.

use super::*;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Builder;

const TOKEN: &str = "00112233445566778899aabbccddeeff";

fn join(process: usize) -> Join {
    Join {
        process,
        nonce: "nonce".to_owned(),
        shim_version: shim::VERSION,
        boot: boot(),
        path_mtu: 65_536,
    }
}

/// A client with its first line and its token.
type Client = (String, &'static str);

/// Sends the first line, answers a challenge, and returns everything that was heard.
async fn converse(address: SocketAddr, (line, token): Client) -> String {
    let mut stream = BufReader::new(TcpStream::connect(address).await.expect("it listens"));
    // A connection closed with unread data is reset: that is not an answer either.
    let _ = stream.write_all(format!("{line}\n").as_bytes()).await;
    let (mut all, mut heard) = (String::new(), String::new());
    while stream.read_line(&mut heard).await.is_ok_and(|octets| octets > 0) {
        if let Ok(ToJoining::Challenge(challenge)) = read_line(&heard) {
            let proof = Token::new(token).sign(AS_DAEMON, &["nonce", &challenge]);
            let _ = send_line(&mut stream, &FromJoining::Proof(proof)).await;
        }
        all.push_str(&std::mem::take(&mut heard));
    }
    all
}

/// What these clients hear, and the number of daemons if all `count` have joined.
async fn attempt(
    listener: &TcpListener,
    clients: Vec<Client>,
    count: usize,
) -> (Vec<String>, usize) {
    let address = listener.local_addr().expect("it is bound");
    let mut tasks = JoinSet::new();
    let (mut heard, mut joined) = (Vec::new(), 0);
    for client in clients {
        tasks.spawn(converse(address, client));
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
        let clients = [2, 0, 1].map(|process| (line(join(process)), TOKEN));
        attempt(listener, clients.to_vec(), 3).await
    });
    assert_eq!(joined, 3);
}

#[test]
fn clients_without_the_token_hear_a_random_text_alone_and_take_no_slot() {
    let clients = vec![
        (line(join(0)), "00112233445566778899aabbccddeeee"),
        (line(join(0)), ""),
        ("GET / HTTP/1.1".to_owned(), TOKEN),
        ("x".repeat(10_000), TOKEN),
    ];
    let (heard, joined) = with_listener(async |listener| attempt(listener, clients, 1).await);
    let challenged = heard.iter().filter(|words| !words.is_empty());
    assert!(challenged.clone().all(|words| words.starts_with("{\"challenge\":")), "{heard:?}");
    assert!(heard.iter().all(|words| words.lines().count() <= 1 && !words.contains(TOKEN)));
    assert_eq!((challenged.count(), joined), (2, 0));
}

/// Proofs are worth nothing in another connection.
#[test]
fn a_recorded_proof_opens_nothing() {
    let proof = Token::new(TOKEN).sign(AS_DAEMON, &["nonce", "of another connection"]);
    let proof = serde_json::to_string(&FromJoining::Proof(proof)).expect("it serialises");
    let replayed = (format!("{}\n{proof}", line(join(0))), "unused");
    let (heard, joined) =
        with_listener(async |listener| attempt(listener, vec![replayed], 1).await);
    assert_eq!((heard.len(), joined), (1, 0), "{heard:?}");
}

#[test]
fn an_unknown_process_and_another_build_get_the_reason_of_the_refusal() {
    let beyond = (line(join(7)), TOKEN);
    let foreign = (line(Join { shim_version: shim::VERSION + 1, ..join(0) }), TOKEN);
    let (heard, joined) =
        with_listener(async |listener| attempt(listener, vec![beyond, foreign], 1).await);
    assert_eq!(joined, 0);
    let says = |reason: &str| heard.iter().any(|words| words.contains(reason));
    assert!(says("its shim version is") && says("there is no process 7 of 1"), "{heard:?}");
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
