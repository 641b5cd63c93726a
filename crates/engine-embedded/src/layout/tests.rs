//! Stored bytes can be read back, also those of older formats. Damaged bytes are refused.

use super::*;
use crate::fields;
use model::Cut;

fn books(id: TableId) -> TableRecord {
    let name = StoredName::parse(ServiceKind::Table, "Books").unwrap();
    TableRecord::new(id, ServiceKind::Table, name)
}

#[test]
fn only_our_own_format_files_are_recognized() {
    assert_eq!(read_format(&format_text(FORMAT_VERSION)), Some(FORMAT_VERSION));
    assert_eq!(read_format("partita-store 12\n"), Some(12));
    for foreign in ["", "partita-store", "partita-stores 1", "partita-store one", "rocksdb 1"] {
        assert_eq!(read_format(foreign), None, "{foreign}");
    }
}

#[test]
fn a_damaged_committed_file_reads_as_none() {
    for counter in [0, 1, 77, u64::MAX] {
        let bytes = committed_bytes(counter);
        assert_eq!(read_committed(&bytes), Some(counter));
        for at in 0..bytes.len() {
            let mut flipped = bytes;
            flipped[at] ^= 4;
            assert_eq!(read_committed(&flipped), None);
            assert_eq!(read_committed(&bytes[..at]), None);
        }
    }
}

#[test]
fn records_can_be_read_back_and_an_incomplete_record_is_damaged() {
    let commit = CommitRecord { counter: 9, last_stamp: DateTime::MIN_STORED };
    assert_eq!(CommitRecord::decode(&commit.encode()), Some(commit));
    assert_eq!(CommitRecord::decode(&commit.encode()[..16]), None);
    for metadata in [None, Some(Bytes::new()), Some(Bytes::from_static(b"policies"))] {
        let table = TableRecord { metadata, ..books(TableId::random()) };
        let bytes = table.encode();
        assert_eq!(TableRecord::decode(&bytes), Ok(table));
        for length in 0..25 {
            assert_eq!(TableRecord::decode(&bytes[..length]), Err(Unusable::Damaged), "{length} bytes");
        }
    }
    let service = ServiceRecord { document: Bytes::from_static(b"cors"), unknown: Fields::default() };
    assert_eq!(ServiceRecord::decode(&service.encode()), Ok(service));
    assert_eq!(ServiceRecord::decode(&[fields::FORMAT]), Err(Unusable::Damaged));
    let dropping = DroppingRecord::default();
    assert_eq!(DroppingRecord::decode(&dropping.encode()), Ok(dropping));
    assert_eq!(DroppingRecord::decode(b""), Err(Unusable::Damaged));
}

#[test]
fn records_of_format_1_are_read_and_rewritten_with_the_same_meaning() {
    let (account, id) = (AccountName::parse("shop").unwrap(), TableId([7; 16]));
    let of_table = |rest: &[u8]| [&[1][..], &[7; 16], b"\x05Books", rest].concat();
    let check = |old: (&[u8], &[u8]), new: (&[u8], &[u8])| {
        assert!(is_outdated(old.0, old.1) && !is_outdated(new.0, new.1), "{old:02x?}");
        for (key, value) in [old, new] {
            assert_eq!(in_newest_layout(key, value), Ok((new.0.to_vec(), new.1.to_vec())));
        }
    };
    for (rest, metadata) in [(&b"\0"[..], None), (b"\x01", Some("")), (b"\x01acl", Some("acl"))] {
        let metadata = metadata.map(Bytes::from);
        let table = TableRecord { metadata, ..books(id) };
        assert_eq!(TableRecord::decode(&of_table(rest)), Ok(table.clone()));
        let key = table_key(&account, "books");
        check((&key, &of_table(rest)), (&key, &table.encode()));
    }
    assert_eq!(TableRecord::decode(&of_table(b"")), Err(Unusable::Damaged));
    check((b"Sshop", b"\x01cors"), (b"S\x01shop", b"\x02\x01\x04cors"));
    check((&dropping_key(id), b"\x01"), (&dropping_key(id), b"\x02"));
    let commit = CommitRecord::NONE.encode();
    assert!(!is_outdated(COMMIT_KEY, &commit));
    assert_eq!(in_newest_layout(COMMIT_KEY, &commit), Ok((COMMIT_KEY.to_vec(), commit)));
}

