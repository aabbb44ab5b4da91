//! The server as a client sees it: over TCP, with a trace on disk.

use hangdog_report::Loading;
use hangdog_server::{Options, Shelf, routes::ROUTES, serve};
use hangdog_trace::tables::{Frames, Modules, Symbols};
use hangdog_trace::{Meta, Trace, text};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// A worker that computes, while main waits for it.
const TRACE: &str = "
process app 100
thread main app 100
thread worker app 101
0    cpu0 switch idle -> main
0    cpu1 switch idle -> worker
10ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=wait;main
90ms cpu1 wake worker -> main futex op=wake object=futex:0x10 stack=post;work
91ms cpu0 switch idle -> main
95ms cpu1 switch worker -> idle sleeping nanosleep arg=5ms stack=nap;work
end 100ms
";

struct Quiet;

impl Loading for Quiet {
    fn step(&mut self, _: &'static str) {}

    fn name_functions(
        &mut self,
        _: &Trace,
        _: &Modules,
        _: &Frames,
        _: &mut Symbols,
    ) -> anyhow::Result<()> {
        Ok(())
    }
}

/// A server that runs for as long as the test program.
struct Client {
    address: String,
    token: String,
    dir: TempDir,
}

struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn json(&self) -> serde_json::Value {
        assert_eq!(self.status, 200, "{}", self.text());
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

impl Client {
    fn new(trace: &str) -> Client {
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("t.hang");
        let trace = text::parse(trace).expect("a trace in text form");
        trace
            .write_to(&path, Meta::default())
            .expect("a trace on disk");
        Client::of(dir, |loading| Shelf::of(path, loading))
    }

    fn of(dir: TempDir, shelf: impl FnOnce(hangdog_server::MakeLoading) -> Shelf) -> Client {
        let shelf = shelf(Arc::new(|| Box::new(Quiet)));
        let (tell, told) = channel();
        thread::spawn(move || {
            let options = Options {
                listen: Options::loopback(0),
                shelf,
            };
            serve(options, |url| tell.send(url.to_owned()).expect("a test"))
        });
        let url = told.recv().expect("an address");
        let (address, token) = url.split_once("/?token=").expect("a token");
        Client {
            address: address.strip_prefix("http://").expect("http").to_owned(),
            token: token.to_owned(),
            dir,
        }
    }

    fn trace(&self) -> PathBuf {
        self.dir.path().join("t.hang")
    }

    fn cookie(&self) -> String {
        let port = self.address.rsplit(':').next().expect("a port");
        format!("Cookie: hangdog-{port}={}", self.token)
    }

    /// A request with these headers and no others but Connection.
    fn raw(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Reply {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for header in headers {
            request += &format!("{header}\r\n");
        }
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).expect("a request");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("a reply");
        let at = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("a head");
        let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
        Reply {
            status: head
                .split(' ')
                .nth(1)
                .and_then(|s| s.parse().ok())
                .expect("a status"),
            head,
            body: bytes[at + 4..].to_vec(),
        }
    }

    fn host(&self) -> String {
        format!("Host: {}", self.address)
    }

    fn get(&self, path: &str) -> Reply {
        self.raw("GET", path, &[&self.host(), &self.cookie()], "")
    }

    fn post(&self, path: &str, body: &str) -> Reply {
        let kind = "Content-Type: application/json";
        self.raw("POST", path, &[&self.host(), &self.cookie(), kind], body)
    }

    /// Waits until the trace is read.
    fn ready(&self) -> serde_json::Value {
        loop {
            let state = self.get("/api/traces/0").json();
            match state["phase"].as_str() {
                Some("reading" | "tracks") => thread::sleep(Duration::from_millis(5)),
                _ => return state,
            }
        }
    }
}

/// docs/API.md tells of each route, and of no other; and each is there.
#[test]
fn the_document_has_the_routes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/API.md");
    let document = fs::read_to_string(file).expect("docs/API.md");
    let told: Vec<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    let routes: Vec<String> = ROUTES
        .iter()
        .map(|(method, path)| format!("{method} {path}"))
        .collect();
    assert_eq!(told, routes);
    let client = Client::new(TRACE);
    for (method, path) in ROUTES {
        let path = path.replace("{id}", "0");
        let headers = [client.host(), client.cookie()];
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let reply = client.raw(method, &path, &headers, "");
        assert!(
            !reply.text().contains("there is nothing here") && reply.status != 405,
            "{method} {path}: {} {}",
            reply.status,
            reply.text()
        );
    }
}

/// The token is exchanged for a cookie that scripts cannot read, and leaves the address.
#[test]
fn the_token_becomes_a_cookie() {
    let client = Client::new(TRACE);
    let path = format!("/?token={}", client.token);
    let reply = client.raw("GET", &path, &[&client.host()], "");
    assert_eq!(reply.status, 303);
    assert!(reply.head.contains("location: /\r\n"), "{}", reply.head);
    assert!(reply.head.contains(&format!(
        "={}; Path=/; HttpOnly; SameSite=Strict",
        client.token
    )));
    assert!(
        reply
            .head
            .contains("content-security-policy: default-src 'none';")
    );
}

/// Who has no token, a wrong one, or comes from elsewhere, learns nothing but why.
#[test]
fn strangers_are_refused() {
    let client = Client::new(TRACE);
    let (host, cookie) = (client.host(), client.cookie());
    let port = client
        .address
        .rsplit(':')
        .next()
        .expect("a port")
        .to_owned();
    let refused = |headers: &[&str], path: &str, why: &str| {
        let reply = client.raw("GET", path, headers, "");
        assert_eq!(reply.status, 403, "{headers:?} {path}");
        assert!(reply.text().contains(why), "{}", reply.text());
    };
    let api = "/api/traces/0";
    refused(&[&host], api, "the token is missing");
    let wrong = format!("Cookie: hangdog-{port}=0123");
    refused(&[&host, &wrong], api, "the token is missing");
    refused(&[&host, &cookie], "/?token=0123", "wrong token");
    refused(&["Host: evil.example", &cookie], api, "another host");
    refused(&[&cookie], api, "another host");
    let origin = "Origin: http://evil.example";
    refused(&[&host, &cookie, origin], api, "another origin");
    refused(&[&host, &cookie, "Origin: null"], api, "another origin");
    let own = format!("Origin: http://{}", client.address);
    assert_eq!(
        client.raw("GET", api, &[&host, &cookie, &own], "").status,
        200
    );
    let localhost = format!("Host: localhost:{port}");
    assert_eq!(
        client.raw("GET", api, &[&localhost, &cookie], "").status,
        200
    );
}

/// The verdict, its strip, and the interval of the wait say the same as the trace's text.
#[test]
fn answers_tell_the_trace() {
    let client = Client::new(TRACE);
    assert_eq!(client.ready()["phase"], "ready");
    let threads = client.get("/api/traces/0/threads").json();
    let utid = |name: &str| {
        let all = threads["threads"].as_array().expect("threads").iter();
        let found = all.into_iter().find(|t| t["thread"] == name);
        found.expect("a thread")["utid"].as_u64().expect("a utid")
    };
    let (main, worker) = (utid("main"), utid("worker"));

    let path = format!("/api/traces/0/verdict?thread={main}&from=10000000&to=91000000");
    let verdict = client.get(&path).json();
    let spans = verdict["blame_over_time"].as_array().expect("spans");
    let length = |s: &serde_json::Value| {
        s["to_ns"].as_u64().expect("ns") - s["from_ns"].as_u64().expect("ns")
    };
    assert_eq!(spans.iter().map(length).sum::<u64>(), 81_000_000);
    assert!(
        spans
            .windows(2)
            .all(|two| two[0]["to_ns"] == two[1]["from_ns"])
    );
    assert_eq!(verdict["root"]["thread"], "worker");

    let at = client
        .get(&format!("/api/traces/0/at?thread={main}&t=50000000"))
        .json();
    assert_eq!(at["entry"]["state"], "blocked");
    assert_eq!(at["ended"]["by"]["utid"], worker);
    assert_eq!(at["ended"]["at_ns"], 90_000_000);
    assert_eq!(at["ended"]["ran_ns"], 91_000_000);
    assert_eq!(at["ended"]["was_seen"], true);

    let range = client
        .get(&format!(
            "/api/traces/0/range?thread={main}&from=0&to=100000000"
        ))
        .json();
    assert_eq!(
        range["states_ns"],
        serde_json::json!([19_000_000, 1_000_000, 0, 80_000_000, 0])
    );
    assert_eq!(range["waits"][0]["count"], 1);
    assert_eq!(range["waits"][0]["sum_ns"], 80_000_000);

    let load = client.get("/api/traces/0/load?width=50000000").json();
    // Of main 10 ms and of worker 50 ms; then 10 ms with its wait for a CPU, and 45 ms.
    assert_eq!(load["average"][0], 60.0 / 50.0);
    assert_eq!(load["average"][1], 55.0 / 50.0);

    let at = |priority: u8| {
        let path = format!("/api/traces/0/load?width=50000000&priority={priority}");
        client.get(&path).json()["average"][0].clone()
    };
    assert_eq!(at(120), load["average"][0]);
    assert_eq!(at(119), 0.0);

    let awake = client.get("/api/traces/0/awake?t=90500000").json();
    assert_eq!(awake["threads"][0]["thread"], "worker");
    assert_eq!(awake["threads"][1]["state"], "runnable");
}

/// A tile's areas are the time that the command tells of, in bins and in intervals.
#[test]
fn tiles_have_the_area_of_their_time() {
    let mut trace =
        String::from("process app 100\nthread main app 100\n0 cpu0 switch idle -> main\n");
    for turn in 1..200u32 {
        trace += &format!(
            "{turn}00us cpu0 switch main -> idle sleeping nanosleep arg=30us
            {turn}30us cpu0 wake idle -> main in=timer
            {turn}37us cpu0 switch idle -> main\n"
        );
    }
    let client = Client::new(&(trace + "end 21ms"));
    client.ready();
    let threads = client.get("/api/traces/0/threads").json();
    let thread = &threads["threads"][0];
    let path = |shift: u32, bins: u32| {
        format!(
            "/api/traces/0/tiles?tracks=t{}&from=0&shift={shift}&bins={bins}",
            thread["utid"]
        )
    };
    let told: Vec<f64> = thread["states_ns"]
        .as_array()
        .expect("states")
        .iter()
        .map(|ns| ns.as_f64().expect("ns"))
        .collect();

    let bins = client.get(&path(17, 161)).body;
    let word = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
    };
    assert_eq!(&bins[..4], b"hdt1");
    assert_eq!(word(&bins, 24), 2, "bins");
    let n = word(&bins, 28) as usize;
    let shares = 40 + 16 * n;
    for state in [0, 1, 2, 4] {
        let sum: f64 = (0..n)
            .map(|i| {
                let at = shares + 2 * (state * n + i);
                f64::from(u16::from_le_bytes([bins[at], bins[at + 1]])) / 65535.0
            })
            .sum();
        let drawn = sum * f64::from(1 << 17);
        assert!(
            (drawn - told[state]).abs() <= told[state] * 0.005 + 1.0,
            "{state}: {drawn}"
        );
    }

