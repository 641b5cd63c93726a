//! Changes of a request, before it is signed.

use front::ServiceKind;

use super::exchange::Request;
use super::requests;
use super::values::{self, METHODS, MORE_HEADERS, MORE_OPTIONS, VERSIONS};
use crate::support::random::Random;

/// Every name that some request uses.
pub struct Names {
    headers: Vec<String>,
    options: Vec<String>,
}

impl Names {
    pub fn of_all() -> Self {
        let (mut headers, mut options) = (Vec::new(), Vec::new());
        for (_, (_, target, of_request, _)) in requests::all() {
            headers.extend(of_request.iter().map(|(name, _)| (*name).to_owned()));
            let query = target.split_once('?').map_or("", |(_, query)| query);
            options.extend(
                query.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, _)| name.to_owned()),
            );
        }
        headers.extend(MORE_HEADERS.map(str::to_owned));
        options.extend(MORE_OPTIONS.map(str::to_owned));
        for names in [&mut headers, &mut options] {
            names.sort();
            names.dedup();
        }
        // How the body is framed is not changed at random: what follows would be read as another request.
        headers.retain(|name| name != "Transfer-Encoding");
        Self { headers, options }
    }
}

pub fn mutate(random: &mut Random, request: &mut Request, names: &Names) {
    // Mostly one change: the first that is refused hides the others.
    for _ in 0..*random.pick(&[1, 1, 1, 2, 2, 3, 4]) {
        match random.below(16) {
            0..=5 => header(random, request, names),
            6..=9 => option(random, request, names),
            10 => path(random, request),
            11 => method(random, request),
            12 => version(random, request),
            13 => frame(random, request),
            // Of a body, its length is as important as its content.
            14 if !request.body.is_empty() => resize(random, request),
            _ => body(random, request),
        }
    }
    request.by_token = random.chance(35);
}

/// For requests that have no body.
const SMALL_BODIES: [&[u8]; 7] =
    [b"x", b"<a/>", b"<?xml version=\"1.0\"?>", b"{}", b"[]", b"\xff\xfe<\0a\0>\0", b"\0"];

fn is_framing(name: &str) -> bool {
    name.eq_ignore_ascii_case("Transfer-Encoding")
}

fn header(random: &mut Random, request: &mut Request, names: &Names) {
    // The version has its own changes: most of those made here would end every request at the door.
    let is_left = |name: &str| is_framing(name) || name.eq_ignore_ascii_case("x-ms-version");
    let places: Vec<usize> =
        (0..request.headers.len()).filter(|place| !is_left(&request.headers[*place].0)).collect();
    let value = |random: &mut Random, request: &Request, name: &str| {
        // What some other header says is often nearer to the mark than a random text.
        if random.chance(15) && !request.headers.is_empty() {
            random.pick(&request.headers).1.clone()
        } else {
            values::of_header(random, name)
        }
    };
    if places.is_empty() || random.chance(25) {
        let name = random.pick(&names.headers).clone();
        let value = value(random, request, &name);
        request.headers.push((name, value));
        return;
    }
    let place = *random.pick(&places);
    match random.below(6) {
        0 => drop(request.headers.remove(place)),
        1 => {
            let (name, mut own) = request.headers[place].clone();
            if random.chance(50) {
                own = value(random, request, &name);
            }
            request.headers.insert(random.below(request.headers.len() + 1), (name, own));
        }
        2 => {
            let more = values::text(random);
            request.headers[place].1.push_str(&more);
        }
        _ => {
            let value = value(random, request, &request.headers[place].0);
            request.headers[place].1 = value;
        }
    }
}

fn option(random: &mut Random, request: &mut Request, names: &Names) {
    if request.query.is_empty() || random.chance(25) {
        let name = random.pick(&names.options).clone();
        request.query.push((name, values::option(random)));
        return;
    }
    let place = random.below(request.query.len());
    match random.below(6) {
        0 => drop(request.query.remove(place)),
        1 => {
            let (name, mut own) = request.query[place].clone();
            if random.chance(50) {
                own = values::option(random);
            }
            request.query.insert(random.below(request.query.len() + 1), (name, own));
        }
        2 => {
            let more = values::option(random);
            request.query[place].1.push_str(&more);
        }
        3 => {
            let mut bytes = request.query[place].1.clone().into_bytes();
            bytes.truncate(random.below(bytes.len() + 1));
            request.query[place].1 = String::from_utf8_lossy(&bytes).replace('\u{fffd}', "%ff");
        }
        _ => request.query[place].1 = values::option(random),
    }
}

