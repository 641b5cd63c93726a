//! Markers: where the next page of a list begins, in the service's notation (spec: blob-operations 4.1, 5.1, 7.3).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blob_model::{ContainerName, SnapshotTime};

/// Where the next page of List Containers begins.
pub fn of_container(account: &str, next: &ContainerName) -> String {
    format!("/{account}/{next}")
}

/// The name in such a marker; `None` if it is none of this account's.
pub fn read_container<'m>(account: &str, marker: &'m str) -> Option<&'m str> {
    let name = marker.strip_prefix('/')?.strip_prefix(account)?.strip_prefix('/')?;
    // The container may be gone by now, and its name is all that counts.
    ContainerName::parse(name).is_ok().then_some(name)
}

/// The next item of List Blobs: a blob, one of its snapshots, or a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobMarker {
    pub name: String,
    /// [`SnapshotTime::BASE`] for the blob itself.
    pub snapshot: SnapshotTime,
}

impl BlobMarker {
    pub fn write(&self) -> String {
        let time = self.snapshot.to_string();
        pack(&[&self.name, &time])
    }

    /// `None` if it is no marker of List Blobs.
    pub fn read(marker: &str) -> Option<Self> {
        let fields = unpack(marker)?;
        let mut fields = fields.into_iter();
        let name = fields.next()?;
        let snapshot = SnapshotTime::parse(&fields.next()?)?;
        (fields.next().is_none() && !name.is_empty()).then_some(Self { name, snapshot })
    }
}

/// Where the next page of page ranges begins, in bytes.
pub fn of_page(offset: u64) -> String {
    pack(&[&offset.to_string()])
}

pub fn read_page(marker: &str) -> Option<u64> {
    match unpack(marker)?.as_slice() {
        [offset] if offset.bytes().all(|byte| byte.is_ascii_digit()) => offset.parse().ok(),
        _ => None,
    }
}

/// The next blob that Find Blobs by Tags would look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMarker {
    pub container: String,
    pub name: String,
}

impl FoundMarker {
    pub fn write(&self) -> String {
        pack(&[&self.container, &self.name])
    }

    pub fn read(marker: &str) -> Option<Self> {
        match unpack(marker)?.as_slice() {
            [container, name] => Some(Self { container: container.clone(), name: name.clone() }),
            _ => None,
        }
    }
}

/// `2!length of the Base64!Base64 of each field as NNNNNN!field!`, with `-` for `=`.
fn pack(fields: &[&str]) -> String {
    let mut text = String::new();
    for field in fields {
        text.push_str(&format!("{:06}!{field}!", field.len()));
    }
    let packed = STANDARD.encode(text).replace('=', "-");
    format!("2!{}!{packed}", packed.len())
}

fn unpack(marker: &str) -> Option<Vec<String>> {
    let (length, packed) = marker.strip_prefix("2!")?.split_once('!')?;
    if length.parse() != Ok(packed.len()) {
        return None;
    }
    let bytes = STANDARD.decode(packed.replace('-', "=")).ok()?;
    let mut rest = std::str::from_utf8(&bytes).ok()?;
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let (length, field) = rest.split_once('!')?;
        let is_length = length.len() == 6 && length.bytes().all(|byte| byte.is_ascii_digit());
        let length: usize = length.parse().ok().filter(|_| is_length)?;
        fields.push(field.get(..length)?.to_owned());
        rest = field.get(length..)?.strip_prefix('!')?;
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn markers_are_the_recorded_ones() {
        let recorded = "2!68!MDAwMDA1IWJsb2IzITAwMDAyOCE5OTk5LTEyLTMxVDIzOjU5OjU5Ljk5OTk5OTlaIQ--";
        let marker = BlobMarker { name: "blob3".to_owned(), snapshot: SnapshotTime::BASE };
        assert_eq!(marker.write(), recorded);
        assert_eq!(BlobMarker::read(recorded), Some(marker));
        assert_eq!(of_page(1024), "2!16!MDAwMDA0ITEwMjQh");
        assert_eq!(read_page("2!16!MDAwMDA0ITEwMjQh"), Some(1024));
    }

    #[test]
    fn other_texts_are_told_apart() {
        let name = ContainerName::parse("qq5").unwrap();
        assert_eq!(read_container("acc", &of_container("acc", &name)), Some("qq5"));
        for marker in ["garbage", "/acc", "/acc/", "/other/qq5", "/acc/Q", "/acc/qq5/x", "qq5"] {
            assert_eq!(read_container("acc", marker), None, "{marker}");
        }
        let with = |text: &str| {
            let packed = STANDARD.encode(text).replace('=', "-");
            format!("2!{}!{packed}", packed.len())
        };
        let time = "000028!9999-12-31T23:59:59.9999999Z!";
        assert!(BlobMarker::read(&with(&format!("000001!a!{time}"))).is_some());
        for text in [
            "",
            "2!4!AAAA",
            "2!5!AAAA",
            "3!0!",
            "2!0!",
            "2!99999999999999999999!AA==",
            &with("000001!a!"),
            &with(&format!("000001!a!{time}{time}")),
            &with(&format!("000000!!{time}")),
            &with(&format!("000001!é!{time}")),
            &with(&format!("+00001!a!{time}")),
            &with(&format!("999999!a!{time}")),
            &with("000001!a!000001!b!"),
        ] {
            assert_eq!(BlobMarker::read(text), None, "{text}");
            assert_eq!(read_page(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn markers_read_back(name in "[a!/é\u{ffff}\n]{1,20}", container in "[a-z]{3,9}", offset in any::<u64>()) {
            let marker = BlobMarker { name: name.clone(), snapshot: SnapshotTime::BASE };
            prop_assert_eq!(BlobMarker::read(&marker.write()), Some(marker));
            let marker = FoundMarker { container, name };
            prop_assert_eq!(FoundMarker::read(&marker.write()), Some(marker));
            prop_assert_eq!(read_page(&of_page(offset)), Some(offset));
        }
    }
}
