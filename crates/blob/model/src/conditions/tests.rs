//! The rules of the specification, and its table of refusals, every cell (blob-operations 2.6).

use super::*;
use crate::{Comparison, TagCondition};

fn at(seconds: i64) -> DateTime {
    DateTime::from_ticks(DateTime::MIN_STORED.ticks() + seconds * 10_000_000).unwrap()
}

/// A blob that was changed in second 100, and half a second later.
fn etag() -> Etag {
    Etag(DateTime::from_ticks(at(100).ticks() + 5_000_000).unwrap())
}

fn one_of(seconds: &[i64]) -> Option<Matches> {
    Some(Matches::OneOf(seconds.iter().map(|second| Etag(at(*second))).collect()))
}

fn own() -> Option<Matches> {
    Some(Matches::OneOf(vec![etag()]))
}

fn tag(value: &str) -> Option<TagExpression> {
    let condition =
        TagCondition { key: "tag1".to_owned(), comparison: Comparison::Equal, value: value.to_owned() };
    Some(TagExpression::Compare(condition))
}

fn judge(conditions: &Conditions, operand: Operand) -> Option<Unmet> {
    let tags = Tags::parse("tag1=first").unwrap();
    conditions.judge(Some(Seen { etag: etag(), tags: &tags }), operand, false).err()
}

#[test]
fn each_condition_alone() {
    let none = Conditions::default;
    let table = [
        (none(), None),
        (Conditions { if_match: own(), ..none() }, None),
        (Conditions { if_match: one_of(&[1, 2]), ..none() }, Some(Unmet::Match)),
        (Conditions { if_match: Some(Matches::Anything), ..none() }, None),
        (Conditions { if_none_match: own(), ..none() }, Some(Unmet::NoneMatch)),
        (Conditions { if_none_match: one_of(&[1, 2]), ..none() }, None),
        (Conditions { if_none_match: Some(Matches::Anything), ..none() }, Some(Unmet::NothingThere)),
        (Conditions { modified_since: Some(at(99)), ..none() }, None),
        // One second is the resolution of both.
        (Conditions { modified_since: Some(at(100)), ..none() }, Some(Unmet::ModifiedSince)),
        (Conditions { unmodified_since: Some(at(100)), ..none() }, None),
        (Conditions { unmodified_since: Some(at(99)), ..none() }, Some(Unmet::UnmodifiedSince)),
        (Conditions { if_tags: tag("first"), ..none() }, None),
        (Conditions { if_tags: tag("other"), ..none() }, Some(Unmet::Tags)),
    ];
    for (conditions, expected) in table {
        for operand in [Operand::Read, Operand::Write, Operand::Create] {
            assert_eq!(judge(&conditions, operand), expected, "{conditions:?} {operand:?}");
        }
    }
}

#[test]
fn a_read_takes_one_of_two_and_a_write_the_etag() {
    let stale = Conditions { if_none_match: own(), modified_since: Some(at(99)), ..Conditions::default() };
    assert_eq!(judge(&stale, Operand::Read), None, "it was modified since");
    assert_eq!(judge(&stale, Operand::Write), Some(Unmet::NoneMatch));
    let fresh = Conditions { if_none_match: own(), modified_since: Some(at(100)), ..Conditions::default() };
    assert_eq!(judge(&fresh, Operand::Read), Some(Unmet::NoneMatch));
    let other =
        Conditions { if_none_match: one_of(&[1]), modified_since: Some(at(100)), ..Conditions::default() };
    assert_eq!(judge(&other, Operand::Read), None);
    assert_eq!(judge(&other, Operand::Write), None, "the ETag beats the time");

    let both = Conditions { if_match: own(), unmodified_since: Some(at(99)), ..Conditions::default() };
    assert_eq!(judge(&both, Operand::Read), Some(Unmet::UnmodifiedSince));
    assert_eq!(judge(&both, Operand::Write), None, "the ETag beats the time");
    // All four of a read.
    let all = Conditions {
        if_match: own(),
        unmodified_since: Some(at(100)),
        if_none_match: one_of(&[1]),
        modified_since: Some(at(200)),
        if_tags: tag("first"),
    };
    assert_eq!(judge(&all, Operand::Read), None);
}

