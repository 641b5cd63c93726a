//! Small histories, each about one thing, with the verdict that a person would give.

use histories::history::{Action, Found, Operation, Outcome, Refusal, Time, Verb, Version, Write};
use histories::judge::{PLACES_MAX, Verdict, judge};

use Refusal::{EntityAlreadyExists, ResourceNotFound, UpdateConditionNotSatisfied};

fn at(start: Time, end: Time, action: Action, outcome: Outcome) -> Operation {
    Operation { client: 0, partition: "p".to_owned(), start, end, action, outcome }
}

fn part(verb: Verb, row: &str, number: u32) -> Write {
    Write { verb, row: row.to_owned(), if_match: None, number, extras: Vec::new() }
}

fn write(verb: Verb, row: &str, number: u32) -> Action {
    Action::Write(part(verb, row, number))
}

fn write_if(verb: Verb, row: &str, number: u32, version: Version) -> Action {
    Action::Write(Write { if_match: Some(version), ..part(verb, row, number) })
}

fn merge(row: &str, number: u32, extra: &str) -> Action {
    Action::Write(Write { extras: vec![extra.to_owned()], ..part(Verb::InsertOrMerge, row, number) })
}

fn upsert(row: &str, number: u32) -> Action {
    write(Verb::InsertOrReplace, row, number)
}

fn both(first: u32, second: u32) -> Action {
    Action::Batch(vec![part(Verb::InsertOrReplace, "a", first), part(Verb::InsertOrReplace, "b", second)])
}

fn get(row: &str) -> Action {
    Action::Get { row: row.to_owned() }
}

fn done(version: Version) -> Outcome {
    Outcome::Done(vec![Some(version)])
}

fn deleted() -> Outcome {
    Outcome::Done(vec![None])
}

fn refused(refusal: Refusal) -> Outcome {
    Outcome::Refused { index: 0, refusal }
}

fn unknown() -> Outcome {
    Outcome::Unknown { until: None }
}

fn found(row: &str, version: Version, values: &[(&str, u32)]) -> Found {
    let values = values.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
    Found { row: row.to_owned(), version, values }
}

/// Rows with their versions and writers.
fn saw(rows: &[(&str, Version, u32)]) -> Outcome {
    Outcome::Found(
        rows.iter().map(|(row, version, writer)| found(row, *version, &[("Writer", *writer)])).collect(),
    )
}

#[track_caller]
fn accepts(history: &[Operation]) {
    let verdict = judge(history, PLACES_MAX);
    assert!(matches!(verdict, Verdict::Linearizable { .. }), "{verdict:?}");
}

