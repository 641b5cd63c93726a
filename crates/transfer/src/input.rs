//! Reads the entities of a file in order, and knows where in the file each one ends.

use std::io::{self, BufRead, Read};
use std::str::Utf8Error;

use thiserror::Error;

use crate::columns::{CsvHeader, HeaderError, RowError};
use crate::csv::{self, CsvError};
use crate::entity::{EntityError, EntityKeys, JsonEntity};
use crate::format::FileFormat;

/// Far more than an entity of 1 MiB takes, however its text is escaped.
const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Some programs write it at the beginning of a UTF-8 file.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Why a file can't be read on.
#[derive(Debug, Error)]
pub enum InputError {
    #[error("it is empty; CSV begins with the names of its columns")]
    NoHeader,
    #[error("line 1: {0}")]
    FirstLine(#[source] RecordError),
    #[error("line 1: {0}")]
    Header(#[source] HeaderError),
    #[error("can't read it: {0}")]
    Unreadable(#[source] io::Error),
    #[error(
        "it ends at byte {end}, but {wanted} bytes of it are imported already; is it another file? Without --resume \
         the import starts again"
    )]
    Shorter { end: u64, wanted: u64 },
    #[error("line {line} is longer than any entity; is it a file of entities?")]
    LineTooLong { line: u64 },
}

/// Why a record is not an entity.
#[derive(Debug, Error)]
pub enum RecordError {
    #[error("it is not UTF-8 text: {0}")]
    Encoding(#[source] Utf8Error),
    #[error(transparent)]
    Csv(#[from] CsvError),
    #[error(transparent)]
    Row(#[from] RowError),
    #[error(transparent)]
    Entity(#[from] EntityError),
}

/// One entity of a file.
#[derive(Debug)]
pub struct Record {
    /// The number of its first line, counted from 1.
    pub line: u64,
    /// The offset of its end in the file.
    pub end: u64,
    /// Its bytes in the file.
    pub raw: Vec<u8>,
    /// Its keys and its body, or what is wrong with it.
    pub entity: Result<(EntityKeys, Vec<u8>), RecordError>,
}

/// One record of a file, before it is read.
#[derive(Debug)]
pub struct RawRecord {
    pub line: u64,
    pub end: u64,
    pub raw: Vec<u8>,
}

pub struct Input {
    reader: Box<dyn BufRead + Send>,
    /// Bytes and lines read so far.
    at: u64,
    lines: u64,
    /// In CSV: the first line and its meaning.
    header: Option<(Vec<u8>, CsvHeader)>,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Input(byte {}, line {})", self.at, self.lines)
    }
}

impl Input {
    /// Reads the first line of CSV at once.
    pub fn new(reader: impl BufRead + Send + 'static, format: FileFormat) -> Result<Self, InputError> {
        let mut input = Self { reader: Box::new(reader), at: 0, lines: 0, header: None };
        if format == FileFormat::Csv {
            let (_, raw) = input.lines(csv::is_whole)?.ok_or(InputError::NoHeader)?;
            let names =
                text(&raw).and_then(|text| Ok(csv::read_record(text)?)).map_err(InputError::FirstLine)?;
            let header = CsvHeader::read(&names).map_err(InputError::Header)?;
            input.header = Some((raw, header));
        }
        Ok(input)
    }

    /// The first line that a file of rejected records needs, too.
    pub fn first_line(&self) -> &[u8] {
        self.header.as_ref().map_or(&[], |(raw, _)| raw)
    }

    /// Skips the part that an earlier run has imported, and counts its lines.
    pub fn skip_to(&mut self, byte: u64) -> Result<(), InputError> {
        let mut chunk = vec![0; 64 * 1024];
        while self.at < byte {
            let wanted = usize::try_from(byte - self.at).map_or(chunk.len(), |left| left.min(chunk.len()));
            match self.reader.read(&mut chunk[..wanted]).map_err(InputError::Unreadable)? {
                0 => return Err(InputError::Shorter { end: self.at, wanted: byte }),
                count => {
                    self.at += count as u64;
                    self.lines += chunk[..count].iter().filter(|byte| **byte == b'\n').count() as u64;
                }
            }
        }
        Ok(())
    }

    /// The next entity; empty lines are skipped. The error is one of the file, not of an entity.
    pub fn next(&mut self) -> Result<Option<Record>, InputError> {
        let Some(RawRecord { line, end, raw }) = self.next_raw()? else { return Ok(None) };
        let entity = text(&raw).and_then(|text| self.entity(text));
        Ok(Some(Record { line, end, raw, entity }))
    }

    /// The bytes of the next record, whatever they mean.
    pub fn next_raw(&mut self) -> Result<Option<RawRecord>, InputError> {
        loop {
            let whole = if self.header.is_some() { csv::is_whole } else { |_: &[u8]| true };
            let Some((line, raw)) = self.lines(whole)? else { return Ok(None) };
            if !raw.trim_ascii().is_empty() {
                return Ok(Some(RawRecord { line, end: self.at, raw }));
            }
        }
    }

    fn entity(&self, text: &str) -> Result<(EntityKeys, Vec<u8>), RecordError> {
        let mut body = Vec::with_capacity(text.len() + 64);
        let keys = match &self.header {
            Some((_, header)) => header.write_body(&mut body, &csv::read_record(text)?)?,
            None => {
                let entity = JsonEntity::parse(text)?;
                entity.write_body(&mut body);
                entity.keys()?
            }
        };
        Ok((keys, body))
    }

    /// Reads lines until they are a whole record; also returns the number of the first. The last line of a file may lack
    /// its end.
    fn lines(&mut self, whole: impl Fn(&[u8]) -> bool) -> Result<Option<(u64, Vec<u8>)>, InputError> {
        let first = self.lines + 1;
        let mut raw = Vec::new();
        loop {
            let before = raw.len();
            // One byte more than the limit, to tell a line that is too long from one that just fits.
            let mut limited = (&mut self.reader).take((RECORD_BYTES_MAX + 1 - before) as u64);
            let count = limited.read_until(b'\n', &mut raw).map_err(InputError::Unreadable)?;
            self.at += count as u64;
            if raw.len() > RECORD_BYTES_MAX {
                return Err(InputError::LineTooLong { line: first });
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

/// The text of a record without its line end.
fn text(raw: &[u8]) -> Result<&str, RecordError> {
    let raw = raw.strip_suffix(b"\n").unwrap_or(raw);
    let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
    std::str::from_utf8(raw).map_err(RecordError::Encoding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use testing::{Reading, bytes_near, check_near, text_near};

    /// Each record as `line-end row` or `line-end error`.
    fn read(text: &'static [u8], format: FileFormat, from: u64) -> Result<Vec<String>, InputError> {
        let mut input = Input::new(text, format)?;
        input.skip_to(from)?;
        let mut found = Vec::new();
        while let Some(record) = input.next()? {
            let what = match record.entity {
                Ok((keys, _)) => keys.row,
                Err(why) => why.to_string().split([':', ';']).next().unwrap_or_default().to_owned(),
            };
            found.push(format!("{}-{} {what}", record.line, record.end));
        }
        Ok(found)
    }

    const JSONL: &[u8] = b"\xEF\xBB\xBF{\"PartitionKey\":\"\",\"RowKey\":\"a\"}\n\n{\"RowKey\":1\r\n\xFF\n{\"PartitionKey\":\"\",\"RowKey\":\"b\"}";

    #[test]
    fn each_line_is_an_entity_with_its_number_and_its_end() {
        let all = ["1-36 a", "3-50 it is not an entity in JSON", "4-52 it is not UTF-8 text", "5-84 b"];
        assert_eq!(read(JSONL, FileFormat::Jsonl, 0).unwrap(), all);
        // The rest is the same after the end of any record.
        assert_eq!(read(JSONL, FileFormat::Jsonl, 36).unwrap(), all[1..]);
        assert_eq!(read(JSONL, FileFormat::Jsonl, 52).unwrap(), all[3..]);
        assert!(read(JSONL, FileFormat::Jsonl, 85).unwrap_err().to_string().contains("it ends at byte 84"));
    }

    #[test]
    fn records_of_csv_may_span_lines() {
        let text = b"PartitionKey,RowKey,Text\r\np,a,\"one\r\ntwo\"\r\np,b\np,c,x";
        let all = ["2-42 a", "4-46 it has 2 fields, but the first line has 3", "5-51 c"];
        assert_eq!(read(text, FileFormat::Csv, 0).unwrap(), all);
        assert_eq!(read(text, FileFormat::Csv, 42).unwrap(), all[1..]);
        assert_eq!(
            read(b"", FileFormat::Csv, 0).unwrap_err().to_string(),
            "it is empty; CSV begins with the names of its columns"
        );
        assert!(
            read(b"a,b\n", FileFormat::Csv, 0)
                .unwrap_err()
                .to_string()
                .starts_with("line 1: no column is called PartitionKey")
        );
    }

    /// Line, end, and keys with body or what is wrong.
    type Records = Vec<(u64, u64, Result<(EntityKeys, Vec<u8>), String>)>;

    fn read_all(bytes: &[u8], format: FileFormat, from: u64) -> Result<Records, InputError> {
        let mut input = Input::new(io::Cursor::new(bytes.to_vec()), format)?;
        input.skip_to(from)?;
        let mut found = Vec::new();
        while let Some(record) = input.next()? {
            found.push((record.line, record.end, record.entity.map_err(|error| error.to_string())));
        }
        Ok(found)
    }

    fn check(bytes: &[u8], format: FileFormat) -> Result<Reading, TestCaseError> {
        let Ok(found) = read_all(bytes, format, 0) else { return Ok(Reading::Refused) };
        prop_assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1), "in order");
        prop_assert!(found.last().is_none_or(|(_, end, _)| *end <= bytes.len() as u64));
        for (at, (_, end, entity)) in found.iter().enumerate() {
            // A run that is resumed after any record continues with the next.
            let rest = read_all(bytes, format, *end).ok();
            prop_assert_eq!(rest.as_deref(), Some(&found[at + 1..]));
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
    fn damaged_lines_are_each_one_entity_or_one_error() {
        let line = ("[a-zé]{0,9}", "[a-z\\\\]{0,9}", "[a-z, ]{0,20}").prop_map(|(partition, row, text)| {
            let row = row.replace('\\', "\\\\");
            format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"Text\":\"{text}\"}}\n")
        });
        let file = proptest::collection::vec(line, 1..4).prop_map(|lines| lines.concat());
        let pieces = &["\n", "\r\n", "\"", "{", "}", ":", ",", "null", "\"RowKey\":\"x\",", "\u{feff}", "\\"];
        check_near(text_near(file, pieces), 8..=85, |text| check(text.as_bytes(), FileFormat::Jsonl));
    }

    #[test]
    fn damaged_records_of_csv_are_each_one_entity_or_one_error() {
        let record = ("[a-zé]{0,9}", "[a-z]{0,9}", "[a-z,\"\n ]{0,20}").prop_map(|(partition, row, text)| {
            let mut record = Vec::new();
            csv::write_record(&mut record, [partition.as_str(), &row, &text]);
            record
        });
        let file = proptest::collection::vec(record, 1..4)
            .prop_map(|records| [b"PartitionKey,RowKey,Text\r\n".to_vec(), records.concat()].concat());
        check_near(bytes_near(file), 8..=85, |bytes| check(&bytes, FileFormat::Csv));
    }

    #[test]
    fn reading_stops_at_the_limit_of_a_line() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        let error = Input::new(endless, FileFormat::Jsonl).unwrap().next().unwrap_err();
        assert!(matches!(error, InputError::LineTooLong { line: 1 }), "{error}");
    }
}