    let intervals = client.get(&path(11, 16_384)).body;
    assert_eq!(word(&intervals, 24), 1, "intervals");
    let n = word(&intervals, 28) as usize;
    let float =
        |at: usize| f64::from_le_bytes(intervals[at..at + 8].try_into().expect("eight bytes"));
    for (state, told) in told.iter().enumerate() {
        let sum: f64 = (0..n)
            .filter(|i| intervals[40 + 20 * n + i] as usize == state)
            .map(|i| float(40 + 8 * n + 8 * i) - float(40 + 8 * i))
            .sum();
        assert_eq!(sum, *told, "{state}");
    }
}

/// Regions that programs marked are tracks, one for each name. Of those that are open at a moment the one that
/// began last is shown, in a colour of its argument.
#[test]
fn regions_are_tracks() {
    let client = Client::new(
        "process app 100\nthread main app 100\nthread other app 101
        0 cpu0 switch idle -> main
        1ms mark main begin frame 1
        2ms mark other begin frame 2
        3ms mark other end frame
        4ms mark main end frame
        5ms mark main begin load 5
        6ms mark main end load
        7ms mark main begin load
        end 8ms",
    );
    client.ready();
    let listed = client.get("/api/traces/0/regions").json();
    assert_eq!(
        listed["tracks"],
        serde_json::json!([
            { "name": "frame", "count": 2, "sum_ns": 4_000_000 },
            { "name": "load", "count": 2, "sum_ns": 2_000_000 },
        ])
    );
    let at = |track: u32, t_us: u64| {
        client.get(&format!(
            "/api/traces/0/region?track={track}&t={}",
            t_us * 1000
        ))
    };
    let inner = at(0, 2500).json();
    assert_eq!(
        (&inner["thread"]["tid"], &inner["start_ns"]),
        (&101.into(), &2_000_000.into())
    );
    assert_eq!(at(0, 3500).json()["arguments"][0], 1);
    assert_eq!(at(1, 7500).json()["open"], true);
    for (track, t_us) in [(0, 500), (0, 4500), (9, 2500)] {
        assert_eq!(at(track, t_us).status, 404);
    }
    let tile = client
        .get("/api/traces/0/tiles?tracks=r0,r1,r9&from=0&shift=10&bins=8000")
        .body;
    let word = |at: usize| u32::from_le_bytes(tile[at..at + 4].try_into().expect("four bytes"));
    let float = |at: usize| f64::from_le_bytes(tile[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!((word(24), word(28)), (1, 5), "five intervals");
    let starts: Vec<f64> = (0..5).map(|i| float(40 + 8 * i)).collect();
    assert_eq!(starts, [0.0, 1e6, 2e6, 3e6, 4e6]);
    let states = &tile[40 + 20 * 5..40 + 21 * 5];
    assert_eq!(
        (states[0], states[4], states[1]),
        (3, 3, states[3]),
        "{states:?}"
    );
    assert_ne!(states[1], states[2]);
}

/// The system calls of a thread are a track, each interval with the number of its call. They are in its story, and
/// `/at` has the call that the thread is in. Of two overlapping calls the first ends where the second begins.
#[test]
fn system_calls_are_tracks() {
    let client = Client::new(
        "process app 100\nthread main app 100\nthread other app 101
        0 cpu0 switch idle -> main
        1ms call 2ms main read result=5 args=3
        3ms call 1ms main openat error=2
        5ms call 2ms main read result=5 args=4
        6ms call 1ms main write result=7 args=5
        end 8ms",
    );
    client.ready();
    let listed = client.get("/api/traces/0/calls").json();
    let main = &listed["threads"][0];
    assert_eq!(
        (&main["count"], &main["sum_ns"]),
        (&4.into(), &6_000_000.into())
    );
    assert_eq!(listed["threads"].as_array().map(Vec::len), Some(1));
    let utid = &main["utid"];
    let tile = client
        .get(&format!(
            "/api/traces/0/tiles?tracks=s{utid},s99&from=0&shift=10&bins=8000"
        ))
        .body;
    let word = |at: usize| u32::from_le_bytes(tile[at..at + 4].try_into().expect("four bytes"));
    let float = |at: usize| f64::from_le_bytes(tile[at..at + 8].try_into().expect("eight bytes"));
    let n = word(28) as usize;
    let shown: Vec<(f64, f64, String, u8)> = (0..n)
        .map(|i| {
            let number = word(40 + 16 * n + 4 * i).to_string();
            let name = listed["names"][&number].as_str().unwrap_or("-");
            let (from, to) = (float(40 + 8 * i), float(40 + 8 * n + 8 * i));
            (from / 1e6, to / 1e6, name.to_owned(), tile[40 + 20 * n + i])
        })
        .collect();
    let expected = [
        (0.0, 1.0, "-", 3),
        (1.0, 3.0, "read", 0),
        (3.0, 4.0, "openat", 2),
        (4.0, 5.0, "-", 3),
        (5.0, 6.0, "read", 0),
        (6.0, 7.0, "write", 0),
        (7.0, 8.0, "-", 3),
    ];
    let expected = expected.map(|(from, to, name, state)| (from, to, name.to_owned(), state));
    assert_eq!(shown, expected);
    let at = |t_us: u64| {
        let path = format!("/api/traces/0/at?thread={utid}&t={}", t_us * 1000);
        client.get(&path).json()
    };
    assert_eq!(at(3500)["call_text"], "called openat() = ENOENT in 1 ms");
    assert_eq!(at(2999)["call"]["start_ns"], 1_000_000);
    assert_eq!(at(4500)["call"], serde_json::Value::Null);
    let story = client
        .get(&format!("/api/traces/0/story?thread={utid}"))
        .json();
    let places = story["intervals"][0]["places"].to_string();
    assert!(places.contains("called openat() = ENOENT"), "{places}");
}

/// A query that makes no sense gets a sentence and no panic.
#[test]
fn wrong_queries_get_a_sentence() {
    let client = Client::new(TRACE);
    client.ready();
    for (path, status, says) in [
        ("/api/traces/7", 404, "there is no trace 7"),
        ("/api/traces/x", 400, "id"),
        ("/api/traces/0/tiles", 400, "tracks"),
        (
            "/api/traces/0/tiles?tracks=z&from=0&shift=1&bins=1",
            400,
            "'z' is not a track",
        ),
        (
            "/api/traces/0/tiles?tracks=t1&from=0&shift=99&bins=1",
            400,
            "at most",
        ),
        (
            "/api/traces/0/tiles?tracks=t1&from=0&shift=1&bins=99999999",
            400,
            "at most",
        ),
        ("/api/traces/0/verdict?problem=77", 404, "77"),
        (
            "/api/traces/0/at?thread=4000000000&t=5",
            404,
            "does not live",
        ),
        ("/api/traces/0/range?thread=1&from=5&to=5", 422, "empty"),
        ("/api/traces/0/flame?from=0&to=5&view=up", 400, "'up'"),
        ("/api/traces/0/load?width=0", 400, "width"),
        ("/api/traces/0/load?width=1", 400, "width"),
        ("/api/traces/0/region?track=0&t=5", 404, "no region"),
        ("/api/nothing", 404, "there is nothing here"),
    ] {
        let reply = client.get(path);
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert!(reply.text().contains(says), "{path}: {}", reply.text());
    }
    // Numbers as large as there are.
    let most = u64::MAX;
    let path =
        format!("/api/traces/0/tiles?tracks=t1,c9,t4000000000&from={most}&shift=62&bins=16384");
    assert_eq!(client.get(&path).status, 200);
    assert_eq!(
        client.get(&format!("/api/traces/0/awake?t={most}")).status,
        200
    );
    assert_eq!(client.post("/api/traces/0/answers", "{}").status, 422);
    assert_eq!(client.post("/api/traces/0/answers", "{").status, 400);
}

/// An answer is written beside the trace; a trace that is no longer there says so.
#[test]
fn a_trace_that_vanishes() {
    let client = Client::new(TRACE);
    client.ready();
    fs::remove_dir_all(client.trace()).expect("removed");
    let reply = client.post(
        "/api/traces/0/answers",
        r#"{"problem": 1, "question": 1, "choice": "none"}"#,
    );
    assert_ne!(reply.status, 200);
    assert!(reply.text().contains("error"), "{}", reply.text());
    // What was read stays readable.
    assert_eq!(client.get("/api/traces/0/threads").status, 200);
}

/// A damaged trace is one that fails with a sentence, in the list too.
#[test]
fn a_damaged_trace() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("bad.hang");
    fs::create_dir(&path).expect("a directory");
    fs::write(path.join("meta.json"), "{").expect("a file");
    let folder = dir.path().to_owned();
    let client = Client::of(dir, |loading| {
        Shelf::in_folder(folder.clone(), folder.join("none"), loading)
    });
    let listed = client.get("/api/traces").json();
    assert_eq!(listed["traces"][0]["name"], "bad.hang");
    assert!(listed["traces"][0]["error"].is_string());
    let state = client.ready();
    assert_eq!(state["phase"], "failed");
    assert!(
        state["error"]
            .as_str()
            .expect("a sentence")
            .contains("meta.json")
    );
    assert_eq!(client.get("/api/traces/0/verdict").status, 422);
}

/// Where only the marks are damaged, the rest of the trace is shown; a request for the marks gets an error.
#[test]
fn damaged_marks() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("t.hang");
    let trace =
        text::parse("process app 100\nthread main app 100\n1ms mark main begin frame\nend 2ms");
    let trace = trace.expect("a trace in text form");
    trace
        .write_to(&path, Meta::default())
        .expect("a trace on disk");
    for part in fs::read_dir(path.join("marks")).expect("a table") {
        let part = part.expect("a part").path();
        let length = fs::metadata(&part).expect("a file").len() as usize;
        fs::write(&part, vec![b'x'; length]).expect("a file");
    }
    let client = Client::of(dir, |loading| Shelf::of(path, loading));
    assert_eq!(client.ready()["phase"], "ready");
    assert_eq!(client.get("/api/traces/0/threads").status, 200);
    let refused = client.get("/api/traces/0/regions");
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("marks"), "{}", refused.text());
    // Its track is empty then.
    let tile = "/api/traces/0/tiles?tracks=r0&from=0&shift=10&bins=100";
    assert_eq!(client.get(tile).status, 200);
}
