//! A web server on tokio: `gateway PORT WORKERS`. `/health` answers at once. `/sensor/S` reads a
//! sensor, which sleeps S seconds; `/thumbnail/S` makes a picture smaller, which computes for so
//! long. Neither lets other tasks run meanwhile. With 0 workers all tasks share the main thread, and
//! `/order/S` keeps the stock locked while it awaits S seconds.

use std::future::Future;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

fn read_sensor(length: Duration) -> String {
    std::thread::sleep(length);
    "21.5".into()
}

fn make_thumbnail(length: Duration) -> String {
    let end = Instant::now() + length;
    let mut pixel = 1u32;
    while Instant::now() < end {
        for step in 0..10_000u32 {
            pixel = pixel.rotate_left(5).wrapping_mul(0x9e37_79b9) ^ step;
        }
    }
    pixel.to_string()
}

static STOCK: Mutex<u32> = Mutex::new(1_000);

async fn take_order(length: Duration) -> String {
    let mut stock = STOCK.lock().expect("nobody panics");
    tokio::time::sleep(length).await;
    *stock -= 1;
    stock.to_string()
}

fn parts(path: &str) -> (&str, Duration) {
    let (page, seconds) = path
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or((path, "0"));
    (
        page,
        Duration::from_secs_f64(seconds.parse().unwrap_or(0.0)),
    )
}

async fn answer(path: String) -> String {
    match parts(&path) {
        ("sensor", length) => read_sensor(length),
        ("thumbnail", length) => make_thumbnail(length),
        _ => "well".into(),
    }
}

async fn answer_on_one_thread(path: String) -> String {
    match parts(&path) {
        ("order", length) => take_order(length).await,
        _ => answer(path).await,
    }
}

async fn serve<F: Future<Output = String>>(
    stream: TcpStream,
    answer: impl Fn(String) -> F,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    stream.read_line(&mut request).await?;
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 2 {
        line.clear();
    }
    let body = answer(request.split(' ').nth(1).unwrap_or("/").to_owned()).await;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", body.len());
    let whole = format!("{head}Connection: close\r\n\r\n{body}");
    stream.write_all(whole.as_bytes()).await?;
    stream.shutdown().await
}

async fn listen(port: &str, begin: impl Fn(TcpStream)) -> std::io::Result<()> {
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("ready");
    loop {
        let (stream, _) = listener.accept().await?;
        begin(stream);
    }
}

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let workers = words[2].parse().expect("a number of workers");
    if workers == 0 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let begin = |stream| {
            drop(tokio::task::spawn_local(serve(
                stream,
                answer_on_one_thread,
            )))
        };
        return tokio::task::LocalSet::new().block_on(&runtime, listen(&words[1], begin));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()?;
    let begin = |stream| drop(tokio::spawn(serve(stream, answer)));
    runtime.block_on(async { tokio::spawn(async move { listen(&words[1], begin).await }).await? })
}