#[test]
fn fields_of_later_versions_survive_a_rewrite_or_refuse_the_record() {
    let later = Fields::default().with(0x44, Bytes::from_static(b"later"));
    let table = TableRecord { unknown: later.clone(), ..books(TableId::random()) };
    assert_eq!(TableRecord::decode(&table.encode()), Ok(table.clone()));
    let service = ServiceRecord { document: Bytes::new(), unknown: later.clone() };
    assert_eq!(ServiceRecord::decode(&service.encode()), Ok(service));
    let unknown = later.with(MUST_UNDERSTAND, Bytes::new());
    let refused = [
        TableRecord::decode(&TableRecord { unknown: unknown.clone(), ..table }.encode()).err(),
        ServiceRecord::decode(&ServiceRecord { document: Bytes::new(), unknown: unknown.clone() }.encode())
            .err(),
        DroppingRecord::decode(&DroppingRecord { unknown }.encode()).err(),
    ];
    for refused in refused {
        assert_eq!(refused, Some(Unusable::Newer("the field 0x80".to_owned())));
    }
}

#[test]
fn a_record_without_a_service_is_of_the_table_service() {
    let id = TableId([7; 16]);
    let of_tables = [&b"\x02\x01\x10"[..], &[7; 16], b"\x02\x05Books"].concat();
    assert_eq!(books(id).encode(), of_tables, "as every version since format 2 has written it");
    assert_eq!(TableRecord::decode(&of_tables), Ok(books(id)));

    let name = StoredName::parse(ServiceKind::Queue, "my-queue").unwrap();
    let queue = TableRecord::new(id, ServiceKind::Queue, name);
    let of_queues = [&b"\x02\x01\x10"[..], &[7; 16], b"\x02\x08my-queue", b"\x84\x01\x02"].concat();
    assert_eq!(queue.encode(), of_queues);
    assert_eq!(TableRecord::decode(&of_queues), Ok(queue));

    // A version that knows no service but Table leaves the field among those that it does not know.
    let left = Fields::read(&of_queues).unwrap().into_unknown();
    assert_eq!(left, Err(Unusable::Newer("the field 0x84".to_owned())));
    let newer = [&of_queues[..of_queues.len() - 1], b"\x09"].concat();
    assert!(matches!(TableRecord::decode(&newer), Err(Unusable::Newer(_))));
    // A queue's name is no table's.
    let nameless = [&b"\x02\x01\x10"[..], &[7; 16], b"\x02\x08my-queue"].concat();
    assert_eq!(TableRecord::decode(&nameless), Err(Unusable::Damaged));
}

#[test]
fn meta_keys_can_be_read_back() {
    let (account, id) = (AccountName::parse("devstoreaccount1").unwrap(), TableId::random());
    assert_eq!(MetaKey::read(COMMIT_KEY), Ok(MetaKey::Commit));
    assert_eq!(MetaKey::read(&dropping_key(id)), Ok(MetaKey::Dropping(id)));
    assert_eq!(MetaKey::read(&table_key(&account, "books")), Ok(MetaKey::Table));
    assert_eq!(read_table_key(&table_key(&account, "books")), Some((account.clone(), "books")));
    for service in ServiceKind::ALL {
        let key = service_key(service, &account);
        assert_eq!(MetaKey::read(&key), Ok(MetaKey::Service(service, account.clone())));
    }
    assert_eq!(MetaKey::read(b"Sshop"), MetaKey::read(b"S\x01shop"));
    for damaged in [&b""[..], b"CC", b"Dshort", b"S", b"S\x01", b"S\x01no account"] {
        assert_eq!(MetaKey::read(damaged), Err(Unusable::Damaged), "{damaged:?}");
    }
    for newer in [&b"X"[..], b"Qshop\0tasks", b"S\x09shop"] {
        assert!(matches!(MetaKey::read(newer), Err(Unusable::Newer(_))), "{newer:?}");
    }
}

#[test]
fn rows_of_a_table_lie_within_its_bounds_and_no_others() {
    let (id, other) = (TableId([7; 16]), TableId([8; 16]));
    let (start, end) = id.all();
    for (partition, row) in [("", ""), ("\u{10ffff}", "\u{ffff}"), ("p", "r")] {
        let key = model::EntityKey::parse(partition, row).unwrap();
        let (inside, outside) = (id.row(&key.partition, &key.row), other.row(&key.partition, &key.row));
        assert!(start <= inside && inside < end && outside >= end);
        assert_eq!(encoding::key::decode_key(TableId::strip(&inside)).unwrap(), key);
    }
    assert_eq!(id.range(&KeyRange::all()).unwrap().1, end);
    assert_eq!(id.range(&KeyRange { start: Cut::before("b", ""), end: Cut::before("a", "") }), None);
}
