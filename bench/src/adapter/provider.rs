//! Fake providers on this machine, and a minimal client.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The answer of every model.
pub(super) const TEXT: &str = "Water goes where it is let.";
/// Chunks of the answer.
const PIECES: [&str; 3] = ["Water goes ", "where it ", "is let."];

/// A fake provider.
pub(super) struct Provider {
    pub(super) address: SocketAddr,
    last: Arc<Mutex<Vec<u8>>>,
}

impl Provider {
    /// Answers at once.
    pub(super) async fn instant(kind: &str) -> anyhow::Result<Provider> {
        Provider::serve(kind.to_owned(), None).await
    }

    /// Pauses between the chunks of an answer.
    pub(super) async fn slow(kind: &str, pause: Duration) -> anyhow::Result<Provider> {
        Provider::serve(kind.to_owned(), Some(pause)).await
    }

    async fn serve(kind: String, pause: Option<Duration>) -> anyhow::Result<Provider> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let last: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = Arc::clone(&last);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kind, kept) = (kind.clone(), Arc::clone(&kept));
                tokio::spawn(async move {
                    // The client may disconnect.
                    let _ = answer(stream, &kind, pause, &kept).await;
                });
            }
        });
        Ok(Provider { address, last })
    }

    /// The last request, byte for byte.
    pub(super) fn last_request(&self) -> Vec<u8> {
        self.last.lock().expect("the lock is not poisoned").clone()
    }
}

/// The stream events of an answer, in the provider's format.
fn events(kind: &str) -> Vec<String> {
    let mut all = Vec::new();
    match kind {
        "openai" => {
            for piece in PIECES {
                let delta = format!(
                    r#"{{"model":"m","choices":[{{"index":0,"delta":{{"content":"{piece}"}}}}]}}"#
                );
                all.push(format!("data: {delta}\n\n"));
            }
            all.push(
                "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
                    .to_owned(),
            );
            all.push(
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":7}}\n\n\
                 data: [DONE]\n\n"
                    .to_owned(),
            );
        }
        "anthropic" => {
            all.push(
                "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\
                 \"usage\":{\"input_tokens\":20,\"output_tokens\":1}}}\n\n\
                 event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\
                 \"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
                    .to_owned(),
            );
            for piece in PIECES {
                all.push(format!(
                    "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\
                     \"delta\":{{\"type\":\"text_delta\",\"text\":\"{piece}\"}}}}\n\n"
                ));
            }
            all.push(
                "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
                 event: message_delta\ndata: {\"type\":\"message_delta\",\
                 \"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\n\
                 event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
                    .to_owned(),
            );
        }
        _ => {
            for piece in PIECES {
                all.push(format!(
                    "data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\
                     \"parts\":[{{\"text\":\"{piece}\"}}]}}}}]}}\n\n"
                ));
            }
            all.push(
                "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[]},\
                 \"finishReason\":\"STOP\"}],\"modelVersion\":\"m\",\
                 \"usageMetadata\":{\"promptTokenCount\":20,\"candidatesTokenCount\":7}}\n\n"
                    .to_owned(),
            );
        }
    }
    all
}

async fn answer(
    stream: TcpStream,
    kind: &str,
    pause: Option<Duration>,
    last: &Mutex<Vec<u8>>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let events = events(kind);
    let mut stream = BufReader::new(stream);
    loop {
        let Some(request) = read(&mut stream).await? else { return Ok(()) };
        *last.lock().expect("the lock is not poisoned") = request;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        let mut out = head.as_bytes().to_vec();
        for event in &events {
            out.extend(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
            if let Some(pause) = pause {
                stream.get_mut().write_all(&out).await?;
                out.clear();
                tokio::time::sleep(pause).await;
            }
        }
        out.extend(b"0\r\n\r\n");
        stream.get_mut().write_all(&out).await?;
    }
}

/// Reads a request, head and body.
pub(super) async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Vec<u8>>> {
    let (mut request, mut length) = (Vec::new(), 0);
    loop {
        let begun = request.len();
        if stream.read_until(b'\n', &mut request).await? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&request[begun..]).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line == "\r\n" {
            break;
        }
    }
    let head = request.len();
    request.resize(head + length, 0);
    stream.read_exact(&mut request[head..]).await?;
    Ok(Some(request))
}

/// A client that sends raw bytes and reads the response to its end.
pub(super) struct BareClient {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl BareClient {
    pub(super) fn new(address: SocketAddr) -> anyhow::Result<BareClient> {
        Ok(BareClient { address, stream: None })
    }

    pub(super) async fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(self.address).await?;
                stream.set_nodelay(true)?;
                none.insert(BufReader::new(stream))
            }
        };
        stream.get_mut().write_all(request).await?;
        let mut line = String::new();
        while line != "0\r\n" {
            line.clear();
            anyhow::ensure!(stream.read_line(&mut line).await? > 0, "the answer broke off");
        }
        line.clear();
        stream.read_line(&mut line).await?;
        Ok(())
    }
}

/// Sends a recorded request with the HTTP library alone, and reads the response to its
/// end.
pub(super) async fn send(
    client: &reqwest::Client,
    address: SocketAddr,
    request: &[u8],
) -> anyhow::Result<()> {
    let text = std::str::from_utf8(request)?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let path = head.split(' ').nth(1).unwrap_or("/");
    let asked = client
        .post(format!("http://{address}{path}"))
        .header("content-type", "application/json")
        .body(body.to_owned());
    let mut answer = asked.send().await?;
    anyhow::ensure!(answer.status().is_success(), "{}", answer.status());
    while answer.chunk().await?.is_some() {}
    Ok(())
}
