//! Small histories of queues, each about one thing, with the verdict that a person would give; and many by a simulated
//! queue, which have an order until one of the promises is broken.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use histories::history::Time;
use histories::judge::PLACES_MAX;
use histories::queues::choice::Chooser;
use histories::queues::history::{Handle, QueueAction, QueueOperation, QueueOutcome, Shown, Taken, owed};
use histories::queues::judge::{Verdict, judge};
use histories::queues::timeline;
use histories::random::Random;

const SECOND: Time = 1_000_000_000;

fn at(start: Time, end: Time, action: QueueAction, outcome: QueueOutcome) -> QueueOperation {
    QueueOperation { client: 0, queue: "q".to_owned(), start, end, action, outcome }
}

fn handle(message: u32, receipt: &str) -> Handle {
    Handle { message, id: format!("id-{message}"), receipt: receipt.to_owned() }
}

fn put(start: Time, message: u32, receipt: &str) -> QueueOperation {
    let action = QueueAction::Put { number: message, visibility: 0 };
    at(start, start + 5, action, QueueOutcome::Stored(handle(message, receipt)))
}

fn taken(message: u32, dequeue_count: u32, receipt: &str) -> Taken {
    let shown = Shown { message, text: message, id: format!("id-{message}"), dequeue_count };
    Taken { shown, receipt: receipt.to_owned() }
}

fn get(start: Time, visibility: u32, taken: Vec<Taken>) -> QueueOperation {
    at(start, start + 5, QueueAction::Get { count: 32, visibility }, QueueOutcome::Taken(taken))
}

fn lost_get(start: Time) -> QueueOperation {
    at(start, start + 5, QueueAction::Get { count: 1, visibility: 1 }, unknown())
}

fn peek(start: Time, message: u32, dequeue_count: u32) -> QueueOperation {
    let shown = taken(message, dequeue_count, "").shown;
    at(start, start + 5, QueueAction::Peek { count: 1 }, QueueOutcome::Peeked(vec![shown]))
}

fn update(start: Time, with: &str, visibility: u32, outcome: QueueOutcome) -> QueueOperation {
    let action = QueueAction::Update { handle: handle(1, with), visibility, text: None };
    at(start, start + 5, action, outcome)
}

fn delete(start: Time, with: &str, outcome: QueueOutcome) -> QueueOperation {
    at(start, start + 5, QueueAction::Delete(handle(1, with)), outcome)
}

fn drained(start: Time) -> QueueOperation {
    at(start, start, QueueAction::Drain, QueueOutcome::Drained)
}

fn updated(receipt: &str) -> QueueOutcome {
    QueueOutcome::Updated(receipt.to_owned())
}

fn unknown() -> QueueOutcome {
    QueueOutcome::Unknown { until: None }
}

fn possible(what: &str, history: &[QueueOperation]) {
    let verdict = judge(history, PLACES_MAX);
    assert!(matches!(verdict, Verdict::Possible { .. }), "{what}: {verdict:?}");
}

fn impossible(what: &str, history: &[QueueOperation], why: &str) {
    match judge(history, PLACES_MAX) {
        Verdict::Violation(violation) => {
            let shown = timeline::render(history, &violation);
            assert!(violation.why.contains(why), "{what}: {shown}");
        }
        verdict => panic!("{what}: {verdict:?}"),
    }
}

use QueueOutcome::{Deleted, NotFound};

