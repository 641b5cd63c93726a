//! The tables of the specification, every cell (blob-operations 3.1, 3.2, 3.3).

use super::*;
use common::Guid;

const A: LeaseId = LeaseId(Guid([0xa; 16]));
const B: LeaseId = LeaseId(Guid([0xb; 16]));
const C: LeaseId = LeaseId(Guid([0xc; 16]));
const FRESH: LeaseId = LeaseId(Guid([0xf; 16]));
const OF: Leased = Leased::Blob;

fn at(seconds: i64) -> DateTime {
    DateTime::from_ticks(DateTime::MIN_STORED.ticks() + seconds * 10_000_000).unwrap()
}

/// One lease in each of the five states at second 100, all but the first of them A's.
fn states() -> [(LeaseState, Lease); 5] {
    let duration = LeaseDuration::Seconds(30);
    [
        (LeaseState::Available, Lease::Available),
        (LeaseState::Leased, Lease::Held { id: A, duration, ends: Some(at(120)) }),
        (LeaseState::Breaking, Lease::Broken { id: A, from: at(120) }),
        (LeaseState::Broken, Lease::Broken { id: A, from: at(90) }),
        (LeaseState::Expired, Lease::Held { id: A, duration, ends: Some(at(100)) }),
    ]
}

/// `leased A` and such, or the code of the refusal.
fn show(outcome: Result<LeaseOutcome, Refusal>) -> String {
    let name = |id: LeaseId| match id {
        A => "A",
        B => "B",
        C => "C",
        _ => "X",
    };
    match outcome {
        Err(refusal) => {
            assert_eq!(refusal.status(), 409);
            refusal.code().to_owned()
        }
        Ok(LeaseOutcome { lease, id, .. }) => {
            let state = lease.state(at(100)).name();
            match (lease, id) {
                (Lease::Held { id: held, .. }, Some(told)) => {
                    assert_eq!(held, told);
                    format!("{state} {}", name(held))
                }
                _ => state.to_owned(),
            }
        }
    }
}

#[test]
fn every_action_in_every_state() {
    const PRESENT: &str = "LeaseAlreadyPresent";
    const ABSENT: &str = "LeaseNotPresentWithLeaseOperation";
    const MISMATCH: &str = "LeaseIdMismatchWithLeaseOperation";
    const NOT_ACQUIRED: &str = "LeaseIsBreakingAndCannotBeAcquired";
    const NOT_CHANGED: &str = "LeaseIsBreakingAndCannotBeChanged";
    const NOT_RENEWED: &str = "LeaseIsBrokenAndCannotBeRenewed";
    let acquire =
        |proposed| LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed, fresh: FRESH };
    let change = |id, proposed| LeaseAction::Change { id, proposed };
    // available, leased, breaking, broken, expired
    let table = [
        (acquire(None), ["leased X", PRESENT, PRESENT, "leased X", "leased X"]),
        (acquire(Some(A)), ["leased A", "leased A", NOT_ACQUIRED, "leased A", "leased A"]),
        (acquire(Some(B)), ["leased B", PRESENT, PRESENT, "leased B", "leased B"]),
        (LeaseAction::Renew { id: A }, [ABSENT, "leased A", NOT_RENEWED, NOT_RENEWED, "leased A"]),
        (LeaseAction::Renew { id: B }, [ABSENT, MISMATCH, MISMATCH, MISMATCH, MISMATCH]),
        (LeaseAction::Release { id: B }, [ABSENT, MISMATCH, MISMATCH, MISMATCH, MISMATCH]),
        (change(A, B), [ABSENT, "leased B", NOT_CHANGED, ABSENT, ABSENT]),
        (change(B, A), [ABSENT, "leased A", NOT_CHANGED, ABSENT, ABSENT]),
        (change(B, C), [ABSENT, MISMATCH, MISMATCH, ABSENT, ABSENT]),
        (LeaseAction::Release { id: A }, [ABSENT, "available", "available", "available", "available"]),
        (LeaseAction::Break { period: None }, [ABSENT, "breaking", "breaking", "broken", "broken"]),
        (
            LeaseAction::Break { period: Some(BreakPeriod(0)) },
            [ABSENT, "broken", "broken", "broken", "broken"],
        ),
    ];
    for (action, expected) in table {
        for ((state, lease), expected) in states().into_iter().zip(expected) {
            assert_eq!(show(lease.act(action, OF, at(100))), expected, "{action:?} in {state:?}");
        }
    }
}

#[test]
fn every_operation_against_every_state() {
    const MISSING: Option<&str> = Some("LeaseIdMissing");
    const MISMATCH: Option<&str> = Some("LeaseIdMismatchWithBlobOperation");
    const LOST: Option<&str> = Some("LeaseLost");
    const ABSENT: Option<&str> = Some("LeaseNotPresentWithBlobOperation");
    // available, leased, breaking, broken, expired: a write, then a read
    let table = [
        (None, [None, MISSING, MISSING, None, None], [None, None, None, None, None]),
        (Some(A), [ABSENT, None, None, LOST, LOST], [ABSENT, None, None, LOST, LOST]),
        (Some(B), [ABSENT, MISMATCH, MISMATCH, LOST, LOST], [ABSENT, MISMATCH, MISMATCH, LOST, LOST]),
    ];
    for (given, writes, reads) in table {
        for (n, (state, lease)) in states().into_iter().enumerate() {
            let checked = [
                (lease.check_write(given, OF, at(100)), writes[n]),
                (lease.check_read(given, OF, at(100)), reads[n]),
            ];
            for (answer, expected) in checked {
                assert!(answer.as_ref().err().is_none_or(|refusal| refusal.status() == 412));
                assert_eq!(answer.err().map(|refusal| refusal.code()), expected, "{given:?} in {state:?}");
            }
        }
    }
}