/// The core names exactly these operations.
#[track_caller]
fn rejects(history: &[Operation], core: &[usize]) {
    match judge(history, PLACES_MAX) {
        Verdict::Violation(violation) => assert_eq!(violation.core, core, "{}", violation.why),
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn an_empty_history_is_fine() {
    accepts(&[]);
    accepts(&[
        at(0, 9, get("a"), saw(&[])),
        at(1, 9, Action::Query, saw(&[])),
        at(2, 9, get("a"), unknown()),
    ]);
}

#[test]
fn a_read_may_be_before_or_after_a_concurrent_write() {
    let write = at(0, 10, upsert("a", 1), done(5));
    accepts(&[write.clone(), at(5, 6, get("a"), saw(&[]))]);
    accepts(&[write.clone(), at(5, 6, get("a"), saw(&[("a", 5, 1)]))]);
    // Not in the other direction.
    accepts(&[write.clone(), at(3, 4, get("a"), saw(&[])), at(5, 6, get("a"), saw(&[("a", 5, 1)]))]);
    rejects(&[write, at(3, 4, get("a"), saw(&[("a", 5, 1)])), at(5, 6, get("a"), saw(&[]))], &[1, 2]);
}

#[test]
fn an_acknowledged_write_is_seen_by_all_later_reads() {
    let write = at(0, 10, upsert("a", 1), done(5));
    accepts(&[write.clone(), at(11, 12, get("a"), saw(&[("a", 5, 1)]))]);
    rejects(&[write.clone(), at(11, 12, get("a"), saw(&[]))], &[0, 1]);
    rejects(&[write.clone(), at(11, 12, Action::Query, saw(&[]))], &[0, 1]);
    rejects(
        &[write.clone(), at(11, 12, write_if(Verb::Replace, "a", 2, 5), refused(ResourceNotFound))],
        &[0, 1],
    );
    // The same instant is not later.
    accepts(&[write, at(10, 12, get("a"), saw(&[]))]);
}

#[test]
fn a_read_can_not_see_what_comes_after_it() {
    rejects(&[at(0, 1, get("a"), saw(&[("a", 5, 1)])), at(2, 3, upsert("a", 1), done(5))], &[0]);
}

#[test]
fn of_two_inserts_one_is_refused() {
    let first = at(0, 10, write(Verb::Insert, "a", 1), done(5));
    accepts(&[first.clone(), at(1, 9, write(Verb::Insert, "a", 2), refused(EntityAlreadyExists))]);
    rejects(&[first.clone(), at(1, 9, write(Verb::Insert, "a", 2), done(6))], &[0, 1]);
    // Unless something deleted the row between them.
    let delete = at(2, 8, write(Verb::Delete, "a", 3), deleted());
    accepts(&[first.clone(), at(1, 9, write(Verb::Insert, "a", 2), done(6)), delete]);
    let maybe = at(2, 8, write(Verb::Delete, "a", 3), unknown());
    accepts(&[first, at(1, 9, write(Verb::Insert, "a", 2), done(6)), maybe]);
}

#[test]
fn a_refusal_needs_its_reason() {
    rejects(&[at(0, 1, write(Verb::Insert, "a", 1), refused(EntityAlreadyExists))], &[0]);
    accepts(&[at(0, 1, write(Verb::Replace, "a", 1), refused(ResourceNotFound))]);
    let written = at(0, 1, upsert("a", 1), done(5));
    rejects(&[written.clone(), at(2, 3, write(Verb::Merge, "a", 2), refused(ResourceNotFound))], &[0, 1]);
    let stale = at(2, 3, write_if(Verb::Merge, "a", 2, 5), refused(UpdateConditionNotSatisfied));
    rejects(&[written, stale], &[1]);
}

#[test]
fn a_refused_write_leaves_nothing() {
    let refused = at(0, 1, write(Verb::Replace, "a", 1), refused(ResourceNotFound));
    rejects(&[refused, at(2, 3, get("a"), saw(&[("a", 5, 1)]))], &[0, 1]);
}

#[test]
fn if_match_lets_one_of_two_through() {
    let base = at(0, 1, upsert("a", 1), done(5));
    let winner = at(2, 9, write_if(Verb::Replace, "a", 2, 5), done(6));
    let loser = at(2, 9, write_if(Verb::Merge, "a", 3, 5), refused(UpdateConditionNotSatisfied));
    accepts(&[base.clone(), winner.clone(), loser]);
    rejects(&[base, winner, at(3, 9, write_if(Verb::Merge, "a", 3, 5), done(7))], &[1, 2]);
}

#[test]
fn a_row_can_be_written_again_after_a_delete() {
    let base = at(0, 1, upsert("a", 1), done(5));
    let delete = at(2, 3, write_if(Verb::Delete, "a", 2, 5), deleted());
    let again = at(4, 5, write(Verb::Insert, "a", 3), done(6));
    accepts(&[base.clone(), delete.clone(), again.clone(), at(6, 7, get("a"), saw(&[("a", 6, 3)]))]);
    rejects(&[base.clone(), delete.clone(), again, at(6, 7, get("a"), saw(&[("a", 5, 1)]))], &[2, 3]);
    rejects(&[base.clone(), delete, at(6, 7, get("a"), saw(&[("a", 5, 1)]))], &[1, 2]);
    rejects(&[base, at(2, 3, get("a"), saw(&[]))], &[0, 1]);
}

#[test]
fn a_merge_keeps_the_other_properties() {
    let base = [at(0, 1, merge("a", 1, "A"), done(5)), at(2, 3, merge("a", 2, "B"), done(6))];
    let look = |values| at(4, 5, get("a"), Outcome::Found(vec![found("a", 6, values)]));
    accepts(&[base[0].clone(), base[1].clone(), look(&[("Writer", 2), ("A", 1), ("B", 2)])]);
    rejects(&[base[0].clone(), base[1].clone(), look(&[("Writer", 2), ("B", 2)])], &[0, 2]);
    let replace = at(2, 3, write(Verb::Replace, "a", 2), done(6));
    let look = at(4, 5, get("a"), Outcome::Found(vec![found("a", 6, &[("Writer", 2), ("A", 1)])]));
    rejects(&[base[0].clone(), replace, look], &[2]);
}

#[test]
fn nobody_sees_half_a_batch() {
    let batch = at(0, 10, both(1, 2), Outcome::Done(vec![Some(5), Some(6)]));
    for (rows, whole) in [
        (&[][..], true),
        (&[("a", 5, 1), ("b", 6, 2)][..], true),
        (&[("a", 5, 1)][..], false),
        (&[("b", 6, 2)][..], false),
    ] {
        let query = at(3, 4, Action::Query, saw(rows));
        if whole { accepts(&[batch.clone(), query]) } else { rejects(&[batch.clone(), query], &[1]) }
    }
    // Two gets one after the other show as much as a query.
    let gets = [at(3, 4, get("a"), saw(&[("a", 5, 1)])), at(5, 6, get("b"), saw(&[]))];
    rejects(&[batch.clone(), gets[0].clone(), gets[1].clone()], &[1, 2]);
    let gets = [at(3, 4, get("b"), saw(&[])), at(5, 6, get("a"), saw(&[("a", 5, 1)]))];
    accepts(&[batch, gets[0].clone(), gets[1].clone()]);
}

#[test]
fn a_batch_without_an_answer_is_done_all_or_none() {
    let batch = at(0, 10, both(1, 2), unknown());
    accepts(&[batch.clone(), at(20, 21, Action::Query, saw(&[]))]);
    accepts(&[batch.clone(), at(20, 21, Action::Query, saw(&[("a", 5, 1), ("b", 6, 2)]))]);
    rejects(&[batch, at(20, 21, Action::Query, saw(&[("a", 5, 1)]))], &[1]);
}

#[test]
fn a_refused_batch_names_the_first_that_could_not_be_done() {
    let base = [at(0, 1, upsert("b", 1), done(5)), at(0, 1, upsert("c", 2), done(6))];
    let writes = ["a", "b", "c"].into_iter().zip(3..).map(|(row, number)| part(Verb::Insert, row, number));
    let batch = Action::Batch(writes.collect());
    for (index, right) in [(0, false), (1, true), (2, false)] {
        let batch = at(2, 3, batch.clone(), Outcome::Refused { index, refusal: EntityAlreadyExists });
        let verdict = judge(&[base[0].clone(), base[1].clone(), batch], PLACES_MAX);
        assert_eq!(matches!(verdict, Verdict::Linearizable { .. }), right, "{index}: {verdict:?}");
    }
}

#[test]
fn a_write_without_an_answer_may_come_late_or_never_but_only_once() {
    let lost = at(0, 1, upsert("a", 1), unknown());
    let (absent, there) = (|at_time| at(at_time, at_time + 1, get("a"), saw(&[])), saw(&[("a", 5, 1)]));
    accepts(&[lost.clone(), absent(10), absent(20)]);
    accepts(&[lost.clone(), absent(10), at(20, 21, get("a"), there.clone())]);
    rejects(&[lost.clone(), at(10, 11, get("a"), there.clone()), absent(20)], &[1, 2]);
    let deleted = at(12, 13, write(Verb::Delete, "a", 2), deleted());
    accepts(&[lost.clone(), at(10, 11, get("a"), there.clone()), deleted.clone(), absent(20)]);
    rejects(&[lost, at(10, 11, get("a"), there.clone()), deleted, at(20, 21, get("a"), there)], &[2, 3]);
}

#[test]
fn a_write_that_was_turned_away_is_never_there() {
    let away = at(0, 5, upsert("a", 1), Outcome::TurnedAway);
    accepts(&[away.clone(), at(10, 11, get("a"), saw(&[]))]);
    rejects(&[away, at(10, 11, get("a"), saw(&[("a", 5, 1)]))], &[0, 1]);
    let base = at(0, 1, upsert("a", 1), done(5));
    let away = at(2, 3, write(Verb::Delete, "a", 2), Outcome::TurnedAway);
    accepts(&[base.clone(), away.clone(), at(10, 11, get("a"), saw(&[("a", 5, 1)]))]);
    rejects(&[base, away, at(10, 11, get("a"), saw(&[]))], &[0, 2]);
}

#[test]
fn a_write_in_flight_at_a_kill_is_there_after_the_restart_or_never() {
    let lost = at(0, 5, upsert("a", 1), Outcome::Unknown { until: Some(6) });
    let (absent, there) = (at(10, 11, get("a"), saw(&[])), at(20, 21, get("a"), saw(&[("a", 5, 1)])));
    accepts(&[lost.clone(), there.clone()]);
    accepts(&[lost.clone(), absent.clone()]);
    rejects(&[lost, absent, there], &[0, 1, 2]);
}

#[test]
fn a_write_that_was_never_seen_can_explain_other_answers() {
    let base = at(0, 1, upsert("a", 1), done(5));
    let lost = at(2, 3, upsert("a", 2), unknown());
    let stale = at(4, 5, write_if(Verb::Replace, "a", 3, 5), refused(UpdateConditionNotSatisfied));
    accepts(&[base.clone(), lost, stale.clone()]);
    rejects(&[base, stale], &[1]);
}

#[test]
fn a_version_belongs_to_one_write_and_versions_grow() {
    let first = at(0, 1, upsert("a", 1), done(5));
    accepts(&[first.clone(), at(2, 3, upsert("a", 2), done(6))]);
    // Each row has its own versions.
    accepts(&[first.clone(), at(2, 3, upsert("b", 2), done(5))]);
    rejects(&[first.clone(), at(2, 3, upsert("a", 2), done(5))], &[0, 1]);
    rejects(&[first.clone(), at(2, 3, upsert("a", 2), done(4))], &[0, 1]);
    rejects(&[first.clone(), at(2, 3, get("a"), saw(&[("a", 6, 1)]))], &[0, 1]);
    rejects(&[first.clone(), at(2, 3, get("a"), saw(&[("a", 6, 7)]))], &[1]);
    // Of two concurrent writes, the one with the greater version was last.
    let beside = [at(0, 9, upsert("a", 1), done(6)), at(0, 9, upsert("a", 2), done(5))];
    let last = |version, number| at(10, 11, get("a"), saw(&[("a", version, number)]));
    accepts(&[beside[0].clone(), beside[1].clone(), last(6, 1)]);
    rejects(&[beside[0].clone(), beside[1].clone(), last(5, 2)], &[0, 2]);
    // A read of the smaller version is before the write of the greater one, whichever ended first.
    let second = at(0, 9, upsert("a", 2), done(6));
    let reads = [at(2, 3, get("a"), saw(&[("a", 6, 2)])), at(4, 5, get("a"), saw(&[("a", 5, 1)]))];
    rejects(&[first.clone(), second.clone(), reads[0].clone(), reads[1].clone()], &[2, 3]);
    accepts(&[first, second, reads[1].clone(), at(6, 7, get("a"), saw(&[("a", 6, 2)]))]);
}

#[test]
fn an_entity_is_in_the_row_it_was_written_to() {
    let history = [at(0, 1, upsert("a", 1), done(5)), at(2, 3, get("b"), saw(&[("b", 5, 1)]))];
    rejects(&history, &[0, 1]);
}

#[test]
fn a_search_that_is_cut_short_says_so() {
    let history: Vec<Operation> =
        (1..9).map(|number| at(0, 100, upsert("a", number), done(i64::from(number)))).collect();
    accepts(&history);
    assert_eq!(judge(&history, 3), Verdict::Undecided);
}

#[test]
fn noise_is_left_out_of_the_explanation() {
    let mut history = Vec::new();
    for number in 1..40 {
        let (time, version) = (Time::from(number) * 10, i64::from(number));
        history.push(at(time, time + 1, upsert("b", number), done(version)));
        history.push(at(time + 2, time + 3, get("b"), saw(&[("b", version, number)])));
    }
    let write = history.len();
    history.push(at(1000, 1001, both(100, 101), Outcome::Done(vec![Some(100), Some(101)])));
    history.push(at(1002, 1003, Action::Query, saw(&[("a", 100, 100)])));
    rejects(&history, &[write, write + 1]);
}

#[test]
fn a_violation_is_shown_as_a_timeline() {
    let history = [
        at(0, 30, both(1, 2), Outcome::Done(vec![Some(50), Some(60)])),
        at(5, 6, get("b"), saw(&[])),
        at(10, 20, Action::Query, saw(&[("b", 60, 2)])),
    ];
    let Verdict::Violation(violation) = judge(&history, PLACES_MAX) else { panic!("accepted") };
    let expected = "\
partition p: no order of the partition explains these operations
  client 0  |--|  batch [insert-or-replace a #1; insert-or-replace b #2] -> done v1 v2
! client 0   ||   query -> b v2 {Writer=#2}
(! = can't be left out; #7 = the write with number 7; v3 = the partition's third version; time runs to the right)
";
    assert_eq!(histories::timeline::render(&history, &violation), expected);
}

#[test]
fn a_saved_history_is_the_same_when_it_is_loaded() {
    let batch = Action::Batch(vec![part(Verb::Insert, "a", 3), part(Verb::Delete, "b", 4)]);
    let history = vec![
        at(0, 1, merge("a", 1, "A"), done(5)),
        at(2, 3, write_if(Verb::Replace, "a", 2, 5), refused(UpdateConditionNotSatisfied)),
        at(4, 5, batch, Outcome::Unknown { until: Some(6) }),
        at(7, 8, Action::Query, saw(&[("a", 5, 1)])),
    ];
    let mut saved = Vec::new();
    histories::history::save(&history, &mut saved).unwrap();
    assert_eq!(histories::history::load::<Operation>(saved.as_slice()).unwrap(), history);
    let error = histories::history::load::<Operation>(&b"\n{}"[..]).unwrap_err();
    assert!(error.starts_with("line 2: missing field"), "{error}");
}
