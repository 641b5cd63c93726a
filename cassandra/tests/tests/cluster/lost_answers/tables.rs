//! Lost answers while tables are created and dropped, and while metadata is written.

use bytes::Bytes;
use model::ServiceKind;
use store::{Engine as _, Error};
use store_suite::table;

use crate::lost_answers::Ground;
use crate::lost_answers::between::Mishap::{AnswerLost, None, RequestLost};
use crate::lost_answers::between::{Aim, MARK};

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_does_not_make_ones_own_table_a_conflict() {
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
        let outcome = ground.engine.create_table(&name, Option::None).await;
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
async fn a_lost_answer_does_not_make_ones_own_drop_a_missing_table() {
    let Some(mut ground) = Ground::new().await else { return };
    let sequences: [&[_]; 5] =
        [&[AnswerLost], &[RequestLost], &[None, AnswerLost], &[None, RequestLost], &[AnswerLost, AnswerLost]];
    for (n, mishaps) in sequences.iter().enumerate() {
        let name = table(&format!("Gone{n}"));
        ground.engine.create_table(&name, Option::None).await.unwrap();
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

#[tokio::test(flavor = "multi_thread")]
async fn late_policies_do_not_overwrite_later_ones() {
    let Some(mut ground) = Ground::new().await else { return };
    let (table, account) = (ground.table.clone(), ground.table.account.clone());
    let revoked = Bytes::from_static(b"revoked");
    for before in [Option::None, Some("lenient")] {
        if let Some(before) = before {
            let present = ground.witness.table_metadata(&table).await.unwrap();
            assert!(ground.witness.replace_table_metadata(&table, present, before.into()).await.unwrap());
            let present = ground.witness.service_metadata(&account, ServiceKind::Table).await.unwrap();
            assert!(
                ground
                    .witness
                    .replace_service_metadata(&account, ServiceKind::Table, present, before.into())
                    .await
                    .unwrap()
            );
        }
        let present = ground.witness.service_metadata(&account, ServiceKind::Table).await.unwrap();
        let policies = ground.witness.table_metadata(&table).await.unwrap();
        let late = Bytes::from(format!("{MARK}{before:?}"));
        let _open = ground.between.expect(Aim::Rows, &[RequestLost, RequestLost]);
        for outcome in [
            ground.engine.replace_table_metadata(&table, policies.clone(), late.clone()).await,
            ground
                .engine
                .replace_service_metadata(&account, ServiceKind::Table, present.clone(), late.clone())
                .await,
        ] {
            assert!(matches!(outcome, Err(Error::OutcomeUnknown)), "{outcome:?}");
        }
        ground.between.expect_nothing();
        assert!(ground.witness.replace_table_metadata(&table, policies, revoked.clone()).await.unwrap());
        assert!(
            ground
                .witness
                .replace_service_metadata(&account, ServiceKind::Table, present, revoked.clone())
                .await
                .unwrap()
        );
        ground.deliver_lost("policies").await;
        assert_eq!(ground.witness.table_metadata(&table).await.unwrap(), Some(revoked.clone()));
        assert_eq!(
            ground.witness.service_metadata(&account, ServiceKind::Table).await.unwrap(),
            Some(revoked.clone())
        );
    }
    ground.finish().await;
}