#[test]
fn a_container_has_its_own_words() {
    let [_, (_, leased), ..] = states();
    let check = |answer: Result<(), Refusal>, code: &str, message: &str| {
        let refusal = answer.unwrap_err();
        assert_eq!((refusal.code(), refusal.to_string().as_str()), (code, message));
    };
    check(
        leased.check_write(None, Leased::Container, at(100)),
        "LeaseIdMissing",
        "There is currently a lease on the container and no lease ID was specified in the request.",
    );
    check(
        leased.check_read(Some(B), Leased::Container, at(100)),
        "LeaseIdMismatchWithContainerOperation",
        "The lease ID specified did not match the lease ID for the container.",
    );
    check(
        Lease::Available.check_read(Some(B), Leased::Container, at(100)),
        "LeaseNotPresentWithContainerOperation",
        "There is currently no lease on the container.",
    );
    check(
        leased.check_write(Some(A), Leased::Container, at(200)),
        "LeaseLost",
        "A lease ID was specified, but the lease for the container has expired.",
    );
}

#[test]
fn a_break_takes_no_longer_than_the_lease_would_have() {
    let infinite = Lease::Held { id: A, duration: LeaseDuration::Infinite, ends: None };
    let held = |ends: i64| Lease::Held { id: A, duration: LeaseDuration::Seconds(15), ends: Some(at(ends)) };
    let breaking = Lease::Broken { id: A, from: at(120) };
    let check = |lease: Lease, period: Option<u8>, left: u64, until: i64| {
        let action = LeaseAction::Break { period: period.map(BreakPeriod) };
        let outcome = lease.act(action, OF, at(100)).unwrap();
        assert_eq!(outcome.seconds_left, Some(left), "{lease:?} {period:?}");
        assert_eq!(outcome.lease, Lease::Broken { id: A, from: at(until) }, "{lease:?} {period:?}");
    };
    check(infinite, None, 0, 100);
    check(infinite, Some(5), 5, 105);
    check(infinite, Some(60), 60, 160);
    check(held(114), None, 14, 114);
    check(held(114), Some(3), 3, 103);
    check(held(114), Some(60), 14, 114);
    check(breaking, None, 20, 120);
    check(breaking, Some(5), 5, 105);
    check(breaking, Some(60), 20, 120);
    check(Lease::Broken { id: A, from: at(90) }, Some(60), 0, 100);
    check(held(100), Some(60), 0, 100);
    // Rounded down, as the service does.
    let almost = Lease::Held {
        id: A,
        duration: LeaseDuration::Seconds(15),
        ends: DateTime::from_ticks(at(115).ticks() - 1),
    };
    assert_eq!(almost.act(LeaseAction::Break { period: None }, OF, at(100)).unwrap().seconds_left, Some(14));
}

#[test]
fn renewing_restarts_the_clock_and_changing_does_not() {
    let duration = LeaseDuration::Seconds(15);
    let acquire = LeaseAction::Acquire { duration, proposed: Some(A), fresh: FRESH };
    let lease = Lease::Available.act(acquire, OF, at(0)).unwrap().lease;
    assert_eq!(lease, Lease::Held { id: A, duration, ends: Some(at(15)) });
    assert_eq!((lease.state(at(14)), lease.state(at(15))), (LeaseState::Leased, LeaseState::Expired));
    let changed = lease.act(LeaseAction::Change { id: A, proposed: B }, OF, at(10)).unwrap().lease;
    assert_eq!(changed, Lease::Held { id: B, duration, ends: Some(at(15)) });
    let renewed = changed.act(LeaseAction::Renew { id: B }, OF, at(20)).unwrap().lease;
    assert_eq!(renewed, Lease::Held { id: B, duration, ends: Some(at(35)) });
}

#[test]
fn a_write_forgets_a_lease_that_has_ended() {
    for (state, lease) in states() {
        let expected = match state {
            LeaseState::Leased | LeaseState::Breaking => lease,
            LeaseState::Available | LeaseState::Expired | LeaseState::Broken => Lease::Available,
        };
        assert_eq!(lease.after_write(at(100)), expected, "{state:?}");
    }
}

#[test]
fn a_view_says_the_duration_only_while_leased() {
    let views = states().map(|(_, lease)| {
        let LeaseView { status, state, duration } = lease.view(at(100));
        (status, state, duration)
    });
    assert_eq!(
        views,
        [
            ("unlocked", "available", None),
            ("locked", "leased", Some("fixed")),
            ("locked", "breaking", None),
            ("unlocked", "broken", None),
            ("unlocked", "expired", None),
        ]
    );
    let infinite = Lease::Held { id: A, duration: LeaseDuration::Infinite, ends: None };
    assert_eq!(infinite.view(at(100)).duration, Some("infinite"));
}

#[test]
fn durations_and_periods_have_limits() {
    let check = |value: &str, expected: Option<LeaseDuration>| {
        let read = LeaseDuration::of_header(value);
        assert_eq!(read.as_ref().ok(), expected.as_ref(), "{value}");
        if let Err(refusal) = read {
            assert_eq!(refusal.details()[0], ("HeaderName", "x-ms-lease-duration".into()));
        }
    };
    check("-1", Some(LeaseDuration::Infinite));
    check("15", Some(LeaseDuration::Seconds(15)));
    check("60", Some(LeaseDuration::Seconds(60)));
    for refused in ["10", "14", "61", "70", "-10", "0", "", "x", "300"] {
        check(refused, None);
    }
    for (value, expected) in [("0", true), ("60", true), ("61", false), ("-1", false), ("", false)] {
        assert_eq!(BreakPeriod::of_header(value).is_ok(), expected, "{value}");
    }
}