#[test]
fn nothing_acknowledged_is_lost() {
    let end = 100 * SECOND;
    possible("it was deleted", &[put(0, 1, "a"), delete(10, "a", Deleted), drained(end)]);
    impossible("nobody deleted it", &[put(0, 1, "a"), drained(end)], "was lost");
    let delivered = [put(0, 1, "a"), get(10, 1, vec![taken(1, 1, "b")]), drained(end)];
    impossible("delivered, and left to come back", &delivered, "was lost");
    let refused =
        [put(0, 1, "a"), get(10, 1, vec![taken(1, 1, "b")]), delete(20, "a", NotFound), drained(end)];
    impossible("a Delete that was refused", &refused, "was lost");
    possible("a Delete without an answer", &[put(0, 1, "a"), delete(10, "a", unknown()), drained(end)]);
    let at_last = QueueAction::Put { number: 1, visibility: 0 };
    possible("a Put without an answer", &[at(0, 5, at_last.clone(), unknown()), drained(end)]);
    let seen = [at(0, 5, at_last, unknown()), get(10, 1, vec![taken(1, 1, "b")]), drained(end)];
    impossible("a Put without an answer that was done", &seen, "was lost");
}

#[test]
fn a_message_has_one_consumer_while_it_is_hidden() {
    let twice = |second: Time, visibility| {
        [put(0, 1, "a"), get(10, visibility, vec![taken(1, 1, "b")]), get(second, 1, vec![taken(1, 2, "c")])]
    };
    possible("after its time", &twice(SECOND + 20, 1));
    possible("while its time ends", &twice(SECOND + 6, 1));
    impossible("before its time", &twice(SECOND - 20, 1), "shown while it was hidden");
    impossible("at the same time", &twice(12, 1), "shown while it was hidden");
    let same = [put(0, 1, "a"), get(10, 1, vec![taken(1, 1, "b")]), get(11, 1, vec![taken(1, 1, "c")])];
    impossible("to two at once", &same, "shown while it was hidden");
    // The server looks at its clock when it begins. A Peek a quarter of a second later still shows the message.
    let slow = |second| {
        let outcome = QueueOutcome::Taken(vec![taken(1, 1, "b")]);
        let first = at(10, SECOND / 2, QueueAction::Get { count: 1, visibility: 1 }, outcome);
        [put(0, 1, "a"), first, peek(SECOND / 4, 1, 0), get(second, 1, vec![taken(1, 2, "c")])]
    };
    possible("a second after a slow Get began", &slow(SECOND + 20));
    impossible("less than a second after a slow Get began", &slow(SECOND - 20), "shown while it was hidden");
    let peeked = |when| [put(0, 1, "a"), get(10, 1, vec![taken(1, 1, "b")]), peek(when, 1, 1)];
    impossible("peeked before its time", &peeked(50), "shown while it was hidden");
    possible("peeked after its time", &peeked(2 * SECOND));
    let renewed = |when| {
        [
            put(0, 1, "a"),
            get(10, 1, vec![taken(1, 1, "b")]),
            update(SECOND / 2, "b", 1, updated("c")),
            get(when, 1, vec![taken(1, 2, "d")]),
        ]
    };
    impossible("before its renewed time", &renewed(SECOND + 20), "shown while it was hidden");
    possible("after its renewed time", &renewed(2 * SECOND));
    let freed = [
        put(0, 1, "a"),
        get(10, 2, vec![taken(1, 1, "b")]),
        update(20, "b", 0, updated("c")),
        get(30, 1, vec![taken(1, 2, "d")]),
    ];
    possible("given back at once", &freed);
    let delayed = QueueAction::Put { number: 1, visibility: 2 };
    let early =
        [at(0, 5, delayed, QueueOutcome::Stored(handle(1, "a"))), get(SECOND, 1, vec![taken(1, 1, "b")])];
    impossible("before a Put said", &early, "shown while it was hidden");
}

