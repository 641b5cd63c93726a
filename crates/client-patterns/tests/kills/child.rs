//! The child process, and the parent that kills it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support;
use crate::world::{self, Op, Pattern, Services, State, Time, World};

/// Set in a child process: the pattern, the tables, and its number.
const CHILD: &str = "PARTITA_KILLS_CHILD";
const KILLS: u64 = 24;
const CHILDREN: u64 = 3;
const ROWS: u32 = 5;
/// How many milliseconds a child usually lives at most.
const LIFE: u64 = 150;
const LIFE_MAX: u64 = 60_000;

/// The possible states of each row: one, or two if a change had no answer.
type Possible = BTreeMap<String, BTreeSet<Option<u32>>>;

fn services() -> Option<Services> {
    Some(Services::new(&support::connection_string(support::PARTITA)?, support::quick()))
}

/// The child process, not a test: changes rows forever, heals at the same time, and prints what it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let [pattern, base, number] = told.split(' ').collect::<Vec<_>>()[..] else { panic!("{told}") };
    let services = services().unwrap();
    let pattern = Pattern::parse(pattern);
    let world = World::new(&services, base, pattern, Time::Hasty);
    let healing = World::new(&services, base, pattern, Time::Hasty);
    tokio::spawn(async move {
        loop {
            if let Err(error) = healing.heal_once().await {
                println!("\nfault {error}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    for turn in 0.. {
        let row = match pattern {
            Pattern::Queue => format!("{number}-{}-{turn}", std::process::id()),
            _ => format!("{number}-{}", rand::random_range(0..ROWS)),
        };
        let Some(op) = world.next(&row, rand::random_range(0..1000)).await.unwrap() else { continue };
        let what = op.number.map_or("-".to_owned(), |number| number.to_string());
        println!("\nbegin {} {what}", op.row);
        match world.act(&op).await {
            Ok(()) => println!("\ndone"),
            // The last move of the row is not complete, or a worker has found that the change takes too long.
            Err(error) if matches!(pattern, Pattern::Archive | Pattern::Queued) && error.is_conflict() => {
                println!("\nrefused");
            }
            Err(error) => println!("\nfault {error}"),
        }
    }
}

struct Running {
    process: Child,
    listening: JoinHandle<Vec<String>>,
}

fn start(pattern: Pattern, base: &str, number: u64) -> Running {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["child::child", "--exact", "--nocapture"])
        .env(CHILD, format!("{pattern:?} {base} {number}"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    // A line that the kill cut off does not count.
    let listening = std::thread::spawn(move || lines.map_while(Result::ok).collect());
    Running { process, listening }
}

/// Reads what a child printed before it was killed.
fn learn(possible: &mut Possible, said: &[String]) -> u64 {
    let (mut begun, mut done): (Option<Op>, u64) = (None, 0);
    let settle = |possible: &mut Possible, op: &Op, kept: bool| {
        let row = possible.entry(op.row.clone()).or_insert_with(|| BTreeSet::from([None]));
        if kept {
            *row = BTreeSet::from([op.number]);
        } else {
            row.remove(&op.number);
        }
    };
    for line in said {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["begin", row, number] => {
                let op = Op { row: row.to_owned(), number: number.parse().ok() };
                possible.entry(op.row.clone()).or_insert_with(|| BTreeSet::from([None])).insert(op.number);
                begun = Some(op);
            }
            ["done"] => {
                settle(possible, &begun.take().unwrap(), true);
                done += 1;
            }
            ["refused"] => settle(possible, &begun.take().unwrap(), false),
            ["fault", ..] => panic!("{line}"),
            _ => {}
        }
    }
    done
}

/// Kills children repeatedly, heals, and checks.
pub async fn kill(pattern: Pattern) {
    let Some(services) = services() else { return };
    let kills: u64 = std::env::var("PARTITA_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let base = support::unique("Kills");
    let world = World::new(&services, &base, pattern, Time::Later);
    world.create_tables().await;
    let (mut possible, mut done) = (Possible::new(), 0);
    // On a busy machine, children need longer until one of them has done something.
    let (mut rounds, mut life) = (kills.div_ceil(CHILDREN), LIFE);
    while rounds > 0 || (done == 0 && life < LIFE_MAX) {
        if rounds == 0 {
            life *= 2;
        }
        rounds = rounds.saturating_sub(1);
        let children: Vec<_> = (0..CHILDREN).map(|number| start(pattern, &base, number)).collect();
        for mut child in children {
            tokio::time::sleep(Duration::from_millis(rand::random_range(10..life))).await;
            child.process.kill().unwrap();
            child.process.wait().unwrap();
            done += learn(&mut possible, &child.listening.join().unwrap());
        }
    }
    world.heal().await.unwrap();
    let state = world.state().await;
    for (row, possible) in &possible {
        assert!(possible.contains(&state.get(row).copied()), "{row}: {:?}, not {possible:?}", state.get(row));
    }
    let unknown: Vec<_> = state.keys().filter(|row| !possible.contains_key(*row)).collect();
    assert!(unknown.is_empty(), "nobody wrote {unknown:?}");
    assert!(done > 0, "no child lived long enough to do anything");
    println!("{pattern:?}: {kills} kills, {done} changes acknowledged, {} rows", State::len(&state));
    world::drop_tables(&world).await;
}
