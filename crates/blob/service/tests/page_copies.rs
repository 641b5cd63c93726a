//! Copies of a blob that changes meanwhile: each is one of the states of its source, and what was told of it is true.

use std::sync::{Arc, Mutex};

use blob_model::{Conditions, Crc64, Md5, Metadata, Tags};
use blob_service::{Copied, CopyBlob, CopySource, CopyTags, Error, Request, Which};

use crate::interleaving::Stepped;
use crate::kit::{Random, blob, bytes, refused, setting};
use crate::page_states::{PAGE, SEGMENT};

pub fn copy(name: &str) -> CopyBlob {
    let source = CopySource {
        blob: blob(name),
        which: Which::Current,
        conditions: Conditions::default(),
        shown: String::new(),
    };
    CopyBlob {
        source,
        metadata: Metadata::default(),
        tags: CopyTags::Replace(Tags::default()),
        tier: None,
        priority: None,
        seal: None,
        is_sync: true,
        source_md5: None,
    }
}

type Outcome = Arc<Mutex<Option<Result<Copied, Error>>>>;

/// Copies to `copy` while this changes the source.
async fn beside(
    stepped: &Stepped,
    random: &mut Random,
    copy: CopyBlob,
    change: impl Future<Output = ()> + Send + 'static,
) -> Result<Copied, Error> {
    stepped.steps.turn_on();
    let outcome = Outcome::default();
    let (ground, told) = (stepped.ground.clone(), outcome.clone());
    let copies = tokio::spawn(async move {
        let copied = ground.service.copy_blob(&blob("copy"), copy, &Request::default()).await;
        *told.lock().unwrap() = Some(copied);
    });
    stepped.finish(random, vec![copies, tokio::spawn(change)]).await;
    let copied = outcome.lock().unwrap().take();
    copied.unwrap()
}

#[tokio::test]
async fn a_copy_of_a_page_blob_is_one_state_and_has_the_checksum_that_was_told() {
    let length = 2 * SEGMENT;
    let mut later = 0;
    for seed in 0..setting("PARTITA_PAGE_COPIES", 60) {
        let mut random = Random::new(seed);
        let stepped = Stepped::new(|service| service).await;
        let ground = stepped.ground.clone();
        ground.put_page_blob(length).await;
        ground.put_pages(SEGMENT - PAGE, &[1; 2 * PAGE]).await.unwrap();
        let is_checked = random.below(2) == 0;
        let mut before = vec![0; length];
        before[SEGMENT - PAGE..SEGMENT + PAGE].fill(1);
        let mut copy = copy("b");
        copy.source_md5 = is_checked.then(|| Md5::of(&before));
        let writer = ground.clone();
        let change = async move {
            writer.put_pages(SEGMENT - PAGE, &[2; 2 * PAGE]).await.unwrap();
            writer.resize(SEGMENT).await;
        };
        match beside(&stepped, &mut random, copy, change).await {
            Ok(copied) => {
                let copy = ground.get("copy").await;
                assert_eq!(copied.crc64, Some(Crc64::of(&copy)), "seed {seed}");
                let mut written = before.clone();
                written[SEGMENT - PAGE..SEGMENT + PAGE].fill(2);
                let states = [&before[..], &written, &written[..SEGMENT]];
                let state = states.iter().position(|state| *state == copy);
                assert!(state.is_some(), "seed {seed}: the copy is no state of its source");
                assert!(!is_checked || state == Some(0), "seed {seed}: another MD5 than was given");
                later += u32::from(state > Some(0));
            }
            Err(error) => {
                assert!(is_checked, "seed {seed}: {error:?}");
                assert_eq!(refused::<()>(Err(error)).code(), "Md5Mismatch");
            }
        }
    }
    assert!(later > 0, "the writer was never first");
}

#[tokio::test]
async fn what_is_copied_has_the_md5_that_was_given() {
    let mut copies = 0;
    for seed in 0..setting("PARTITA_PAGE_COPIES", 60) {
        let mut random = Random::new(seed);
        let stepped = Stepped::new(|service| service).await;
        let ground = stepped.ground.clone();
        let content = bytes(1, 3000);
        ground.put("b", &content).await;
        let copy = CopyBlob { source_md5: Some(Md5::of(&content)), ..copy("b") };
        let writer = ground.clone();
        let change = async move {
            writer.put("b", &bytes(2, 3000)).await;
        };
        match beside(&stepped, &mut random, copy, change).await {
            Ok(copied) => {
                assert!(ground.get("copy").await == content, "seed {seed}: another MD5 than was given");
                assert_eq!(copied.crc64, Some(Crc64::of(&content)));
                copies += 1;
            }
            Err(error) => assert_eq!(refused::<()>(Err(error)).code(), "Md5Mismatch"),
        }
    }
    assert!(copies > 0, "the writer was always first");
}