#[test]
fn a_deleted_message_does_not_come_again() {
    let again = |second: QueueOperation| {
        [put(0, 1, "a"), get(10, 1, vec![taken(1, 1, "b")]), delete(20, "b", Deleted), second]
    };
    let next = get(5 * SECOND, 1, vec![taken(1, 2, "c")]);
    impossible("delivered", &again(next.clone()), "after its Delete was acknowledged");
    impossible("shown", &again(peek(5 * SECOND, 1, 1)), "after its Delete was acknowledged");
    impossible("updated", &again(update(30, "b", 0, updated("c"))), "after its Delete was acknowledged");
    impossible("deleted twice", &again(delete(30, "b", Deleted)), "after its Delete was acknowledged");
    possible("refused", &again(delete(30, "b", NotFound)));
    let mut unanswered = again(next);
    unanswered[2].outcome = unknown();
    possible("a Delete without an answer, which is late", &unanswered);
    unanswered[2].outcome = QueueOutcome::Unknown { until: Some(2 * SECOND) };
    possible("a Delete that was never done", &unanswered);
}

#[test]
fn a_receipt_is_good_until_the_next_change() {
    let replaced = |last: QueueOperation| {
        [put(0, 1, "a"), get(10, 1, vec![taken(1, 1, "b")]), get(2 * SECOND, 1, vec![taken(1, 2, "c")]), last]
    };
    let later = 2 * SECOND + 50;
    impossible("a Delete", &replaced(delete(later, "b", Deleted)), "receipt that was stale");
    impossible("an Update", &replaced(update(later, "b", 1, updated("d"))), "receipt that was stale");
    impossible("with that of the Put", &replaced(delete(later, "a", Deleted)), "receipt that was stale");
    possible("refused", &replaced(delete(later, "b", NotFound)));
    possible("the latest", &replaced(delete(later, "c", Deleted)));
    impossible("the latest, refused", &replaced(delete(later, "c", NotFound)), "not found by its latest");
    let late =
        |outcome| [put(0, 1, "a"), get(10, 1, vec![taken(1, 1, "b")]), delete(9 * SECOND, "b", outcome)];
    possible("its time is over, and nobody else has it", &late(Deleted));
    impossible("the same, refused", &late(NotFound), "not found by its latest");
    let by_nobody = [
        put(0, 1, "a"),
        get(10, 1, vec![taken(1, 1, "b")]),
        lost_get(2 * SECOND),
        delete(3 * SECOND, "b", NotFound),
    ];
    possible("a Get without an answer has it", &by_nobody);
    let mut hidden = by_nobody;
    (hidden[2].start, hidden[2].end) = (20, 25);
    hidden[2].outcome = QueueOutcome::Unknown { until: Some(25) };
    impossible("it was hidden from that Get", &hidden, "hidden");
    let one_of_two = |outcome| [put(0, 1, "a"), delete(10, "a", Deleted), update(12, "a", 0, outcome)];
    possible("of two at once, one", &one_of_two(NotFound));
    impossible("of two at once, both", &one_of_two(updated("b")), "");
    let twice = [put(0, 1, "a"), get(10, 1, vec![taken(1, 1, "a")])];
    impossible("the same receipt", &twice, "the same receipt twice");
}

#[test]
fn a_dequeue_count_is_the_number_of_deliveries() {
    let counted = |first, second| {
        [
            put(0, 1, "a"),
            get(10, 1, vec![taken(1, first, "b")]),
            get(4 * SECOND, 1, vec![taken(1, second, "c")]),
        ]
    };
    possible("one after the other", &counted(1, 2));
    impossible("from 0", &counted(0, 1), "wrong dequeue count");
    impossible("one is missing", &counted(1, 3), "wrong dequeue count");
    impossible("the same again", &counted(1, 1), "wrong dequeue count");
    let [put, first, second] = counted(1, 3);
    possible("one was not heard of", &[put.clone(), first.clone(), lost_get(SECOND + 100), second.clone()]);
    impossible("it was too late", &[put.clone(), first, second, lost_get(5 * SECOND)], "wrong dequeue count");
    impossible("a Peek counts nothing", &[put.clone(), peek(10, 1, 1)], "wrong dequeue count");
    possible("a Peek before any Get", &[put.clone(), peek(10, 1, 0)]);
    let kept = [
        put,
        get(10, 1, vec![taken(1, 1, "b")]),
        update(20, "b", 0, updated("c")),
        get(30, 1, vec![taken(1, 1, "d")]),
    ];
    impossible("an Update does not reset it", &kept, "wrong dequeue count");
}

