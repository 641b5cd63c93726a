//! What clients of blobs send besides content: block lists, tags, delegation keys, batches, expressions over tags and markers.
//! What is accepted is written and reads back as the same; a refusal is a document that a client can read.
#![no_main]

use blob_model::{DateTime, Refusal, Tags, limits};
use blob_wire::marker::{self, BlobMarker, FoundMarker};
use blob_wire::tag_expression::{self, TagSearch};
use blob_wire::{Writer, batch, block_list, delegation_key, error_body, tag_document};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((kind, body)) = input.split_first() else { return };
    match kind % 6 {
        0 => match block_list::read_chosen(body) {
            Ok(blocks) => {
                assert!(blocks.len() <= limits::COMMITTED_BLOCKS_MAX);
                assert_eq!(block_list::read_chosen(&block_list::write_chosen(&blocks)), Ok(blocks));
            }
            Err(refusal) => check(&refusal),
        },
        1 => match tag_document::read(body) {
            Ok(tags) => assert_eq!(tag_document::read(&tag_document::write(&tags)), Ok(tags)),
            Err(refusal) => check(&refusal),
        },
        2 => {
            if let Err(refusal) = delegation_key::read_request(body, DateTime::MIN_STORED) {
                check(&refusal);
            }
        }
        3 => match batch::read("multipart/mixed; boundary=b", body) {
            Ok(parts) => assert!((1..=limits::BATCH_PARTS_MAX).contains(&parts.len())),
            Err(fault) => check(&Refusal::from(fault)),
        },
        4 => {
            let Ok(text) = std::str::from_utf8(body) else { return };
            let tags = Tags::parse("a=1&b=2").unwrap_or_default();
            match tag_expression::parse_condition("x-ms-if-tags", text) {
                Ok(expression) => drop(expression.holds(&tags)),
                Err(refusal) => check(&refusal),
            }
            match TagSearch::parse(text, true) {
                Ok(search) => assert!(search.shown(&tags).len() <= tags.len()),
                Err(refusal) => check(&refusal),
            }
            if let Ok(tags) = Tags::parse(text) {
                assert!(tags.len() <= limits::TAGS_MAX);
            }
        }
        _ => {
            let Ok(text) = std::str::from_utf8(body) else { return };
            if let Some(read) = BlobMarker::read(text) {
                assert_eq!(BlobMarker::read(&read.write()), Some(read));
            }
            if let Some(read) = FoundMarker::read(text) {
                assert_eq!(FoundMarker::read(&read.write()), Some(read));
            }
            if let Some(offset) = marker::read_page(text) {
                assert_eq!(marker::read_page(&marker::of_page(offset)), Some(offset));
            }
        }
    }
});

fn check(refusal: &Refusal) {
    let (status, code) = refusal.answer();
    assert!((400..500).contains(&status), "{refusal:?}");
    let words = refusal.to_string();
    for writer in [Writer::Old, Writer::New] {
        let document = error_body::write(writer, code, &words, &refusal.details(), "id", DateTime::MIN_STORED);
        let read = error_body::read(&document).unwrap_or_else(|| panic!("{refusal:?}"));
        assert_eq!(read.code, code);
    }
}
