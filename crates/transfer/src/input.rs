//! Reads a file of entities one after the other, and knows where in it each one ends.

use std::io::{BufRead, Read};

use crate::columns::Header;
use crate::csv;
use crate::entity::{Entity, Keys};
use crate::format::Format;

/// Far more than an entity of 1 MiB takes in any spelling.
const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Some programs begin a file of UTF-8 with it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One entity of a file.
#[derive(Debug)]
pub struct Record {
    /// Where it begins, from 1 on.
    pub line: u64,
    /// Bytes of the file up to its end.
    pub end: u64,
    /// As it stands in the file.
    pub raw: Vec<u8>,
    /// Its keys and its body, or what is wrong with it.
    pub entity: Result<(Keys, Vec<u8>), String>,
}

pub struct Input {
    reader: Box<dyn BufRead + Send>,
    /// Bytes and lines read so far.
    at: u64,
    lines: u64,
    /// Of CSV: its first line, and what that says.
    header: Option<(Vec<u8>, Header)>,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Input(byte {}, line {})", self.at, self.lines)
    }
}

impl Input {
    /// Of CSV the first line is read at once.
    pub fn new(reader: impl BufRead + Send + 'static, format: Format) -> Result<Self, String> {
        let mut input = Self { reader: Box::new(reader), at: 0, lines: 0, header: None };
        if format == Format::Csv {
            let (_, raw) =
                input.lines(csv::is_whole)?.ok_or("it is empty; CSV begins with the names of its columns")?;
            let names = text(&raw).and_then(csv::read_record).map_err(|why| format!("line 1: {why}"))?;
            let header = Header::read(&names).map_err(|why| format!("line 1: {why}"))?;
            input.header = Some((raw, header));
        }
        Ok(input)
    }

    /// What a file of rejected records begins with.
    pub fn first_line(&self) -> &[u8] {
        self.header.as_ref().map_or(&[], |(raw, _)| raw)
    }

    /// Passes over what an earlier run has done, counting lines.
    pub fn skip_to(&mut self, byte: u64) -> Result<(), String> {
        let mut chunk = vec![0; 64 * 1024];
        while self.at < byte {
            let wanted = usize::try_from(byte - self.at).map_or(chunk.len(), |left| left.min(chunk.len()));
            match self.reader.read(&mut chunk[..wanted]).map_err(unreadable)? {
                0 => return Err(format!("it ends at byte {}, before byte {byte}", self.at)),
                count => {
                    self.at += count as u64;
                    self.lines += chunk[..count].iter().filter(|byte| **byte == b'\n').count() as u64;
                }
            }
        }
        Ok(())
    }

    /// The next entity; empty lines are none. An error is of the file, not of one entity.
    pub fn next(&mut self) -> Result<Option<Record>, String> {
        loop {
            let whole = if self.header.is_some() { csv::is_whole } else { |_: &[u8]| true };
            let Some((line, raw)) = self.lines(whole)? else { return Ok(None) };
            if raw.trim_ascii().is_empty() {
                continue;
            }
            let entity = text(&raw).and_then(|text| self.entity(text));
            return Ok(Some(Record { line, end: self.at, raw, entity }));
        }
    }

    fn entity(&self, text: &str) -> Result<(Keys, Vec<u8>), String> {
        let mut body = Vec::with_capacity(text.len() + 64);
        let keys = match &self.header {
            Some((_, header)) => header.write_body(&mut body, &csv::read_record(text)?)?,
            None => {
                let entity = Entity::parse(text)?;
                entity.write_body(&mut body);
                entity.keys()?
            }
        };
        Ok((keys, body))
    }

    /// Lines until they are whole, and the number of the first. The last line of a file needs no end.
    fn lines(&mut self, whole: impl Fn(&[u8]) -> bool) -> Result<Option<(u64, Vec<u8>)>, String> {
        let first = self.lines + 1;
        let mut raw = Vec::new();
        loop {
            let before = raw.len();
            // One byte more than may be, so that too long a line is known from one that just fits.
            let mut limited = (&mut self.reader).take((RECORD_BYTES_MAX + 1 - before) as u64);
            let count = limited.read_until(b'\n', &mut raw).map_err(unreadable)?;
            self.at += count as u64;
            if raw.len() > RECORD_BYTES_MAX {
                return Err(format!("line {first} is longer than any entity; is it a file of entities?"));
            }
            if count > 0 {
                self.lines += 1;
            }
            if first == 1 && before == 0 && raw.starts_with(BYTE_ORDER_MARK) {
                raw.drain(..BYTE_ORDER_MARK.len());
            }
            if raw.is_empty() && count == 0 {
                return Ok(None);
            }
            if count == 0 || whole(&raw) {
                return Ok(Some((first, raw)));
            }
        }
    }
}

/// Without the line's end.
fn text(raw: &[u8]) -> Result<&str, String> {
    let raw = raw.strip_suffix(b"\n").unwrap_or(raw);
    let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
    std::str::from_utf8(raw).map_err(|error| format!("it is no UTF-8 text: {error}"))
}