#[test]
fn nothing_there_meets_what_asks_for_nothing() {
    let judge = |conditions: Conditions| conditions.judge(None, Operand::Create, false).err();
    let none = Conditions::default;
    assert_eq!(judge(none()), None);
    assert_eq!(judge(Conditions { if_none_match: Some(Matches::Anything), ..none() }), None);
    assert_eq!(judge(Conditions { modified_since: Some(at(1)), ..none() }), None);
    assert_eq!(judge(Conditions { unmodified_since: Some(at(1)), ..none() }), None);
    assert_eq!(judge(Conditions { if_match: Some(Matches::Anything), ..none() }), Some(Unmet::Match));
    assert_eq!(judge(Conditions { if_match: own(), ..none() }), Some(Unmet::Match));
    assert_eq!(judge(Conditions { if_tags: tag("first"), ..none() }), Some(Unmet::Tags));
}

#[test]
fn whoever_holds_the_lease_may_overwrite() {
    let tags = Tags::default();
    let seen = Seen { etag: etag(), tags: &tags };
    let conditions = Conditions { if_none_match: Some(Matches::Anything), ..Conditions::default() };
    assert_eq!(conditions.judge(Some(seen), Operand::Create, true), Ok(()));
    assert_eq!(conditions.judge(Some(seen), Operand::Create, false), Err(Unmet::NothingThere));
    // Only the star is passed over.
    let conditions = Conditions { if_none_match: own(), ..Conditions::default() };
    assert_eq!(conditions.judge(Some(seen), Operand::Create, true), Err(Unmet::NoneMatch));
}

#[test]
fn each_operation_has_its_refusals() {
    const UNMET: [Unmet; 6] = [
        Unmet::Match,
        Unmet::NoneMatch,
        Unmet::NothingThere,
        Unmet::ModifiedSince,
        Unmet::UnmodifiedSince,
        Unmet::Tags,
    ];
    const NOT_MET: (u16, &str) = (412, "ConditionNotMet");
    const SAME: (u16, &str) = (304, "ConditionNotMet");
    const EXISTS: (u16, &str) = (409, "BlobAlreadyExists");
    const TARGET: (u16, &str) = (412, "TargetConditionNotMet");
    const SOURCE: (u16, &str) = (412, "SourceConditionNotMet");
    const NOT_READ: (u16, &str) = (412, "CannotVerifyCopySource");
    const NOT_READ_SAME: (u16, &str) = (304, "CannotVerifyCopySource");
    let table = [
        (Operand::Read, [NOT_MET, SAME, SAME, SAME, NOT_MET, NOT_MET]),
        (Operand::Write, [NOT_MET; 6]),
        (Operand::Create, [NOT_MET, NOT_MET, EXISTS, NOT_MET, NOT_MET, NOT_MET]),
        (Operand::CopyTarget, [TARGET, TARGET, EXISTS, TARGET, TARGET, NOT_MET]),
        (Operand::FromUrlTarget, [TARGET, NOT_MET, EXISTS, NOT_MET, NOT_MET, NOT_MET]),
        (Operand::PageFromUrlTarget, [TARGET, NOT_MET, NOT_MET, NOT_MET, NOT_MET, NOT_MET]),
        (Operand::AppendFromUrlTarget, [NOT_MET; 6]),
        (Operand::CopySource, [SOURCE, SOURCE, SOURCE, SOURCE, SOURCE, NOT_MET]),
        (Operand::FromUrlSource, [SOURCE, NOT_READ_SAME, NOT_READ_SAME, NOT_READ_SAME, NOT_READ, NOT_MET]),
        (
            Operand::RangeFromUrlSource,
            [NOT_READ, NOT_READ_SAME, NOT_READ_SAME, NOT_READ_SAME, NOT_READ, NOT_MET],
        ),
    ];
    for (operand, expected) in table {
        for (unmet, expected) in UNMET.into_iter().zip(expected) {
            assert_eq!(unmet.refusal(operand).answer(), expected, "{unmet:?} of {operand:?}");
        }
    }
}

#[test]
fn etags_come_with_and_without_quotes_in_lists() {
    let text = etag().to_string();
    for value in [text.clone(), format!("\"{text}\""), format!(" \"0x111111111111111\" , \"{text}\"")] {
        assert!(Matches::parse(&value).has(etag()), "{value}");
    }
    assert_eq!(Matches::parse(" * "), Matches::Anything);
    for value in ["", "\"*\"", "0x111111111111111", "nonsense", &format!("W/\"{text}\"")] {
        assert!(!Matches::parse(value).has(etag()), "{value}");
    }
}
