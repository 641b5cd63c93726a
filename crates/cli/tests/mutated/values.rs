//! What hostile clients put into headers, options, paths and documents.

use super::exchange::RAW_BYTES;
use crate::support::random::Random;

/// For any place that takes a text. None of them breaks the form of an HTTP request.
#[rustfmt::skip]
const TEXTS: [&str; 53] = [
    "", " ", "\t", ",", ";", "=", "&", "*", "'", "\"", "\"\"", "''", "%", "%00", "%2", "%zz", "\\", "/", "//",
    "..", "../..", "<", "]]>", "&amp;", "&#0;", "&#x1f600;", "<!DOCTYPE a>", "null", "undefined", "NaN", "INF",
    "-INF", "true", "TRUE", "false", "yes", "é", "\u{feff}", "\u{1f600}", "\u{202e}", "\u{85}é", "a b", "a=b",
    "a=b&a=c", "=b&", "a;b", "multipart/mixed", "multipart/mixed; boundary=", "text/xml; charset=utf-16",
    "application/json;odata=fullmetadata;streaming=true", "application/atom+xml;type=entry, */*;q=0", "gzip",
    "x-ms-meta-a",
];

/// Numbers, or nearly: around the limits of lists, pages, leases and messages, and of the types that hold them.
#[rustfmt::skip]
const NUMBERS: [&str; 47] = [
    "0", "-0", "+0", "1", "-1", "00", "007", "0x10", "1e3", "1.5", "-1.5", "1e999", ".5", "٣", "2", "3", "15",
    "60", "61", "511", "512", "513", "1024", "4096", "5000", "5001", "50000", "65536", "604800", "604801",
    "2147483647", "2147483648", "-2147483648", "4294967296", "4294967808", "1099511627776", "8796093022208",
    "8796093022720", "9007199254740993", "9223372036854775295", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "18446744073709551104", "18446744073709551615", "18446744073709551616",
    "99999999999999999999999999",
];

#[rustfmt::skip]
const DATES: [&str; 20] = [
    "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 1600 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT",
    "Fri, 31 Dec 9999 23:59:59 GMT", "Sat, 01 Jan 10000 00:00:00 GMT", "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Mon, 30 Feb 2020 00:00:00 GMT",
    "Thu, 14 Jul 2022 24:60:60 GMT", "2022-07-13T23:46:14.4048519Z", "2022-07-13T23:46:14Z",
    "0001-01-01T00:00:00.0000000Z", "9999-12-31T23:59:59.9999999Z", "1600-12-31T23:59:59Z",
    "10000-01-01T00:00:00Z", "2022-02-30T00:00:00Z", "2022-07-13T23:46:14.4048519+24:00", "2022-07-13",
    "-0001-01-01T00:00:00Z",
];

#[rustfmt::skip]
const RANGES: [&str; 24] = [
    "bytes=", "bytes=-", "bytes=0-", "bytes=-0", "bytes=-1", "bytes=0-0", "bytes=1-1", "bytes=9-9", "bytes=10-",
    "bytes=5-2", "bytes=0-511", "bytes=512-1023", "bytes=1-512", "bytes=0-512", "bytes=0-1535,512-2047",
    "bytes=0-18446744073709551615", "bytes=18446744073709551104-18446744073709551615",
    "bytes=18446744073709551615-18446744073709551615", "bytes=9223372036854775296-9223372036854775807",
    "bytes=0-4194304", "bytes=0-8796093022207", "items=0-1", "BYTES=0-511", "bytes=8796093021696-8796093022207",
];

/// GUIDs, ETags, checksums, ids of blocks, conditions on tags, versions.
#[rustfmt::skip]
const MARKS: [&str; 46] = [
    "00000000-0000-0000-0000-000000000000", "{00000000-1111-2222-3333-444444444444}",
    "00000000111122223333444444444444", "00000000-1111-2222-3333-44444444444",
    "00000000-1111-2222-3333-555555555555", "\"0x8D000000000000\"", "0x8D000000000000", "W/\"0x1\"",
    "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"", "W/\"datetime''\"", "\"", "\"a\", \"b\"", "*, *", "AA==",
    "AAA=", "AAAA", "AAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "A", "A===", "AA-_", "YWE=", "n='1'", "n>'", "\"n\"='1' and \"n\"='2' or n<>'3'", "@container='box'",
    "@version>'1'", "a=b AND", "BlockBlob", "PageBlob", "AppendBlob", "Hot", "Archive", "P80", "Premium",
    "acquire", "break", "include", "only", "update", "clear", "increment", "http://[::1",
    "http://127.0.0.1:1/a/b?c", "file:///etc/passwd",
];

#[rustfmt::skip]
pub const VERSIONS: [&str; 19] = [
    "2009-09-19", "2011-08-18", "2012-02-12", "2013-08-15", "2014-02-14", "2015-02-21", "2015-12-11",
    "2016-05-31", "2017-07-29", "2018-11-09", "2019-02-02", "2019-12-12", "2020-10-02", "2021-12-02",
    "2023-11-03", "2099-01-01", "0000-00-00", "2021-13-45", "latest",
];

pub const METHODS: [&str; 9] = ["GET", "HEAD", "PUT", "POST", "DELETE", "MERGE", "PATCH", "OPTIONS", "LOCK"];

