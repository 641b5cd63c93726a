//! The answers to the engine's errors and to those of a filter.

use filter::FilterError;
use model::Refusal;
use service::Error;
use store::{RawRow, Reason};

use crate::kit::named;

/// As one line, so that an expectation fits into one line.
fn show(error: Error) -> String {
    match error {
        Error::Refused { refusal, index: None } => named(&refusal),
        Error::Refused { refusal, index: Some(index) } => format!("{} of {index}", named(&refusal)),
        Error::Fault(_) => "fault".to_owned(),
    }
}

fn rejected(index: usize, reason: Reason) -> store::Error {
    store::Error::Rejected { index, reason }
}

#[test]
fn every_error_of_an_engine_has_its_answer() {
    let fault = RawRow::new(b"no row").open().unwrap_err();
    for (error, expected) in [
        (store::Error::TableNotFound, "TableNotFound"),
        (store::Error::TableAlreadyExists, "TableAlreadyExists"),
        (rejected(0, Reason::Exists), "EntityAlreadyExists of 0"),
        (rejected(1, Reason::Missing), "ResourceNotFound of 1"),
        (rejected(99, Reason::VersionDiffers), "UpdateConditionNotSatisfied of 99"),
        (rejected(2, Reason::OverLimit(Refusal::EntityTooLarge)), "EntityTooLarge of 2"),
        (store::Error::Busy, "Busy"),
        (store::Error::Frozen, "Frozen"),
        (store::Error::OutcomeUnknown, "TimedOut"),
        (store::Error::Fault(fault), "fault"),
    ] {
        assert_eq!(show(error.clone().into()), expected);
        // A new error does not compile here until it has its line above.
        match error {
            store::Error::TableNotFound
            | store::Error::TableAlreadyExists
            | store::Error::Busy
            | store::Error::Frozen
            | store::Error::OutcomeUnknown
            | store::Error::Fault(_) => {}
            store::Error::Rejected { reason, .. } => match reason {
                Reason::Exists | Reason::Missing | Reason::VersionDiffers | Reason::OverLimit(_) => {}
            },
        }
    }
}

#[test]
fn a_fault_keeps_its_words_for_the_log() {
    let fault = RawRow::new(b"no row").open().unwrap_err();
    let words = fault.to_string();
    assert_eq!(Error::from(store::Error::Fault(fault)).to_string(), words);
}

#[test]
fn every_error_of_a_filter_has_its_answer() {
    for (error, expected) in [
        (FilterError::Syntax("at 1".to_owned()), Refusal::Syntax { message: "at 1".to_owned() }),
        (FilterError::NotImplemented, common::Refusal::NotImplemented.into()),
        (FilterError::NotValid, common::Refusal::InputNotValid.into()),
    ] {
        assert_eq!(show(error.into()), show(expected.into()));
    }
}
