//! Initial inputs of the targets that read text: traces, JSON, HTTP, and lines of a daemon that joins.

/// Traces, good and refused.
pub fn traces() -> Vec<Vec<u8>> {
    const GOOD: &str = "# name  when  source destination octets\nping at=2us 0 1 750000\n\
                        pong after=ping 1 0 750000\nnext after=ping,pong;at=1 mtu 0 1 1000\n";
    let lines = [
        "a at=0us 0 1 5",
        "a at=1.5ms 7 0 64\nb after=a 0 7 64\n",
        "a at=0us 0 0 5",
        "a at=0us 0 1 0",
        "a soon 0 1 5",
        "a after=b 0 1 5",
        "a at=0us 0 1 5\na at=0us 0 1 5",
        "a at=0us 0 1 5\nb after=a 2 1 5",
        "a at=0us 4294967295 1 18446744073709551615",
        "a at=213days 0 1 5",
        "a at=0us 0 1",
        "a at=0us;at=1us 0 1 5 6",
        "",
    ];
    [GOOD].into_iter().chain(lines).map(|text| text.as_bytes().to_vec()).collect()
}

/// Bodies and calls behind the octet that chooses the type.
pub fn json() -> Vec<Vec<u8>> {
    let texts: [(u8, &str); 17] = [
        (0, r#"{"down":true,"loss":0.25,"rate":"10 Gbps"}"#),
        (0, r#"{"loss":1e-9}"#),
        (1, r#"{"action":"drop","frames":"all","chance":0.5,"for":"3 us"}"#),
        (1, r#"{"action":{"delay":"2 us"},"frames":"link","chance":1.0,"for":null}"#),
        (2, r#"{"item":"even","on":false}"#),
        (3, r#"{"file":"a.pcapng","ports":{"s0:1":"8 Gbps"},"snaplen":64}"#),
        (4, r#"{"kmin":"4 KB","weights":[1,2],"deep":{"x":1.5}}"#),
        (5, r#"{"error":"no"}"#),
        (6, r#"{"adapters":3}"#),
        (7, r#"{"lab":"one"}"#),
        (8, r#"{"nodes":[]}"#),
        (9, r#"{"names":["s0:1"],"outputs":[]}"#),
        (
            10,
            "{\"id\":1,\"call\":\"hello\"}\n{\"id\":2,\"call\":{\"open_device\":{\"name\":null}}}\n",
        ),
        (10, "{\"id\":3,\"call\":{\"query_gid\":{\"device\":1,\"index\":0}}}\n\nnonsense\n"),
        (
            10,
            "{\"id\":9,\"call\":{\"register_memory\":{\"pd\":1,\"length\":4096,\"access\":{\"local_write\":true}}}}\n",
        ),
        (10, "{\"id\":18446744073709551615,\"call\":\"clear\"}\n"),
        (2, r#"{"on":true,"on":false}"#),
    ];
    texts.map(|(kind, text)| [&[kind], text.as_bytes()].concat()).to_vec()
}

/// Requests, whole and broken.
pub fn requests() -> Vec<Vec<u8>> {
    let post = |path: &str, body: &str| {
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nHost: lab:4700\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
    };
    let chunked = "POST /traffic HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                   Transfer-Encoding: chunked\r\n\r\nb\r\n{\"on\":true}\r\n0\r\n\r\n";
    let texts = [
        "GET /names HTTP/1.1\r\nHost: localhost:4700\r\n\r\n".to_owned(),
        "GET /names HTTP/1.1\r\nHost: 127.0.0.1:4700\r\nHost: other\r\n\r\n".to_owned(),
        "GET /query?token=a%20b&from=7 HTTP/1.0\r\n\r\n".to_owned(),
        "HEAD /query?x HTTP/1.1\r\nHost: [::1]:4700\r\n\r\n".to_owned(),
        "OPTIONS * HTTP/1.1\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "GET /none HTTP/1.1\r\nExpect: 100-continue\r\nConnection: upgrade\r\n\r\n".to_owned(),
        post("/links/s0:1", r#"{"down":true}"#),
        post("/faults/s0:1", r#"{"action":"drop","frames":"all","chance":0.5,"for":null}"#),
        post("/traffic", r#"{"item":"even","on":false}"#),
        post("/capture", r#"{"file":"a","ports":{"s0:1":"8 Gbps"}}"#),
        post("/traffic", &"1".repeat(1_100)),
        post("/links/%00", "{").replace("application/json", "text/plain"),
        chunked.to_owned(),
        "GET / HTTP/1.1\r\nX: ".to_owned() + &"y".repeat(600),
    ];
    texts.map(String::into_bytes).to_vec()
}

/// Lines of both ends, and configurations, behind the octet that says what becomes of them.
pub fn joining() -> Vec<Vec<u8>> {
    const CONFIGURATION: &str = "lab = \"a\"\nprocess = 3\nprocesses = 4\nseed = 1\n\
        technology = \"ethernet\"\nhosts = []\ndevices = []\n[plan]\ntau = \"2 us\"\nstop = \"400 us\"\n\
        bin = \"20 us\"\nedges = []\nmeasured = []\nall_events = false\n[wiring]\nnodes = []\nlinks = []\n";
    let join = r#"{"join":{"process":3,"nonce":"ab","shim_version":2,"boot":"b","path_mtu":1500}}"#;
    let texts: [(u8, String); 14] = [
        (0, format!("{join}\n{{\"proof\":\"00\"}}\n{{\"clock\":7}}\n")),
        (0, "\"stop\"\n{\"refused\":\"no\"}\n\"clock\"\n".to_owned()),
        (0, format!("{}\n", "x".repeat(700))),
        (1, "{\"challenge\":\"cd\"}\n\"clock\"\n\"clock\"\n".to_owned()),
        (1, "{\"configuration\":{\"text\":\"lab = 1\",\"proof\":\"00\"}}\n".to_owned()),
        (1, "{\"refused\":\"no process 3\"}\n".to_owned()),
        (3, "\"clock\"\n{\"challenge\":\"again\"}\n".to_owned()),
        (3, format!("{{\"configuration\":{{\"text\":\"\",\"proof\":\"{}\"}}}}\n", "0".repeat(64))),
        (7, CONFIGURATION.to_owned()),
        (7, CONFIGURATION.replace("seed", "feed = \"/etc/passwd\"\nseed")),
        (7, CONFIGURATION.replace("seed", "socket_dir = \"/tmp\"\nseed")),
        (7, CONFIGURATION.replace("seed", "carrier = \"packet\"\nseed")),
        (5, CONFIGURATION.to_owned()),
        (1, String::new()),
    ];
    texts.map(|(how, text)| [&[how], text.as_bytes()].concat()).to_vec()
}
