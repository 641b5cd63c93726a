//! Eventually consistent transactions with a queue: a program that is killed again and again moves employees from one table to
//! another, and a worker that reads the queue finishes what it began.
//!
//! The program is this one, started as `patterns clerk`.

use std::collections::BTreeSet;
use std::time::Duration;

use partita_client::{Entity, Table, Transaction, row_key};
use partita_client_patterns::queued_outbox::QueuedOutbox;
use partita_client_patterns::steps::OutboxStep;

use crate::killed::until_killed;
use crate::stage::{Failure, Outcome, Stage, fill};

const EMPLOYEES: usize = 400;
/// Kills in the middle of a move, after which the program stops. Other kills leave nothing to repair.
const HITS: u64 = 3;
const KILLS_MAX: u32 = 40;
const DEPARTMENT: &str = "Sales";

fn row(number: usize) -> String {
    format!("{number:06}")
}

async fn outbox(stage: &Stage) -> Outcome<QueuedOutbox> {
    let queue = stage.queue("moves").await?;
    let outbox = QueuedOutbox::new(stage.service(), &stage.name("Current"), &queue)?;
    // A real one is longer than any pause of a program. Here it is short, because the repair has to wait for it.
    Ok(outbox.visibility(Duration::from_secs(1)).idle_pause(Duration::from_millis(100)))
}

/// The program that is killed. It moves all employees from `first` on, and prints those that it has moved.
pub async fn clerk(stage: &Stage, first: usize) -> Outcome {
    let outbox = outbox(stage).await?;
    for number in first..EMPLOYEES {
        let employee = Entity::new(DEPARTMENT, row(number)).with("Number", row(number)).with("Leaving", true);
        let mut transaction = Transaction::new();
        transaction.upsert_merge(&employee)?;
        // In this order an employee is never in neither table.
        let steps = [
            OutboxStep::insert(stage.name("Former"), &employee)?,
            OutboxStep::delete(stage.name("Current"), DEPARTMENT, row(number))?,
        ];
        outbox.commit(transaction, &steps).await?;
        println!("{number}");
    }
    Ok(())
}

pub async fn run(stage: &Stage) -> Outcome {
    let (current, former) = (stage.table("Current").await?, stage.table("Former").await?);
    fill(
        &current,
        (0..EMPLOYEES).map(|number| Entity::new(DEPARTMENT, row(number)).with("Number", row(number))),
    )
    .await?;
    let outbox = outbox(stage).await?;
    let (mut moved, mut kills, mut first, mut begun) = (Vec::new(), 0, 0, 0);
    while begun < HITS && kills < KILLS_MAX {
        let told = until_killed(stage, "clerk", first, 3).await?;
        kills += 1;
        // The next move may have begun. The next program does not touch it.
        first = told.last().map_or(first, |last| last + 1) + 1;
        moved.extend(told);
        begun = outbox.queue().properties().await?.approximate_count;
    }
    stage.say(&format!(
        "{} moves acknowledged, {kills} kills, {begun} messages left in the queue",
        moved.len()
    ));
    stage.holds("a kill in the middle", begun > 0)?;

    let (counts, _) = stage.timed("a worker finishes what was begun", outbox.run_until_empty()).await?;
    stage.holds("the worker got what was left", counts.handled >= begun)?;
    stage.same("changes that still wait", outbox.queue().properties().await?.approximate_count, 0)?;
    // From `~` on, the rows belong to the outbox.
    let rows = async |table: &Table| -> Outcome<Vec<Entity>> {
        let all = table.query().filter(row_key().lt("~")).all::<Entity>().await?;
        Ok(all.into_iter().map(|stored| stored.into_inner()).collect())
    };
    let (current, former) = (rows(&current).await?, rows(&former).await?);
    let nobody: Vec<String> = Vec::new();
    let leaving = current.iter().filter(|row| row.get("Leaving").is_some()).map(|row| row.row_key.clone());
    stage.same("who leaves and is still there", leaving.collect(), nobody.clone())?;
    let names = |rows: &[Entity]| rows.iter().map(|row| row.row_key.clone()).collect::<BTreeSet<_>>();
    let (current, former) = (names(&current), names(&former));
    stage.same("who is in both tables", current.intersection(&former).cloned().collect(), nobody.clone())?;
    let nowhere = (0..EMPLOYEES).map(row).filter(|row| !current.contains(row) && !former.contains(row));
    stage.same("who is in neither", nowhere.collect(), nobody.clone())?;
    let lost = moved.iter().map(|number| row(*number)).filter(|row| !former.contains(row));
    stage.same("whose move was acknowledged and lost", lost.collect(), nobody)?;
    match moved.is_empty() {
        true => Err(Failure::Unexpected("nobody was moved".to_owned())),
        false => Ok(()),
    }
}
