//! Tables that are created and dropped without an answer.

use store::suite::table;
use store::{Engine as _, Error};

use crate::lost_answers::Ground;
use crate::lost_answers::between::Aim;
use crate::lost_answers::between::Mishap::{AnswerLost, None, RequestLost};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_hears_that_his_own_table_was_there_before() {
    let Some(mut ground) = Ground::new().await else { return };
    // A table's directory is written before the table.
    let sequences: [&[_]; 6] = [
        &[AnswerLost],
        &[RequestLost],
        &[None, AnswerLost],
        &[None, RequestLost],
        &[AnswerLost, AnswerLost],
        &[None, AnswerLost, AnswerLost],
    ];
    for (n, mishaps) in sequences.iter().enumerate() {
        let name = table(&format!("Made{n}"));
        let _open = ground.between.expect(Aim::All, mishaps);
        let outcome = ground.engine.create_table(&name).await;
        ground.between.expect_nothing();
        let found = ground.witness.find_table(&name).await;
        match outcome {
            Ok(()) => assert!(found.is_ok(), "{mishaps:?}: {found:?}"),
            Err(Error::Busy) => assert!(matches!(found, Err(Error::TableNotFound)), "{mishaps:?}: {found:?}"),
            Err(Error::OutcomeUnknown) => {}
            Err(other) => panic!("{mishaps:?}: {other}"),
        }
        ground.between.lost();
    }
    ground.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_hears_that_the_table_he_drops_was_gone_before() {
    let Some(mut ground) = Ground::new().await else { return };
    let sequences: [&[_]; 5] =
        [&[AnswerLost], &[RequestLost], &[None, AnswerLost], &[None, RequestLost], &[AnswerLost, AnswerLost]];
    for (n, mishaps) in sequences.iter().enumerate() {
        let name = table(&format!("Gone{n}"));
        ground.engine.create_table(&name).await.unwrap();
        let _open = ground.between.expect(Aim::All, mishaps);
        let outcome = ground.engine.drop_table(&name).await;
        ground.between.expect_nothing();
        match outcome {
            Ok(()) => {
                let found = ground.witness.find_table(&name).await;
                assert!(matches!(found, Err(Error::TableNotFound)), "{mishaps:?}: {found:?}");
            }
            Err(Error::OutcomeUnknown) => {}
            Err(other) => panic!("{mishaps:?}: {other}"),
        }
        ground.between.lost();
    }
    ground.finish().await;
}
