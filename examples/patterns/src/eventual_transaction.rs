//! Eventually consistent transactions: a program that is killed again and again moves employees from one table to
//! another.
//!
//! The program is this one, started as `patterns archivist`.

use std::collections::BTreeSet;
use std::time::Duration;

use partita_client::{Entity, Match, Table, row_key};
use partita_client_patterns::archive::{Archive, EntityLocation};
use partita_client_patterns::outbox::Outbox;

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

fn archive(stage: &Stage) -> Outcome<Archive> {
    // A real lease is longer than any pause of a program. Here it is short, because the repair has to wait for it.
    let outbox = Outbox::new(stage.service(), &stage.name("Current"))?.lease_time(Duration::from_millis(300));
    Ok(Archive::with_outbox(outbox, &stage.name("Former"))?)
}

/// The program that is killed. It moves all employees from `first` on, and prints those that it has moved.
pub async fn archivist(stage: &Stage, first: usize) -> Outcome {
    let archive = archive(stage)?;
    for number in first..EMPLOYEES {
        archive.store(DEPARTMENT, &row(number), Match::Any).await?;
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
    let archive = archive(stage)?;
    let (mut moved, mut kills, mut begun, mut first) = (Vec::new(), 0, 0, 0);
    while begun < HITS && kills < KILLS_MAX {
        let told = until_killed(stage, "archivist", first, 3).await?;
        kills += 1;
        // The next move may have begun. The next program does not touch it.
        first = told.last().map_or(first, |last| last + 1);
        moved.extend(told);
        match archive.find::<Entity>(DEPARTMENT, &row(first)).await? {
            Some(EntityLocation::Moving(employee)) => {
                stage.same("who is on the way is seen", employee.row_key, row(first))?;
            }
            Some(_) => {}
            None => return Err(Failure::Unexpected(format!("employee {first} is nowhere"))),
        }
        first += 1;
        begun = archive.outbox().waiting().await?;
    }
    stage.say(&format!(
        "{} moves acknowledged, {kills} kills, {begun} messages left in the outbox",
        moved.len()
    ));
    stage.holds("a kill in the middle", begun > 0)?;

    let (tally, _) =
        stage.timed("a worker finishes what was begun", archive.outbox().run_until_empty()).await?;
    // There can be more than were counted: what a killed program has sent is still done.
    stage.holds("the worker finished those on the way", tally.handled >= begun)?;
    stage.same("changes that still wait", archive.outbox().waiting().await?, 0)?;
    // From `~` on, the rows belong to the outbox.
    let rows = async |table: &Table| -> Outcome<BTreeSet<String>> {
        let all = table.query().filter(row_key().lt("~")).all::<Entity>().await?;
        Ok(all.into_iter().map(|stored| stored.into_inner().row_key).collect())
    };
    let (current, former) = (rows(&current).await?, rows(&former).await?);
    let nobody: Vec<String> = Vec::new();
    let in_both = current.intersection(&former).cloned().collect();
    stage.same("who is in both tables", in_both, nobody.clone())?;
    let nowhere = (0..EMPLOYEES).map(row).filter(|row| !current.contains(row) && !former.contains(row));
    stage.same("who is in neither", nowhere.collect(), nobody.clone())?;
    let lost = moved.iter().map(|number| row(*number)).filter(|row| !former.contains(row));
    stage.same("whose move was acknowledged and lost", lost.collect(), nobody)
}
