//! The outbox whose messages are in a queue of the Queue service: what fails, what is late, what is left.

use std::sync::Arc;
use std::time::Duration;

use partita_client::{Entity, Match, Queue, QueueService, Table, Transaction, row_key};
use partita_client_patterns::queued_outbox::QueuedOutbox;
use partita_client_patterns::steps::OutboxStep;

use crate::place::{Place, with_place};

const SECOND: Duration = Duration::from_secs(1);
/// A worker that never ends has failed.
const PATIENCE: Duration = Duration::from_secs(120);

struct Scene {
    place: Arc<Place>,
    current: Table,
    former: Table,
    queue: Queue,
    poison: Queue,
}

impl Scene {
    async fn new(place: Arc<Place>) -> Self {
        let service = place.service();
        let [current, former] =
            ["Current", "Former"].map(|name| service.table(&format!("{}{name}", place.name)).unwrap());
        let queues = QueueService::from_connection_string(&place.connection_string).unwrap();
        let [queue, poison] = ["steps", "poison"]
            .map(|name| queues.queue(&format!("{}-{name}", place.name.to_lowercase())).unwrap());
        current.create().await.unwrap();
        queue.create_if_missing().await.unwrap();
        poison.create_if_missing().await.unwrap();
        Self { place, current, former, queue, poison }
    }

    fn outbox(&self) -> QueuedOutbox {
        // Longer than a get takes: `heal` ends when no message is visible.
        let pause = SECOND / 2;
        QueuedOutbox::new(&self.place.service(), self.current.name(), &self.queue)
            .unwrap()
            .visibility(SECOND)
            .pauses(pause, pause)
            .idle_pause(Duration::from_millis(20))
    }

    /// Says in the first table that somebody leaves, then moves the entity.
    fn leave(&self, row: &str) -> (Transaction, [OutboxStep; 2]) {
        let employee = Entity::new("Sales", row).with("Leaving", true);
        let mut transaction = Transaction::new();
        transaction.upsert_merge(&employee).unwrap();
        let steps = [
            OutboxStep::insert(self.former.name(), &employee).unwrap(),
            OutboxStep::delete(self.current.name(), "Sales", row).unwrap(),
        ];
        (transaction, steps)
    }

    async fn rows(&self, table: &Table) -> Vec<String> {
        let rows = table.query().filter(row_key().lt("~")).all::<Entity>().await.unwrap();
        rows.into_iter().map(|row| row.into_inner().row_key).collect()
    }

    async fn marks(&self) -> usize {
        self.current.query().filter(row_key().starts_with("~queued~")).all::<Entity>().await.unwrap().len()
    }

    async fn count(&self, queue: &Queue) -> u64 {
        queue.properties().await.unwrap().approximate_count
    }

    async fn end(self) {
        self.queue.drop().await.unwrap();
        self.poison.drop().await.unwrap();
    }
}

