//! No other server writes, so every outcome can be settled, and every write is done once.

use store::{Engine as _, Error};

use crate::lost_answers::Ground;
use crate::lost_answers::between::Mishap::{
    self, AnswerCut, AnswerLost, LateAtGate, None, RequestCut, RequestLost,
};
use crate::lost_answers::between::{Aim, MARK};
use crate::lost_answers::cases::{ALL, Case, GROUP, OPENING};
use crate::lost_answers::straggler::deliver;

/// Every combination of mishaps for the first write and for up to `more` writes that the engine sends after it.
fn sequences(first: &[Mishap], then: &[Mishap], more: usize) -> Vec<Vec<Mishap>> {
    let mut all: Vec<Vec<Mishap>> = first.iter().map(|mishap| vec![*mishap]).collect();
    let mut last = all.clone();
    for _ in 0..more {
        let longer = |sequence: &Vec<Mishap>| {
            let sequence = sequence.clone();
            then.iter().map(move |mishap| [sequence.as_slice(), &[*mishap]].concat())
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

async fn check(ground: &mut Ground, partition: &str, case: &Case, mishaps: &[Mishap]) {
    let what = format!("{}: {mishaps:?}", case.name);
    let write = case.prepare(ground, partition).await;
    ground.reconnected().await;
    let _open = ground.between.expect(Aim::Rows, mishaps);
    let outcome = ground.engine.apply(&ground.table, write).await;
    ground.between.expect_nothing();
    let cut = mishaps.iter().any(|mishap| matches!(mishap, RequestCut | AnswerCut));
    match &outcome {
        Ok(stamps) => case.assert_done(ground, partition, stamps, &what).await,
        // Without a connection the engine may not try again. Then the first try must not have been applied either.
        Err(Error::Busy) if cut => assert_eq!(ground.values(partition).await, case.found(), "{what}"),
        Err(error) => panic!("{what}: {error}"),
    }
    let rows = ground.rows(partition).await;
    ground.deliver_lost(&what).await;
    assert_eq!(ground.rows(partition).await, rows, "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_done_once_whichever_requests_and_answers_are_lost() {
    let Some(mut ground) = Ground::new().await else { return };
    let then = [None, RequestLost, AnswerLost];
    // PARTITA_LOST_ANSWERS=all tries more sequences, which takes minutes.
    let all = usize::from(std::env::var("PARTITA_LOST_ANSWERS").is_ok_and(|which| which == "all"));
    for (c, case) in ALL.iter().enumerate() {
        // The simplest write and the one with every kind of operation get longer sequences than the others.
        let more = all + usize::from([OPENING.name, GROUP.name].contains(&case.name));
        for (s, mishaps) in sequences(&[RequestLost, AnswerLost], &then, more).iter().enumerate() {
            check(&mut ground, &format!("{MARK}{c}-{s}"), case, mishaps).await;
        }
    }
    ground.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_done_once_or_not_at_all_when_connections_end() {
    let Some(mut ground) = Ground::new().await else { return };
    let sequences = sequences(&[RequestCut, AnswerCut], &[RequestCut, AnswerCut], 1);
    for (c, case) in [OPENING, GROUP].iter().enumerate() {
        for (s, mishaps) in sequences.iter().enumerate() {
            check(&mut ground, &format!("{MARK}{c}-{s}"), case, mishaps).await;
        }
    }
    ground.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_write_is_applied_until_it_is_made_impossible() {
    let Some(mut ground) = Ground::new().await else { return };
    // The engine's second write makes the first one impossible; the third repeats the first.
    let moments: [(&[Mishap], bool); 2] =
        [(&[RequestLost, LateAtGate], true), (&[RequestLost, None, LateAtGate], false)];
    for (c, case) in ALL.iter().enumerate() {
        for (mishaps, counts) in moments {
            let (partition, what) = (format!("{MARK}{c}-{counts}"), format!("{}: {mishaps:?}", case.name));
            let write = case.prepare(&ground, &partition).await;
            let mut gate = ground.between.expect(Aim::Rows, mishaps);
            let (engine, table) = (ground.engine.clone(), ground.table.clone());
            let applying = tokio::spawn(async move { engine.apply(&table, write).await });
            let lost = ground.between.next_lost().await;
            gate.arrived().await;
            assert_eq!(deliver(ground.node, &lost).await, counts, "{what}");
            gate.open();
            let stamps = applying.await.unwrap().unwrap();
            ground.between.expect_nothing();
            case.assert_done(&ground, &partition, &stamps, &what).await;
        }
    }
    ground.finish().await;
}
