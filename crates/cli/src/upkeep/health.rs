//! `partita health`: asks a running server whether it can be used, for health checks of containers and services.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, SystemTime};

use crate::config;
use clap::Args;
use thiserror::Error;

/// Our server's answer is a short text; another program may send more.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

#[derive(Args, Debug)]
pub struct HealthFlags {
    /// The address on which the server listens for HTTP; 0.0.0.0 means this machine
    #[arg(long, value_name = "HOST:PORT", env = "PARTITA_LISTEN", default_value = config::LISTEN)]
    listen: String,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=300))]
    timeout: u64,
}

/// Why a server can't be used.
#[derive(Debug, Error)]
pub enum HealthError {
    #[error("can't use --listen {listen}: {source}; it takes HOST:PORT, such as 127.0.0.1:10002")]
    Address { listen: String, source: io::Error },
    #[error("can't use --listen {listen}: the name has no address")]
    NoAddress { listen: String },
    #[error("{address} does not answer: {source}; is a server running there?")]
    Silent { address: SocketAddr, source: io::Error },
    #[error("{address} is not ready ({status}): {text}")]
    NotReady { address: SocketAddr, status: u16, text: String },
}

/// Returns the server's text if it is ready.
pub fn run(flags: &HealthFlags) -> Result<String, HealthError> {
    let address = reachable(&flags.listen)?;
    let (status, text) = ask(address, Duration::from_secs(flags.timeout))
        .map_err(|source| HealthError::Silent { address, source })?;
    match status {
        200 => Ok(text),
        _ => Err(HealthError::NotReady { address, status, text }),
    }
}

/// An address to connect to. The address 0.0.0.0 means every address of the machine, so it becomes the loopback address.
pub fn reachable(listen: &str) -> Result<SocketAddr, HealthError> {
    let mut address = listen
        .to_socket_addrs()
        .map_err(|source| HealthError::Address { listen: listen.to_owned(), source })?
        .next()
        .ok_or_else(|| HealthError::NoAddress { listen: listen.to_owned() })?;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    Ok(address)
}

/// Whether a server is ready, and what it says. Another program may have the port, so nothing of it changes the terminal.
pub fn ask(address: SocketAddr, timeout: Duration) -> io::Result<(u16, String)> {
    let (status, text) = ask_path(address, "/health/ready", None, timeout)?;
    Ok((status, text.lines().map(visible).collect::<Vec<_>>().join("\n")))
}

/// Without control characters, which could change the terminal.
pub fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The time that a server's answer has in its head.
pub fn date(address: SocketAddr, timeout: Duration) -> Option<SystemTime> {
    let answer = exchange(address, "/health/ready", None, timeout).ok()?;
    let head = answer.split("\r\n\r\n").next()?;
    let named = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = named.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("date"))?;
    httpdate::parse_http_date(value.trim()).ok()
}

/// The status and the body of an answer over plain HTTP.
pub fn ask_path(
    address: SocketAddr,
    path: &str,
    token: Option<&str>,
    timeout: Duration,
) -> io::Result<(u16, String)> {
    let answer = exchange(address, path, token, timeout)?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other("the answer is not HTTP"))?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body.trim_end());
    Ok((status, body.to_owned()))
}

fn exchange(address: SocketAddr, path: &str, token: Option<&str>, timeout: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let bearer = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    // HTTP/1.0, so that the body comes without chunks. In one write: a server that answers and closes before it has read all of a
    // request resets the connection, and its answer is lost.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{bearer}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_program_answers_can_not_change_the_terminal() {
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = other.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(b"HTTP/1.0 503 Busy\r\n\r\n\x1b[2Jfrozen\nsince \x07now\n").unwrap();
        });
        let answer = ask(address, Duration::from_secs(60)).unwrap();
        assert_eq!(answer, (503, "?[2Jfrozen\nsince ?now".to_owned()));
        answering.join().unwrap();
    }
}