#[test]
fn a_message_is_stored_once_with_its_own_text() {
    impossible("nobody put it", &[get(0, 1, vec![taken(1, 1, "a")])], "put by nobody");
    let mut copy = taken(1, 1, "c");
    copy.shown.id = "other".to_owned();
    impossible("twice", &[put(0, 1, "a"), get(10, 1, vec![copy])], "stored twice");
    let mut foreign = taken(2, 1, "c");
    foreign.shown.id = "id-1".to_owned();
    let swapped = [put(0, 1, "a"), put(0, 2, "b"), get(10, 1, vec![foreign])];
    impossible("with another's text", &swapped, "id of another");
    let rewritten = |text| {
        let mut taken = taken(1, 1, "c");
        taken.shown.text = text;
        let action = QueueAction::Update { handle: handle(1, "a"), visibility: 0, text: Some(7) };
        [put(0, 1, "a"), at(10, 15, action, updated("b")), get(20, 1, vec![taken])]
    };
    possible("the text of the Update", &rewritten(7));
    impossible("the text of before", &rewritten(1), "text that is not its own");
}

#[test]
fn an_explanation_shows_what_contradicts_and_nothing_else() {
    let history = [
        put(0, 1, "a"),
        put(1, 2, "x"),
        peek(8, 1, 0),
        get(20, 1, vec![taken(1, 1, "b"), taken(2, 1, "y")]),
        get(40, 1, vec![taken(1, 2, "c")]),
        delete(2 * SECOND, "c", Deleted),
    ];
    let Verdict::Violation(violation) = judge(&history, PLACES_MAX) else { panic!("not found") };
    // The first Get may be left out: then the count is wrong.
    assert_eq!((violation.message, violation.core.as_slice()), (1, [4].as_slice()));
    assert_eq!(violation.context, [0, 2, 3, 5]);
    let shown = timeline::render(&history, &violation);
    assert!(shown.starts_with("queue q: message #1 was shown while it was hidden\n"), "{shown}");
    assert!(shown.contains("get 32, hidden for 1 s -> #1 text 1 count 1 r2\n"), "{shown}");
    assert_eq!(shown.lines().filter(|line| line.starts_with('!')).count(), 1, "{shown}");
}

#[test]
fn what_is_owed_was_stored_and_nobody_has_tried_to_delete_it() {
    let at_last = QueueAction::Put { number: 3, visibility: 0 };
    let mut history = vec![put(0, 1, "a"), put(1, 2, "b"), at(2, 7, at_last, unknown())];
    assert_eq!(owed(history.iter()), [1, 2]);
    history.push(get(10, 1, vec![taken(3, 1, "c")]));
    history.push(delete(20, "a", NotFound));
    assert_eq!(owed(history.iter()), [1, 2, 3]);
    history.push(delete(30, "a", unknown()));
    assert_eq!(owed(history.iter()), [2, 3]);
}

/// A queue that does one operation after the other, each at one moment of its interval. It shares no code with the judge.
#[derive(Default)]
struct Simulator {
    messages: BTreeMap<u32, SimulatedMessage>,
    receipts: u32,
}

struct SimulatedMessage {
    text: u32,
    count: u32,
    receipt: String,
    visible: Time,
    is_deleted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    None,
    /// A Delete is acknowledged and not done.
    NotDeleted,
    /// A Put is acknowledged and not done.
    NotPut,
    /// A Get hides nothing.
    NotHidden,
    /// A Get does not count.
    NotCounted,
    /// Receipts are not looked at.
    AnyReceipt,
    /// An Update does not change the text.
    OldText,
}

impl Simulator {
    fn receipt(&mut self) -> String {
        self.receipts += 1;
        format!("r{}", self.receipts)
    }

