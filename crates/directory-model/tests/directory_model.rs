//! Checks the directory's protocol with its steps in every order.
//!
//! The model has one partition of one table, the segments that list it one after the other, and servers that write,
//! delete, tidy, move the segment and scan. A step is one request to the cluster. A server may give up a request and
//! start over, as after a timeout or a crash; the request then arrives at any later time or never. Epochs are small
//! numbers; with `skew` a server's clock may be ahead.
//!
//! Each safeguard of the protocol can be left out. The checker then has to find a violation, which shows that this
//! test can fail.
//!
//! `PARTITA_MODEL=large` checks more servers and losses at once, which takes far more time and memory.

#[path = "directory_model/cluster.rs"]
mod cluster;
#[path = "directory_model/servers.rs"]
mod servers;

use cluster::{Cluster, Registration, Request};
use servers::{Server, janitor, mover, remover, scanner, writer};
use stateright::{Checker, Model, Property};

/// The rules that keep the promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Safeguard {
    /// A server that lists a partition reads the map again afterwards.
    MapReadAgain,
    /// Writes of rows are conditional on the partition's epoch.
    EpochCondition,
    /// Entries have their epoch as timestamp; otherwise the last one to arrive wins.
    EpochTimestamps,
    /// A listed partition that was never written moves to a new epoch before it is struck off.
    OrphanFence,
    /// An empty partition is closing before it is struck off.
    Closing,
    /// While a segment moves, entries are written to the old one and the new one.
    BothSegments,
    /// A scan reads the map again after a page of the directory.
    ScanReadsAgain,
}

#[derive(Clone, Debug)]
struct World {
    servers: Vec<Server>,
    /// How many requests may be given up.
    losses: u8,
    skew: bool,
    without: Option<Safeguard>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Moment {
    cluster: Cluster,
    /// Sorted, because it does not matter which of two equal servers takes a step.
    servers: Vec<Server>,
    /// Requests that were given up and may still arrive.
    strays: Vec<Request>,
    losses: u8,
}

/// What happens next, and the state after it.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    what: What,
    then: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(dead_code, reason = "shown in what the checker finds")]
enum What {
    IsAnswered(Server),
    GivesUp(Server, Request),
    ArrivesLate(Request),
}

impl World {
    fn has(&self, safeguard: Safeguard) -> bool {
        self.without != Some(safeguard)
    }

    /// Epochs that a server may choose above this one.
    fn epochs_above(&self, epoch: u8) -> impl Iterator<Item = u8> {
        [1, 3].into_iter().take(if self.skew { 2 } else { 1 }).map(move |ahead| epoch + ahead)
    }
}

impl Model for World {
    type State = Moment;
    type Action = Event;

    fn init_states(&self) -> Vec<Moment> {
        let starts = [Cluster::untouched(), Cluster::with_a_row(), Cluster::emptied()];
        let losses = self.losses;
        starts
            .map(|cluster| Moment { cluster, servers: self.servers.clone(), strays: vec![], losses })
            .to_vec()
    }

    fn actions(&self, now: &Moment, events: &mut Vec<Event>) {
        for (i, server) in now.servers.iter().enumerate() {
            if i > 0 && now.servers[i - 1] == *server {
                continue;
            }
            let mut went_on = |cluster: Cluster, next: Server| {
                let mut then = Moment { cluster, ..now.clone() };
                then.servers[i] = next;
                if now.cluster.row && !then.cluster.row {
                    then.servers.iter_mut().for_each(Server::row_is_gone);
                }
                then.servers.sort();
                events.push(Event { what: What::IsAnswered(*server), then });
            };
            server.step(self, &now.cluster, &mut went_on);
            if now.losses > 0 {
                for request in server.under_way(self) {
                    let mut then = now.clone();
                    then.losses -= 1;
                    then.strays.push(request);
                    then.strays.sort();
                    then.servers[i] = server.start_over();
                    then.servers.sort();
                    events.push(Event { what: What::GivesUp(*server, request), then });
                }
            }
        }
        for (i, stray) in now.strays.iter().enumerate() {
            let mut then = now.clone();
            then.strays.remove(i);
            then.cluster.take(*stray, self.has(Safeguard::EpochTimestamps));
            if now.cluster.row && !then.cluster.row {
                then.servers.iter_mut().for_each(Server::row_is_gone);
                then.servers.sort();
            }
            events.push(Event { what: What::ArrivesLate(*stray), then });
        }
    }