async fn with_scene<F: Future<Output = ()>>(test: impl FnOnce(Arc<Scene>) -> F) {
    with_place(|place| async {
        let scene = Arc::new(Scene::new(place).await);
        tokio::time::timeout(PATIENCE, test(scene.clone())).await.expect("the test ends");
        if let Some(scene) = Arc::into_inner(scene) {
            scene.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_commit_does_everything_and_leaves_nothing() {
    with_scene(|scene| async move {
        scene.former.create().await.unwrap();
        let (transaction, steps) = scene.leave("a");
        let committed = scene.outbox().commit(transaction, &steps).await.unwrap();
        assert!(committed.settled && committed.etags.len() == 1, "{committed:?}");
        assert_eq!(
            (scene.rows(&scene.current).await, scene.rows(&scene.former).await),
            (vec![], vec!["a".to_owned()])
        );
        assert_eq!((scene.marks().await, scene.count(&scene.queue).await), (0, 0));
        assert_eq!(scene.outbox().run_until_empty().await.unwrap().handled, 0);
    })
    .await;
}

#[tokio::test]
async fn a_change_that_is_refused_has_no_steps() {
    with_scene(|scene| async move {
        scene.former.create().await.unwrap();
        let (mut transaction, steps) = scene.leave("a");
        transaction.delete("Sales", "nobody", Match::Any);
        let refused = scene.outbox().commit(transaction, &steps).await.unwrap_err();
        assert_eq!(refused.status(), Some(404), "{refused}");
        assert_eq!((scene.count(&scene.queue).await, scene.marks().await), (0, 0));
        assert!(scene.rows(&scene.former).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn failed_steps_are_repeated_until_they_succeed_and_a_late_repetition_does_nothing() {
    with_scene(|scene| async move {
        // The other table does not exist yet.
        let (transaction, steps) = scene.leave("a");
        let committed = scene.outbox().commit(transaction, &steps).await.unwrap();
        assert!(!committed.settled, "it is left to a worker");
        assert_eq!((scene.marks().await, scene.count(&scene.queue).await), (1, 1));
        assert_eq!(scene.outbox().collect_marks(Duration::ZERO).await.unwrap(), 0, "it is needed");
        tokio::time::sleep(SECOND + SECOND / 5).await;
        assert_eq!(scene.outbox().heal().await.unwrap().handled, 0);
        scene.former.create().await.unwrap();
        tokio::time::sleep(SECOND + SECOND / 5).await;
        // Another worker also has the message, and goes on much later.
        let late = scene.queue.peek(1).await.unwrap().remove(0).text;
        assert_eq!(scene.outbox().run_until_empty().await.unwrap().handled, 1);
        assert_eq!(scene.rows(&scene.former).await, ["a"]);
        // Somebody comes back.
        scene.former.delete("Sales", "a", Match::Any).await.unwrap();
        scene.current.insert(&Entity::new("Sales", "a")).await.unwrap();
        scene.queue.put(&late).await.unwrap();
        scene.outbox().run_until_empty().await.unwrap();
        assert_eq!(
            (scene.rows(&scene.current).await, scene.rows(&scene.former).await),
            (vec!["a".to_owned()], vec![])
        );
        assert_eq!(scene.marks().await, 1, "the mark of what was late");
        assert_eq!(scene.outbox().collect_marks(Duration::ZERO).await.unwrap(), 1);
        assert_eq!(scene.marks().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_message_is_hidden_from_workers_while_its_process_may_work() {
    with_scene(|scene| async move {
        // The other table does not exist, so the message stays.
        let (transaction, steps) = scene.leave("a");
        let outbox = scene.outbox().visibility(2 * PATIENCE);
        assert!(!outbox.commit(transaction, &steps).await.unwrap().settled);
        assert_eq!(scene.count(&scene.queue).await, 1);
        assert!(scene.queue.peek(1).await.unwrap().is_empty(), "a worker would make the steps as well");
    })
    .await;
}

#[tokio::test]
async fn a_message_whose_change_was_never_made_is_cancelled_for_good() {
    with_scene(|scene| async move {
        scene.former.create().await.unwrap();
        // A process that dies after its message was put: here the message is put by hand.
        let text = format!(
            "{{\"id\":\"7\",\"table\":{:?},\"partition\":\"Sales\",\"steps\":[{{\"table\":{:?},\"step\":\"upsert\",\"entity\":{{\"PartitionKey\":\"Sales\",\"RowKey\":\"a\"}}}}]}}",
            scene.current.name(),
            scene.former.name()
        );
        scene.queue.put(&text).await.unwrap();
        assert_eq!(scene.outbox().run_until_empty().await.unwrap().handled, 1);
        assert!(scene.rows(&scene.former).await.is_empty());
        // It was only suspended, and now wants to make its change.
        let mut late = Transaction::new();
        late.insert(&Entity::new("Sales", "a")).unwrap();
        late.insert(&Entity::new("Sales", "~queued~7").with("Cancelled", false)).unwrap();
        assert_eq!(scene.current.submit(late).await.unwrap_err().status(), Some(409));
        assert!(scene.rows(&scene.current).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn steps_that_keep_failing_are_set_aside_and_can_be_tried_again() {
    with_scene(|scene| async move {
        let (transaction, steps) = scene.leave("a");
        let outbox = scene.outbox().poison(&scene.poison, 3);
        assert!(!outbox.commit(transaction, &steps).await.unwrap().settled);
        let counts = outbox.run_until_empty().await.unwrap();
        assert_eq!((counts.failed, counts.poisoned, counts.handled), (2, 1, 0));
        let poisoned = scene.poison.peek(32).await.unwrap();
        assert_eq!(poisoned.len(), 1);
        scene.former.create().await.unwrap();
        scene.queue.put(&poisoned[0].text).await.unwrap();
        assert_eq!(outbox.run_until_empty().await.unwrap().handled, 1);
        assert_eq!(scene.rows(&scene.former).await, ["a"]);
        scene.queue.put("not of an outbox").await.unwrap();
        assert_eq!(outbox.run_until_empty().await.unwrap().poisoned, 1);
    })
    .await;
}

#[tokio::test]
async fn a_change_can_be_left_to_a_worker_as_a_whole() {
    with_scene(|scene| async move {
        scene.former.create().await.unwrap();
        scene.current.insert(&Entity::new("Sales", "a")).await.unwrap();
        let (_, steps) = scene.leave("a");
        scene.outbox().send(&steps).await.unwrap();
        assert_eq!(scene.rows(&scene.current).await, ["a"], "nothing is made yet");
        assert_eq!(scene.outbox().run_until_empty().await.unwrap().handled, 1);
        assert_eq!(
            (scene.rows(&scene.current).await, scene.rows(&scene.former).await),
            (vec![], vec!["a".to_owned()])
        );
        assert_eq!(scene.marks().await, 0);
    })
    .await;
}

#[tokio::test]
async fn tables_can_share_a_queue() {
    with_scene(|scene| async move {
        let (transaction, steps) = scene.leave("a");
        assert!(!scene.outbox().commit(transaction, &steps).await.unwrap().settled);
        scene.former.create().await.unwrap();
        let pause = Duration::from_millis(20);
        let other = QueuedOutbox::new(&scene.place.service(), scene.former.name(), &scene.queue).unwrap();
        other.visibility(SECOND).idle_pause(pause).run_until_empty().await.unwrap();
        assert_eq!(scene.rows(&scene.former).await, ["a"]);
        assert_eq!(scene.marks().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_worker_runs_until_it_is_told_to_stop() {
    with_scene(|scene| async move {
        let (transaction, steps) = scene.leave("a");
        assert!(!scene.outbox().commit(transaction, &steps).await.unwrap().settled);
        scene.former.create().await.unwrap();
        let healed = async {
            while scene.count(&scene.queue).await > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        assert_eq!(scene.outbox().run(healed).await.handled, 1);
        assert_eq!(scene.rows(&scene.former).await, ["a"]);
    })
    .await;
}