/// Headers that none of the requests has, and that something reads, or should not.
#[rustfmt::skip]
pub const MORE_HEADERS: [&str; 33] = [
    "Date", "Accept-Charset", "Content-Encoding", "Content-Language", "Cache-Control", "Content-MD5",
    "x-ms-content-crc64", "x-ms-previous-snapshot-url", "x-ms-copy-source-authorization",
    "x-ms-source-content-crc64", "x-ms-source-if-none-match", "x-ms-source-lease-id", "x-ms-encryption-key",
    "x-ms-encryption-scope", "x-ms-immutability-policy-until-date", "x-ms-legal-hold", "x-ms-structured-body",
    "x-ms-expiry-option", "x-ms-range", "Range", "If-Range", "traceparent", "Referer", "User-Agent", "Cookie",
    "X-Forwarded-For", "x-ms-meta-", "x-ms-meta-1a", "x-ms-meta-xml", "x-ms-meta-a-b",
    "x-ms-blob-content-length", "x-ms-blob-sequence-number", "x-ms-return-client-request-id",
];

/// Options that none of the requests has.
#[rustfmt::skip]
pub const MORE_OPTIONS: [&str; 16] = [
    "versionid", "prevsnapshot", "snapshot", "api-version", "sv", "se", "sr", "$format", "$skip", "$orderby",
    "$inlinecount", "$filter", "NextPartitionKey", "NextRowKey", "upn", "include",
];

/// Parts of paths, as they stand in a URL.
#[rustfmt::skip]
const SEGMENTS: [&str; 40] = [
    "", ".", "..", "...", "%2e%2e", "%2F", "a%2Fb", "%5C", "\\", "a%00b", "%00", "%0d%0a", "%ff", "%c3",
    "%ed%a0%80", "%f4%90%80%80", "%EF%BF%BF", "%EF%BB%BF", "%", "%2", "%zz", "+", "%20", "a%20", "$root",
    "$logs", "$web", "$blobchangefeed", "$batch", "Tables", "()", "Open(", "Open)",
    "Open(PartitionKey='p',RowKey='''')", "Open(PartitionKey=p,RowKey=r)", "Open(RowKey='r')", "messages",
    "-secondary", "a|b", "%f0%9f%98%80",
];

/// A text, number, date, range or mark, possibly long or with bytes that are no UTF-8. It is as good as any value of a header.
pub fn text(random: &mut Random) -> String {
    match random.below(12) {
        0 | 1 => (*random.pick(&TEXTS)).to_owned(),
        2 | 3 => (*random.pick(&NUMBERS)).to_owned(),
        4 | 5 => (*random.pick(&RANGES)).to_owned(),
        6 => (*random.pick(&DATES)).to_owned(),
        7 | 8 => (*random.pick(&MARKS)).to_owned(),
        9 => random
            .pick(&["a", "é", "1", "/", "a=b&", "%20", "(", "not ", "AND ", "<a>"])
            .repeat(1 + long(random)),
        10 => random.next().to_string(),
        _ => {
            let byte = 0x80 + random.below(0x80) as u32;
            format!("a{}b", char::from_u32(RAW_BYTES + byte).unwrap())
        }
    }
}

/// A value that is often of the kind that this header takes, so that it is not refused for its form alone.
pub fn of_header(random: &mut Random, name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if random.chance(40) {
        return text(random);
    }
    if name.ends_with("range") {
        (*random.pick(&RANGES)).to_owned()
    } else if is(&["since", "date"]) {
        (*random.pick(&DATES)).to_owned()
    } else if is(&["number", "length", "appendpos", "maxsize", "duration", "period"]) {
        (*random.pick(&NUMBERS)).to_owned()
    } else if is(&[
        "match",
        "lease-id",
        "md5",
        "crc64",
        "tags",
        "tier",
        "type",
        "action",
        "write",
        "snapshots",
    ]) {
        (*random.pick(&MARKS)).to_owned()
    } else {
        text(random)
    }
}

/// The length of a text that is too long for something.
pub fn long(random: &mut Random) -> usize {
    *random.pick(&[1, 2, 62, 63, 64, 255, 256, 257, 1023, 1024, 1025, 2048, 8192, 16_000])
}

/// A text as it stands in a URL.
pub fn option(random: &mut Random) -> String {
    if random.chance(20) {
        return (*random.pick(&SEGMENTS)).to_owned();
    }
    let mut encoded = String::new();
    for character in text(random).chars() {
        match u8::try_from(u32::from(character).wrapping_sub(RAW_BYTES)) {
            Ok(byte) => encoded.push_str(&format!("%{byte:02X}")),
            Err(_) if character.is_ascii_alphanumeric() || "-._~*/,:'".contains(character) => {
                encoded.push(character);
            }
            Err(_) => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    encoded.push_str(&format!("%{byte:02X}"));
                }
            }
        }
    }
    // Three bytes for one make it longer than a head may be.
    encoded.truncate(20_000);
    encoded
}

pub fn segment(random: &mut Random) -> String {
    if random.chance(20) {
        return random.pick(&["a", "%C3%A9", "a/", ".", "%2F", "-"]).repeat(long(random).min(2048));
    }
    (*random.pick(&SEGMENTS)).to_owned()
}