    fn next_state(&self, _: &Moment, event: Event) -> Option<Moment> {
        Some(event.then)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(LISTED, |_, now: &Moment| !now.cluster.row || now.cluster.is_listed()),
            Property::always(SEEN, |_, now: &Moment| !now.servers.iter().any(Server::has_overlooked)),
            // Without these the properties above would prove nothing.
            Property::sometimes("a row is written", |_, now: &Moment| {
                now.cluster.row && now.cluster.registration == Registration::Listed && now.cluster.epoch > 1
            }),
            Property::sometimes("a partition is struck off", |_, now: &Moment| {
                now.cluster.registration == Registration::None && now.cluster.was_struck_off()
            }),
            Property::sometimes("the segment has moved", |_, now: &Moment| now.cluster.map.at > 0),
        ]
    }
}

const LISTED: &str = "a partition with a row is listed in the current segment";
const SEEN: &str = "a scan sees the partition of a row that was there throughout";

fn world(servers: &[Server], losses: u8, skew: bool) -> World {
    let mut servers = servers.to_vec();
    servers.sort();
    World { servers, losses, skew, without: None }
}

fn check(world: World) -> impl Checker<World> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    world.checker().threads(threads).spawn_bfs().join()
}

#[test]
fn the_promise_holds_in_every_order_of_steps() {
    let (writer, remover, janitor, mover, scanner) = (writer(), remover(), janitor(), mover(1), scanner());
    let mut worlds = vec![
        ("two writers", world(&[writer, writer, remover, janitor, mover], 0, false)),
        ("two janitors", world(&[writer, remover, janitor, janitor, mover], 0, false)),
        ("a lost request", world(&[writer, remover, janitor, mover], 1, false)),
        ("clocks apart", world(&[writer, remover, janitor, mover], 0, true)),
        ("two moves by two movers", world(&[writer, janitor, mover, mover], 0, false)),
        ("a scan", world(&[writer, remover, janitor, mover, scanner], 0, false)),
    ];
    if std::env::var("PARTITA_MODEL").is_ok_and(|size| size == "large") {
        worlds.extend([
            ("all with a loss", world(&[writer, writer, remover, janitor, mover, scanner], 1, false)),
            ("two janitors with a loss", world(&[writer, remover, janitor, janitor, mover], 1, true)),
            ("two losses", world(&[writer, remover, janitor, mover, mover], 2, false)),
        ]);
    }
    for (name, world) in worlds {
        let begun = std::time::Instant::now();
        let checked = check(world);
        eprintln!("{name}: {} states, {:?}", checked.unique_state_count(), begun.elapsed());
        checked.assert_properties();
    }
}

#[test]
fn every_safeguard_is_needed() {
    let (writer, remover, janitor, mover, scanner) = (writer(), remover(), janitor(), mover(1), scanner());
    for (safeguard, broken, servers) in [
        (Safeguard::MapReadAgain, LISTED, vec![writer, mover]),
        (Safeguard::EpochCondition, LISTED, vec![writer, remover, janitor]),
        (Safeguard::EpochTimestamps, LISTED, vec![writer, remover, janitor, mover]),
        (Safeguard::OrphanFence, LISTED, vec![writer, janitor]),
        (Safeguard::Closing, LISTED, vec![writer, writer, remover, janitor]),
        (Safeguard::BothSegments, LISTED, vec![writer, mover]),
        (Safeguard::ScanReadsAgain, SEEN, vec![scanner, mover]),
    ] {
        let whole = world(&servers, 0, false);
        check(whole.clone()).assert_no_discovery(broken);
        let checked = check(World { without: Some(safeguard), ..whole });
        let path = checked.discovery(broken);
        assert!(path.is_some(), "without {safeguard:?} nothing goes wrong");
    }
}
