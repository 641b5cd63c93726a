//! Spans as OTLP's protobuf messages (opentelemetry/proto/collector/trace/v1). Only what we send is here, by the numbers of
//! the fields, which never change.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::RequestSpan;

/// The server that the spans are of.
#[derive(Clone, Debug)]
pub struct Resource {
    pub service_name: String,
    pub service_version: &'static str,
    pub instance: String,
}

const SERVER: u64 = 2;
const ERROR: u64 = 2;

/// An `ExportTraceServiceRequest`.
pub fn encode(resource: &Resource, spans: &[RequestSpan]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |of_resource| {
        of_resource.message(1, |to| {
            to.text_attribute(1, "service.name", &resource.service_name);
            to.text_attribute(1, "service.version", resource.service_version);
            to.text_attribute(1, "service.instance.id", &resource.instance);
        });
        of_resource.message(2, |of_scope| {
            of_scope.message(1, |scope| {
                scope.text(1, "partita");
                scope.text(2, resource.service_version);
            });
            for span in spans {
                of_scope.message(2, |to| write(to, span));
            }
        });
    });
    request.0
}

fn write(to: &mut Message, span: &RequestSpan) {
    to.bytes(1, &span.trace);
    to.bytes(2, &span.id);
    if let Some(parent) = &span.parent {
        to.bytes(4, parent);
    }
    to.text(5, span.operation);
    to.number(6, SERVER);
    to.fixed(7, nanoseconds(span.started));
    to.fixed(8, nanoseconds(span.started + span.elapsed));
    to.text_attribute(9, "partita.service", span.service.name());
    to.text_attribute(9, "partita.operation", span.operation);
    to.text_attribute(9, "partita.request_id", &span.request_id);
    if let Some(account) = &span.account {
        to.text_attribute(9, "partita.account", account);
    }
    to.text_attribute(9, "http.request.method", &span.method);
    to.number_attribute(9, "http.response.status_code", span.status.into());
    if let Some(code) = span.code {
        to.text_attribute(9, "error.type", code);
    }
    // A refusal is the client's mistake; only the server's own failures are errors of its span.
    if span.status >= 500 {
        to.message(15, |status| status.number(3, ERROR));
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos() as u64
}

/// A protobuf message: fields with their numbers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    fn fixed(&mut self, field: u64, value: u64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn text_attribute(&mut self, field: u64, name: &str, value: &str) {
        self.message(field, |to| {
            to.text(1, name);
            to.message(2, |of| of.text(1, value));
        });
    }

    fn number_attribute(&mut self, field: u64, name: &str, value: u64) {
        self.message(field, |to| {
            to.text(1, name);
            to.message(2, |of| of.number(3, value));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_protobuf_says() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.fixed(3, 1);
        message.message(4, |inner| inner.number(1, 1));
        // The first two are the examples of protobuf's own documentation.
        let expected = b"\x08\x96\x01\x12\x07testing\x19\x01\0\0\0\0\0\0\0\x22\x02\x08\x01";
        assert_eq!(message.0, expected);
    }
}
