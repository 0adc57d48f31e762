//! Requests as bytes on a socket, for what no client would send.

use serde_json::Value;
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Status, head and body of the answer to some bytes.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// The code of the problem that it is.
    pub fn code(&self) -> String {
        assert!(
            self.head.contains("application/problem+json"),
            "{} {}",
            self.head,
            String::from_utf8_lossy(&self.body)
        );
        let problem: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["status"], self.status);
        assert!(problem["detail"].as_str().unwrap().len() > 5);
        problem["code"].as_str().unwrap().to_owned()
    }
}

/// Send these bytes and read until the host closes.
pub async fn exchange(socket: PathBuf, request: &[u8]) -> Option<Answer> {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    // The host may close before all is sent.
    let _ = stream.write_all(request).await;
    let mut answer = vec![];
    let _ = stream.read_to_end(&mut answer).await;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Some(Answer { status, head, body: answer[end + 4..].to_vec() })
}

/// A request with these headers and body, after which the connection is closed.
pub fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n");
    [format!("{head}{headers}\r\n").as_bytes(), body].concat()
}
