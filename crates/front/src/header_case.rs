//! How the names of headers are spelled. HTTP does not care, and hyper gives and takes them in lower case; but the names of a
//! blob's metadata keep the case in which they came.
//!
//! hyper can remember the spelling of a request's headers, in an extension that only hyper reads, and uses it for the headers
//! of a response that carries the same extension. So the spelling is read and made by hyper itself: over a connection that is
//! nothing but bytes in memory. Only requests and answers with such names pay for it.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::HeaderName;
use http::{Extensions, HeaderValue, Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::rt::ReadBufCursor;
use hyper::server::conn::http1;
use hyper::service::service_fn;

/// These names as the request spells them, in their order. In lower case if its spelling was not kept.
pub async fn of_request(extensions: &Extensions, names: &[HeaderName]) -> Vec<String> {
    let lower = || names.iter().map(|name| name.as_str().to_owned());
    let mut response = Response::new(Empty::<Bytes>::new());
    *response.extensions_mut() = extensions.clone();
    for name in names {
        response.headers_mut().append(name, HeaderValue::from_static("x"));
    }
    let (_, written) = exchange(b"GET / HTTP/1.1\r\n\r\n".to_vec(), response).await;
    let spelled: Vec<&str> = std::str::from_utf8(&written)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.strip_suffix(": x"))
        .collect();
    // A name that is there twice comes twice, side by side.
    let find = |(at, name): (usize, &HeaderName)| {
        let before = names[..at].iter().filter(|earlier| *earlier == name).count();
        let mut same = spelled.iter().filter(|spelled| spelled.eq_ignore_ascii_case(name.as_str()));
        same.nth(before).map(|spelled| (*spelled).to_owned())
    };
    let found: Option<Vec<String>> = names.iter().enumerate().map(find).collect();
    found.unwrap_or_else(|| lower().collect())
}

/// What a response must carry so that these headers are sent as they are spelled here. Nothing if all are in lower case.
pub async fn for_response<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Extensions {
    if !names.clone().any(|name| name.bytes().any(|byte| byte.is_ascii_uppercase())) {
        return Extensions::default();
    }
    let mut head = b"GET / HTTP/1.1\r\n".to_vec();
    for name in names.filter(|name| HeaderName::try_from(*name).is_ok()) {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": x\r\n");
    }
    head.extend_from_slice(b"\r\n");
    exchange(head, Response::new(Empty::new())).await.0
}

/// The extensions of a request, and the bytes of the response to it.
async fn exchange(request: Vec<u8>, response: Response<Empty<Bytes>>) -> (Extensions, Vec<u8>) {
    let seen = Arc::new(Mutex::new(Extensions::default()));
    let written = Arc::new(Mutex::new(Vec::new()));
    let answer = Mutex::new(Some(response));
    let service = {
        let seen = seen.clone();
        service_fn(move |request: Request<Incoming>| {
            let (head, _) = request.into_parts();
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = head.extensions;
            // There is one request.
            let response = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
            std::future::ready(Ok::<_, Infallible>(response.unwrap_or_default()))
        })
    };
    let memory = InMemory { unread: request.into(), written: written.clone() };
    let mut builder = http1::Builder::new();
    // The peer has sent all it will send, and still waits for the answer.
    builder.preserve_header_case(true).half_close(true).keep_alive(false);
    // A failure leaves both empty, and names in lower case.
    let _ = builder.serve_connection(memory, service).await;
    let take =
        |bytes: &Mutex<Vec<u8>>| std::mem::take(&mut *bytes.lock().unwrap_or_else(PoisonError::into_inner));
    let extensions = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    (extensions, take(&written))
}

/// A connection whose peer has sent all it will ever send, and takes everything.
struct InMemory {
    unread: Bytes,
    written: Arc<Mutex<Vec<u8>>>,
}

impl hyper::rt::Read for InMemory {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread.split_to(bytes));
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for InMemory {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Vec<HeaderName> {
        texts.iter().map(|text| HeaderName::try_from(*text).unwrap()).collect()
    }

    #[tokio::test]
    async fn names_come_back_as_they_were_spelled() {
        let spelled = ["x-ms-meta-Hello", "X-Ms-Meta-UP", "x-ms-meta-low", "x-ms-meta-A_b1"];
        let extensions = for_response(spelled.iter().copied()).await;
        assert_eq!(of_request(&extensions, &names(&spelled)).await, spelled);
        let reversed: Vec<&str> = spelled.iter().rev().copied().collect();
        assert_eq!(of_request(&extensions, &names(&reversed)).await, reversed);
        assert_eq!(of_request(&extensions, &names(&["x-ms-meta-Other"])).await, ["x-ms-meta-other"]);
    }

    #[tokio::test]
    async fn a_name_that_is_sent_twice_keeps_both_spellings() {
        let spelled = ["x-ms-meta-Twice", "x-ms-meta-One", "x-ms-meta-TWICE"];
        let extensions = for_response(spelled.iter().copied()).await;
        assert_eq!(of_request(&extensions, &names(&spelled)).await, spelled);
    }

    #[tokio::test]
    async fn without_a_spelling_names_are_in_lower_case() {
        assert_eq!(of_request(&Extensions::default(), &names(&["x-ms-meta-Up"])).await, ["x-ms-meta-up"]);
        assert!(for_response(["x-ms-meta-low"].into_iter()).await.is_empty());
    }
}