    fn shown(number: u32, message: &SimulatedMessage) -> Shown {
        Shown {
            message: number,
            text: message.text,
            id: format!("id-{number}"),
            dequeue_count: message.count,
        }
    }

    fn perform(&mut self, now: Time, action: &QueueAction, lie: Lie) -> QueueOutcome {
        let hidden = |visibility: u32| now + Time::from(visibility) * SECOND;
        let receipt = self.receipt();
        let visible: Vec<u32> = self
            .messages
            .iter()
            .filter(|(_, message)| !message.is_deleted && message.visible <= now)
            .map(|(number, _)| *number)
            .collect();
        match action {
            QueueAction::Put { number, visibility } => {
                let (visible, is_deleted) = (hidden(*visibility), lie == Lie::NotPut);
                let message = SimulatedMessage {
                    text: *number,
                    count: 0,
                    receipt: receipt.clone(),
                    visible,
                    is_deleted,
                };
                self.messages.insert(*number, message);
                QueueOutcome::Stored(handle(*number, &receipt))
            }
            QueueAction::Get { count, visibility } => {
                let mut taken = Vec::new();
                for number in visible.into_iter().take(*count as usize) {
                    let receipt = self.receipt();
                    let Some(message) = self.messages.get_mut(&number) else { continue };
                    message.count += u32::from(lie != Lie::NotCounted);
                    message.receipt.clone_from(&receipt);
                    if lie != Lie::NotHidden {
                        message.visible = hidden(*visibility);
                    }
                    taken.push(Taken { shown: Self::shown(number, message), receipt });
                }
                QueueOutcome::Taken(taken)
            }
            QueueAction::Peek { count } => {
                let shown = visible.iter().take(*count as usize);
                QueueOutcome::Peeked(
                    shown.map(|number| Self::shown(*number, &self.messages[number])).collect(),
                )
            }
            QueueAction::Update { handle, visibility, text } => match self.found(handle, lie) {
                None => NotFound,
                Some(message) => {
                    message.receipt.clone_from(&receipt);
                    message.visible = hidden(*visibility);
                    message.text = text.filter(|_| lie != Lie::OldText).unwrap_or(message.text);
                    QueueOutcome::Updated(receipt)
                }
            },
            QueueAction::Delete(handle) => match self.found(handle, lie) {
                None => NotFound,
                Some(message) => {
                    message.is_deleted = lie != Lie::NotDeleted;
                    Deleted
                }
            },
            QueueAction::Drain => QueueOutcome::Drained,
        }
    }

    fn found(&mut self, handle: &Handle, lie: Lie) -> Option<&mut SimulatedMessage> {
        let message = self.messages.get_mut(&handle.message).filter(|message| !message.is_deleted)?;
        (message.receipt == handle.receipt || lie == Lie::AnyReceipt).then_some(message)
    }
}