fn path(random: &mut Random, request: &mut Request) {
    let mut segments: Vec<String> = request.path.split('/').map(str::to_owned).collect();
    // The first is empty, because a path begins with a slash.
    let place = random.below(segments.len()).max(1).min(segments.len() - 1);
    let segment = values::segment(random);
    match random.below(5) {
        0 => segments.push(segment),
        1 => segments.insert(place, segment),
        2 if segments.len() > 1 => drop(segments.remove(place)),
        3 => segments[place].push_str(&segment),
        _ => segments[place] = segment,
    }
    request.path = segments.join("/");
}

fn method(random: &mut Random, request: &mut Request) {
    request.method = (*random.pick(&METHODS)).to_owned();
}

fn version(random: &mut Random, request: &mut Request) {
    request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("x-ms-version"));
    if random.chance(90) {
        let version = (*random.pick(&VERSIONS)).to_owned();
        request.headers.push(("x-ms-version".to_owned(), version));
    }
}

/// In chunks or with a length, and with a body where there is none.
fn frame(random: &mut Random, request: &mut Request) {
    match random.below(4) {
        0 if request.is_chunked() => request.headers.retain(|(name, _)| !is_framing(name)),
        0 => request.headers.push(("Transfer-Encoding".to_owned(), "chunked".to_owned())),
        1 => request.without_length = true,
        2 => request.body.clear(),
        _ => resize(random, request),
    }
}

/// Lengths around that of a page, and one that takes memory.
fn resize(random: &mut Random, request: &mut Request) {
    let size = *random.pick(&[1, 511, 512, 513, 1024, 70_000]);
    request.body = vec![b'x'; size];
}

fn body(random: &mut Random, request: &mut Request) {
    let bytes = &mut request.body;
    if bytes.is_empty() {
        bytes.extend_from_slice(SMALL_BODIES[random.below(SMALL_BODIES.len())]);
        return;
    }
    let at = random.below(bytes.len());
    let end = (at + 1 + random.below(60)).min(bytes.len());
    match random.below(11) {
        0 => bytes[at] = random.next() as u8,
        1 => bytes[at] ^= 1 << random.below(8),
        2 => bytes.insert(at, *random.pick(b"'\"(){}[]<>&%\r\n\0:;,-\xff\\/")),
        3 => drop(bytes.drain(at..end)),
        4 => bytes.truncate(at),
        5 => {
            let piece = bytes[at..end].repeat(1 + random.below(40));
            bytes.splice(at..at, piece);
        }
        6 => {
            let count = values::long(random).min(8192);
            let piece = random.pick(&["<a>", "[", "{\"a\":", "--b\r\n", "(", "&#x41;"]).repeat(count);
            bytes.splice(at..at, piece.into_bytes());
        }
        7 => repeat_element(random, bytes, request.service),
        8 | 9 => replace_value(random, bytes),
        _ => {
            let value = values::text(random).into_bytes();
            bytes.splice(at..end, value);
        }
    }
}

/// An element of XML with all that is in it, or a member of a JSON object, is there twice.
fn repeat_element(random: &mut Random, bytes: &mut Vec<u8>, service: ServiceKind) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let pieces: Vec<(usize, &str)> = if service == ServiceKind::Table && text.starts_with('{') {
        text.match_indices(",\"")
            .filter_map(|(at, _)| Some((at, &text[at..at + 1 + text[at + 1..].find(',')?])))
            .collect()
    } else {
        let element = |(at, _): (usize, &str)| {
            let name = text[at + 1..].split(['>', ' ', '/']).next()?;
            let end = text[at..].find(&format!("</{name}>"))? + name.len() + 3;
            Some((at, &text[at..at + end]))
        };
        text.match_indices('<').filter_map(element).collect()
    };
    if pieces.is_empty() {
        return;
    }
    let (at, piece) = random.pick(&pieces);
    *bytes = format!("{}{}{}", &text[..*at], piece.repeat(1 + random.below(3)), &text[*at..]).into_bytes();
}

/// The text of an element, or a value in a JSON object, is another.
fn replace_value(random: &mut Random, bytes: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (start, end) in [('>', '<'), (':', ','), (':', '}'), ('\'', '\''), (' ', '\r')] {
        for (at, _) in text.match_indices(start) {
            if let Some(length) = text[at + 1..].find(end) {
                places.push((at + 1, at + 1 + length));
            }
        }
    }
    if places.is_empty() {
        return;
    }
    let (start, end) = *random.pick(&places);
    let value = values::text(random);
    *bytes = format!("{}{value}{}", &text[..start], &text[end..]).into_bytes();
}
