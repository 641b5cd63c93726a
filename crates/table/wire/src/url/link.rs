//! Links in answers, encoded as the service encodes them.

use std::fmt::Write as _;

/// `Books(PartitionKey='sf',RowKey='o''clock')`
pub fn entity_link(table: &str, partition: &str, row: &str) -> String {
    entity_address("", table, partition, row)
}

/// The same with the service's address before it.
pub fn entity_address(base: &str, table: &str, partition: &str, row: &str) -> String {
    let mut out = String::with_capacity(base.len() + table.len() + partition.len() + row.len() + 28);
    out.push_str(base);
    out.push_str(table);
    out.push_str("(PartitionKey='");
    push_key(&mut out, partition);
    out.push_str("',RowKey='");
    push_key(&mut out, row);
    out.push_str("')");
    out
}

/// `Tables('Books')`. Only the names of the service's own tables need encoding.
pub fn table_link(table: &str) -> String {
    let mut out = String::with_capacity(table.len() + 12);
    out.push_str("Tables('");
    push_key(&mut out, table);
    out.push_str("')");
    out
}

/// Quotes are doubled. The marks of RFC 2396 are not encoded, as in .NET; everything else is percent-encoded UTF-8.
fn push_key(out: &mut String, key: &str) {
    let mut rest = key;
    while let Some(at) = rest.bytes().position(|byte| !PLAIN[usize::from(byte)]) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let end = special.chars().next().map_or(0, char::len_utf8);
        match &special[..end] {
            "'" => out.push_str("''"),
            special => {
                for byte in special.bytes() {
                    // Writing to a String can't fail.
                    let _ = write!(out, "%{byte:02X}");
                }
            }
        }
        rest = &special[end..];
    }
    out.push_str(rest);
}

/// The bytes that stay as they are.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        plain[byte as usize] = byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'!' | b'*' | b'(' | b')');
        byte += 1;
    }
    plain
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_encoded_as_recorded() {
        assert_eq!(entity_link("t", "o'clock", "a bü"), "t(PartitionKey='o''clock',RowKey='a%20b%C3%BC')");
        assert_eq!(
            entity_link("t", "x\"@:", "%+,$=&"),
            "t(PartitionKey='x%22%40%3A',RowKey='%25%2B%2C%24%3D%26')"
        );
        assert_eq!(entity_link("t", "", "-_.~!*()"), "t(PartitionKey='',RowKey='-_.~!*()')");
        assert_eq!(table_link("Books"), "Tables('Books')");
        assert_eq!(
            table_link("$MetricsMinutePrimaryTransactionsBlob"),
            "Tables('%24MetricsMinutePrimaryTransactionsBlob')"
        );
    }
}