fn unreadable(error: std::io::Error) -> String {
    format!("can't read it: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use testing::{Reading, bytes_near, check_near, text_near};

    /// Each record as `line-end row` or `line-end error`.
    fn read(text: &'static [u8], format: Format, from: u64) -> Result<Vec<String>, String> {
        let mut input = Input::new(text, format)?;
        input.skip_to(from)?;
        let mut found = Vec::new();
        while let Some(record) = input.next()? {
            let what = match record.entity {
                Ok((keys, _)) => keys.row,
                Err(why) => why.split([':', ';']).next().unwrap_or_default().to_owned(),
            };
            found.push(format!("{}-{} {what}", record.line, record.end));
        }
        Ok(found)
    }

    const JSONL: &[u8] = b"\xEF\xBB\xBF{\"PartitionKey\":\"\",\"RowKey\":\"a\"}\n\n{\"RowKey\":1\r\n\xFF\n{\"PartitionKey\":\"\",\"RowKey\":\"b\"}";

    #[test]
    fn lines_are_entities_and_know_their_place() {
        let all = ["1-36 a", "3-50 it is no entity in JSON", "4-52 it is no UTF-8 text", "5-84 b"];
        assert_eq!(read(JSONL, Format::Jsonl, 0).unwrap(), all);
        // From any record's end on the rest is the same.
        assert_eq!(read(JSONL, Format::Jsonl, 36).unwrap(), all[1..]);
        assert_eq!(read(JSONL, Format::Jsonl, 52).unwrap(), all[3..]);
        assert!(read(JSONL, Format::Jsonl, 85).unwrap_err().contains("it ends at byte 84"));
    }

    #[test]
    fn records_of_csv_may_span_lines() {
        let text = b"PartitionKey,RowKey,Text\r\np,a,\"one\r\ntwo\"\r\np,b\np,c,x";
        let all = ["2-42 a", "4-46 it has 2 fields where the first line has 3", "5-51 c"];
        assert_eq!(read(text, Format::Csv, 0).unwrap(), all);
        assert_eq!(read(text, Format::Csv, 42).unwrap(), all[1..]);
        assert_eq!(
            read(b"", Format::Csv, 0).unwrap_err(),
            "it is empty; CSV begins with the names of its columns"
        );
        assert!(
            read(b"a,b\n", Format::Csv, 0)
                .unwrap_err()
                .starts_with("line 1: no column is called PartitionKey")
        );
    }

    /// Line, end, and keys with body or what is wrong.
    type Found = Vec<(u64, u64, Result<(Keys, Vec<u8>), String>)>;

    fn read_all(bytes: &[u8], format: Format, from: u64) -> Result<Found, String> {
        let mut input = Input::new(std::io::Cursor::new(bytes.to_vec()), format)?;
        input.skip_to(from)?;
        let mut found = Vec::new();
        while let Some(record) = input.next()? {
            found.push((record.line, record.end, record.entity));
        }
        Ok(found)
    }

    fn check(bytes: &[u8], format: Format) -> Result<Reading, TestCaseError> {
        let Ok(found) = read_all(bytes, format, 0) else { return Ok(Reading::Refused) };
        prop_assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1), "in order");
        prop_assert!(found.last().is_none_or(|(_, end, _)| *end <= bytes.len() as u64));
        for (at, (_, end, entity)) in found.iter().enumerate() {
            // A run that is taken up after any record goes on with the next.
            let rest = read_all(bytes, format, *end);
            prop_assert_eq!(rest.as_ref().map(Vec::as_slice), Ok(&found[at + 1..]));
            let Ok((keys, body)) = entity else { continue };
            // A server that takes the body finds the entity that the file names.
            if let Ok(read) = wire::EntityBody::read(wire::format::BodyFormat::Json, body) {
                prop_assert_eq!(read.partition_key.as_deref(), Some(keys.partition.as_str()));
                prop_assert_eq!(read.row_key.as_deref(), Some(keys.row.as_str()));
            }
        }
        let is_good = found.iter().all(|(_, _, entity)| entity.is_ok());
        Ok(if is_good { Reading::Accepted } else { Reading::Refused })
    }

    #[test]
    fn lines_that_are_nearly_entities_are_each_one_entity_or_one_mistake() {
        let line = ("[a-zé]{0,9}", "[a-z\\\\]{0,9}", "[a-z, ]{0,20}").prop_map(|(partition, row, text)| {
            let row = row.replace('\\', "\\\\");
            format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"Text\":\"{text}\"}}\n")
        });
        let file = proptest::collection::vec(line, 1..4).prop_map(|lines| lines.concat());
        let pieces = &["\n", "\r\n", "\"", "{", "}", ":", ",", "null", "\"RowKey\":\"x\",", "\u{feff}", "\\"];
        check_near(text_near(file, pieces), 8..=85, |text| check(text.as_bytes(), Format::Jsonl));
    }

    #[test]
    fn records_that_are_nearly_csv_are_each_one_entity_or_one_mistake() {
        let record = ("[a-zé]{0,9}", "[a-z]{0,9}", "[a-z,\"\n ]{0,20}").prop_map(|(partition, row, text)| {
            let mut record = Vec::new();
            csv::write_record(&mut record, [partition.as_str(), &row, &text]);
            record
        });
        let file = proptest::collection::vec(record, 1..4)
            .prop_map(|records| [b"PartitionKey,RowKey,Text\r\n".to_vec(), records.concat()].concat());
        check_near(bytes_near(file), 8..=85, |bytes| check(&bytes, Format::Csv));
    }

    #[test]
    fn a_line_without_end_is_not_read_to_its_end() {
        let endless = std::io::BufReader::new(std::io::repeat(b'x'));
        let error = Input::new(endless, Format::Jsonl).unwrap().next().unwrap_err();
        assert!(error.contains("line 1 is longer than any entity"), "{error}");
    }
}
