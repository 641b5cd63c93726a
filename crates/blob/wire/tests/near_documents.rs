//! XML that is nearly a block list or a document of tags: what is accepted keeps to the limits and reads back as the same.

use blob_model::{BlockChoice, BlockId, Tags, limits};
use blob_wire::{block_list, tag_document};
use proptest::prelude::*;
use testing::{Reading, check_near, text_near};

const PIECES: [&str; 18] = [
    "<BlockList>",
    "</BlockList>",
    "<Latest>",
    "</Latest>",
    "<Committed>MQ==</Committed>",
    "<Uncommitted/>",
    "<TagSet>",
    "</TagSet>",
    "<Tag>",
    "<Key>k</Key>",
    "<Value/>",
    "&#x",
    "&lt;",
    ";",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
];

#[test]
fn what_is_nearly_a_block_list_reads_back_or_is_refused() {
    let blocks = prop::collection::vec((0..3usize, prop::collection::vec(any::<u8>(), 1..5)), 0..6);
    let body = blocks.prop_map(|blocks| {
        let blocks = blocks.into_iter().map(|(n, id)| (BlockChoice::ALL[n], BlockId::of_bytes(&id).unwrap()));
        String::from_utf8(block_list::write_chosen(&blocks.collect::<Vec<_>>())).unwrap()
    });
    check_near(text_near(body, &PIECES), 8..=90, |text| {
        let read = block_list::read_chosen(text.as_bytes());
        match &read {
            Ok(blocks) => {
                prop_assert!(blocks.len() <= limits::COMMITTED_BLOCKS_MAX);
                prop_assert_eq!(
                    &block_list::read_chosen(&block_list::write_chosen(blocks)),
                    &read,
                    "{}",
                    text
                );
            }
            Err(refusal) => prop_assert_eq!(refusal.status(), 400, "{}", text),
        }
        Ok(Reading::of(&read))
    });
}

#[test]
fn what_is_nearly_tags_reads_back_or_is_refused() {
    let pairs = prop::collection::btree_map("[a-z]{1,3}", "[a-z +:/]{0,4}", 0..4);
    let body = pairs.prop_map(|pairs| {
        String::from_utf8(tag_document::write(&Tags::new(pairs.into_iter().collect()).unwrap())).unwrap()
    });
    check_near(text_near(body, &PIECES), 8..=90, |text| {
        let read = tag_document::read(text.as_bytes());
        match &read {
            Ok(tags) => prop_assert_eq!(&tag_document::read(&tag_document::write(tags)), &read, "{}", text),
            Err(refusal) => prop_assert_eq!(refusal.status(), 400, "{}", text),
        }
        Ok(Reading::of(&read))
    });
}