/// A history of clients that work side by side, of whose requests so many in a hundred get no answer; then the queue is
/// emptied. One request in `lies` is answered with a lie.
fn simulate(seed: u64, losses: usize, lie: Lie) -> Vec<QueueOperation> {
    const CLIENTS: u32 = 5;
    const OPERATIONS: usize = 60;
    let (mut random, numbers) = (Random::new(seed), Arc::new(AtomicU32::new(0)));
    let mut simulator = Simulator::default();
    let mut choosers: Vec<Chooser> = (0..CLIENTS)
        .map(|client| Chooser::new(Random::numbered(seed, client.into()), numbers.clone()))
        .collect();
    // When each client is free again.
    let mut free: BinaryHeap<Reverse<(Time, u32, usize)>> =
        (0..CLIENTS).map(|client| Reverse((Time::from(client), client, OPERATIONS))).collect();
    let mut history = Vec::new();
    // Each takes effect at the moment it is taken from the heap, somewhere between its start and its end.
    while let Some(Reverse((now, client, left))) = free.pop() {
        let start = now - random.below(1000).min(now as usize) as Time;
        let end = now + random.below(20_000_000) as Time;
        let action = choosers[client as usize].choose("q");
        let told = if random.chance(40) { lie } else { Lie::None };
        let is_lost = random.chance(losses);
        let is_done = !is_lost || random.chance(50);
        let mut outcome = unknown();
        if is_done {
            outcome = simulator.perform(now, &action, told);
        }
        if is_lost {
            let until = random.chance(50).then_some(end);
            outcome = QueueOutcome::Unknown { until };
        }
        choosers[client as usize].learn("q", &action, &outcome);
        history.push(QueueOperation { client, queue: "q".to_owned(), start, end, action, outcome });
        if left > 1 {
            let pause = 1_000_000 * choosers[client as usize].pause();
            free.push(Reverse((end + 1000 + pause, client, left - 1)));
        }
    }
    let mut now = history.iter().map(|operation| operation.end).max().unwrap_or_default() + 3 * SECOND;
    loop {
        let action = QueueAction::Get { count: 32, visibility: 2 };
        let outcome = simulator.perform(now, &action, Lie::None);
        let QueueOutcome::Taken(taken) = &outcome else { unreachable!("a Get takes") };
        let taken = taken.clone();
        history.push(at(now, now + 5, action, outcome));
        now += 10;
        if taken.is_empty() {
            break;
        }
        for taken in taken {
            let action = QueueAction::Delete(taken.handle());
            let outcome = simulator.perform(now, &action, Lie::None);
            history.push(at(now, now + 5, action, outcome));
            now += 10;
        }
    }
    history.push(drained(now));
    history.sort_by_key(|operation| operation.start);
    history
}

#[test]
fn a_queue_that_keeps_its_promises_is_possible() {
    let (mut redelivered, mut refused, mut most) = (0, 0, 0);
    for seed in 0..120 {
        let history = simulate(seed, [0, 10, 30][seed as usize % 3], Lie::None);
        match judge(&history, PLACES_MAX) {
            Verdict::Possible { places, .. } => most = most.max(places),
            Verdict::Violation(violation) => {
                panic!("seed {seed}: {}", timeline::render(&history, &violation))
            }
            Verdict::Undecided(message) => panic!("seed {seed}: message {message} is undecided"),
        }
        for operation in &history {
            match &operation.outcome {
                QueueOutcome::Taken(taken) => {
                    redelivered += taken.iter().filter(|taken| taken.shown.dequeue_count > 1).count();
                }
                NotFound => refused += 1,
                _ => {}
            }
        }
    }
    println!("{redelivered} deliveries again, {refused} receipts refused, at most {most} places");
    assert!(redelivered > 1000 && refused > 1000, "{redelivered} {refused}: nothing was tested");
}

#[test]
fn a_queue_that_breaks_a_promise_is_caught() {
    for (lie, why) in [
        (Lie::NotDeleted, "after its Delete was acknowledged"),
        (Lie::NotPut, "lost"),
        (Lie::NotHidden, "while it was hidden"),
        (Lie::NotCounted, "dequeue count"),
        (Lie::AnyReceipt, "receipt that was stale"),
        (Lie::OldText, "text that is not its own"),
    ] {
        for losses in [0, 10] {
            let (mut caught, mut undecided, mut named) = (0, 0, 0);
            for seed in 0..20 {
                match judge(&simulate(seed, losses, lie), PLACES_MAX) {
                    Verdict::Violation(violation) => {
                        caught += 1;
                        named += usize::from(violation.why.contains(why));
                    }
                    Verdict::Undecided(_) => undecided += 1,
                    Verdict::Possible { .. } => {}
                }
            }
            println!(
                "{lie:?}, {losses} % lost: {caught} of 20 caught, {named} by name, {undecided} undecided"
            );
            assert!(caught >= 18, "{lie:?} with {losses} % lost: {caught} caught, {undecided} undecided");
            assert!(named > 0, "{lie:?} was never called by its name");
        }
    }
}
