//! What servers do, request by request, as in `src/directory` and `src/round.rs`.

use super::cluster::{Cluster, Map, Registration, Request, SEGMENTS};
use super::{Safeguard, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Server {
    Writer { map: Map, at: Writing },
    Remover(Removing),
    Janitor { map: Map, at: Tidying },
    Mover { left: u8, at: Moving },
    Scanner { map: Map, at: Scanning },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Writing {
    Start,
    Entry(Entering),
    Commit {
        from: u8,
        to: u8,
        registration: Registration,
    },
    /// The outcome of the write is unknown. It is made impossible before anything else is tried.
    Fence {
        from: u8,
        registration: Registration,
    },
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Removing {
    Start,
    Remove { epoch: u8, registration: Registration },
    Fence { from: u8, registration: Registration },
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tidying {
    Start,
    /// Listed in this epoch: does it have rows?
    Look {
        epoch: u8,
    },
    Close {
        from: u8,
        to: u8,
    },
    /// Closing in this epoch: does it have rows?
    LookAgain {
        epoch: u8,
    },
    Decide {
        from: u8,
        to: u8,
        empty: bool,
    },
    /// Its state says that it is not listed: is there an entry all the same?
    Find {
        epoch: u8,
    },
    FindAgain {
        epoch: u8,
        listed: u8,
    },
    Fence {
        from: u8,
        to: u8,
    },
    Entry(Entering),
    Done,
}

/// Writes an entry to the current and the next segment, and checks that the map has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entering {
    /// To the old and the new segment, in any order. `to` says which are still to be written.
    Write {
        from: u8,
        epoch: u8,
        to: [bool; 2],
    },
    Check {
        from: u8,
        epoch: u8,
    },
    ReadMap {
        from: u8,
        epoch: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Moving {
    Start,
    Announce(Map),
    Read(Map),
    Copy { map: Map, epoch: u8 },
    Swap(Map),
    Drop(Map),
    Clear(Map),
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scanning {
    Start,
    Read { row_throughout: bool },
    Check { row_throughout: bool, listed: bool },
    ReadMap { row_throughout: bool },
    Done { row_throughout: bool, listed: bool },
}

/// Servers begin with the first map in their cache, however old it is.
pub fn writer() -> Server {
    Server::Writer { map: Map::FIRST, at: Writing::Start }
}

pub fn remover() -> Server {
    Server::Remover(Removing::Start)
}

pub fn janitor() -> Server {
    Server::Janitor { map: Map::FIRST, at: Tidying::Start }
}

/// A server that moves the segment this many times.
pub fn mover(times: u8) -> Server {
    Server::Mover { left: times, at: Moving::Start }
}

pub fn scanner() -> Server {
    Server::Scanner { map: Map::FIRST, at: Scanning::Start }
}

impl Server {
    /// Everything that can follow if its next request is answered now.
    pub fn step(&self, world: &World, cluster: &Cluster, go_on: &mut impl FnMut(Cluster, Self)) {
        match *self {
            Self::Writer { map, at } => step_writer(world, cluster, map, at, go_on),
            Self::Remover(at) => step_remover(world, cluster, at, go_on),
            Self::Janitor { map, at } => step_janitor(world, cluster, map, at, go_on),
            Self::Mover { left, at } => step_mover(world, cluster, left, at, go_on),
            Self::Scanner { map, at } => step_scanner(world, cluster, map, at, go_on),
        }
    }

    /// The changes that it has sent and that are not answered.
    pub fn under_way(&self, world: &World) -> Vec<Request> {
        match *self {
            Self::Writer { map, at: Writing::Entry(Entering::Write { epoch, to, .. }) } => {
                targets(map, to).map(|segment| Request::List { segment, epoch }).collect()
            }
            Self::Writer { at: Writing::Commit { from, to, .. }, .. } => vec![commit(world, from, to)],
            Self::Remover(Removing::Remove { epoch, registration }) => {
                vec![remove(world, epoch, registration)]
            }
            Self::Janitor { map, at: Tidying::Entry(Entering::Write { epoch, to, .. }) } => {
                targets(map, to).map(|segment| Request::Strike { segment, epoch }).collect()
            }
            Self::Janitor { at, .. } => change_of(at).into_iter().collect(),
            Self::Mover { at, .. } => request_of(at).into_iter().collect(),
            _ => vec![],
        }
    }

    /// Continues as after a timeout. After a crash nobody settles the outcome of the write; that is the same as a
    /// server that takes no more steps.
    pub fn start_over(&self) -> Self {
        match *self {
            Self::Writer { map, at: Writing::Commit { from, registration, .. } } => {
                Self::Writer { map, at: Writing::Fence { from, registration } }
            }
            Self::Remover(Removing::Remove { epoch: from, registration }) => {
                Self::Remover(Removing::Fence { from, registration })
            }
            Self::Writer { map, .. } => Self::Writer { map, at: Writing::Start },
            Self::Remover(_) => Self::Remover(Removing::Start),
            Self::Janitor { map, .. } => Self::Janitor { map, at: Tidying::Start },
            Self::Mover { left, .. } => Self::Mover { left, at: Moving::Start },
            Self::Scanner { map, .. } => Self::Scanner { map, at: Scanning::Start },
        }
    }

    /// The row is deleted, so a running scan need not see it.
    pub fn row_is_gone(&mut self) {
        if let Self::Scanner { at, .. } = self {
            match at {
                Scanning::Read { row_throughout }
                | Scanning::Check { row_throughout, .. }
                | Scanning::ReadMap { row_throughout } => *row_throughout = false,
                Scanning::Start | Scanning::Done { .. } => {}
            }
        }
    }

    pub fn has_overlooked(&self) -> bool {
        matches!(self, Self::Scanner { at: Scanning::Done { row_throughout: true, listed: false }, .. })
    }
}

fn targets(map: Map, to: [bool; 2]) -> impl Iterator<Item = u8> {
    (0..2).filter(move |&i| to[usize::from(i)]).map(move |i| map.at + i)
}

/// Writes the row, and the epoch if it changes.
fn commit(world: &World, from: u8, to: u8) -> Request {
    // Only a write that keeps the epoch can do without the condition: the other one sets the epoch.
    let anyway = from == to && !world.has(Safeguard::EpochCondition);
    Request::Change { from, to, registration: Registration::Listed, row: Some(true), anyway }
}

fn remove(world: &World, epoch: u8, registration: Registration) -> Request {
    let anyway = !world.has(Safeguard::EpochCondition);
    Request::Change { from: epoch, to: epoch, registration, row: Some(false), anyway }
}

/// The first step of writing an entry with this map: to one segment or to two.
fn entering(world: &World, map: Map, from: u8, epoch: u8) -> Entering {
    let both = map.moving && world.has(Safeguard::BothSegments);
    Entering::Write { from, epoch, to: [true, both] }
}

/// Writes entries, as listed or as struck off. The next step is `None` once the map was found unchanged.
fn step_entry(
    world: &World,
    cluster: &Cluster,
    map: Map,
    at: Entering,
    list: bool,
    go_on: &mut impl FnMut(Cluster, Map, Option<Entering>),
) {
    match at {
        Entering::Write { from, epoch, to } => {
            for i in (0..2).filter(|&i| to[i]) {
                let segment = map.at + i as u8;
                let mut cluster = cluster.clone();
                let request =
                    if list { Request::List { segment, epoch } } else { Request::Strike { segment, epoch } };
                cluster.take(request, world.has(Safeguard::EpochTimestamps));
                let mut to = to;
                to[i] = false;
                let next = match to {
                    [false, false] if list && !world.has(Safeguard::MapReadAgain) => None,
                    [false, false] => Some(Entering::Check { from, epoch }),
                    _ => Some(Entering::Write { from, epoch, to }),
                };
                go_on(cluster, map, next);
            }
        }
        Entering::Check { .. } if cluster.map.version == map.version => go_on(cluster.clone(), map, None),
        Entering::Check { from, epoch } => {
            go_on(cluster.clone(), map, Some(Entering::ReadMap { from, epoch }));
        }
        Entering::ReadMap { from, epoch } => {
            let map = cluster.map;
            go_on(cluster.clone(), map, Some(entering(world, map, from, epoch)));
        }
    }
}

fn step_writer(
    world: &World,
    cluster: &Cluster,
    map: Map,
    at: Writing,
    go_on: &mut impl FnMut(Cluster, Server),
) {
    let mut to = |cluster: Cluster, map, at| go_on(cluster, Server::Writer { map, at });
    match at {
        Writing::Start => {
            let (from, registration) = (cluster.epoch, cluster.registration);
            match registration {
                Registration::Listed => {
                    to(cluster.clone(), map, Writing::Commit { from, to: from, registration });
                }
                Registration::Closing => {
                    for epoch in world.epochs_above(from) {
                        to(cluster.clone(), map, Writing::Commit { from, to: epoch, registration });
                    }
                }
                Registration::None => {
                    for epoch in world.epochs_above(from) {
                        to(cluster.clone(), map, Writing::Entry(entering(world, map, from, epoch)));
                    }
                }
            }
        }
        Writing::Entry(entry) => {
            let (Entering::Write { from, epoch, .. }
            | Entering::Check { from, epoch }
            | Entering::ReadMap { from, epoch }) = entry;
            step_entry(world, cluster, map, entry, true, &mut |cluster, map, next| {
                let commit = Writing::Commit { from, to: epoch, registration: Registration::None };
                to(cluster, map, next.map_or(commit, Writing::Entry));
            });
        }
        Writing::Commit { from, to: epoch, .. } => {
            let mut cluster = cluster.clone();
            cluster.take(commit(world, from, epoch), true);
            to(cluster, map, Writing::Done);
        }
        Writing::Fence { from, registration } => {
            fence(world, cluster, from, registration, |cluster| to(cluster, map, Writing::Start));
        }
        Writing::Done => {}
    }
}

fn step_remover(world: &World, cluster: &Cluster, at: Removing, go_on: &mut impl FnMut(Cluster, Server)) {
    match at {
        Removing::Start => {
            let (epoch, registration) = (cluster.epoch, cluster.registration);
            go_on(cluster.clone(), Server::Remover(Removing::Remove { epoch, registration }));
        }
        Removing::Remove { epoch, registration } => {
            let mut cluster = cluster.clone();
            cluster.take(remove(world, epoch, registration), true);
            go_on(cluster, Server::Remover(Removing::Done));
        }
        Removing::Fence { from, registration } => {
            fence(world, cluster, from, registration, |cluster| {
                go_on(cluster, Server::Remover(Removing::Start));
            });
        }
        Removing::Done => {}
    }
}

/// Moves the partition to another epoch, so that a write conditional on the old one can't be applied any more.
fn fence(
    world: &World,
    cluster: &Cluster,
    from: u8,
    registration: Registration,
    mut go_on: impl FnMut(Cluster),
) {
    for to in world.epochs_above(from) {
        let mut cluster = cluster.clone();
        cluster.take(Request::Change { from, to, registration, row: None, anyway: false }, true);
        go_on(cluster);
    }
}

/// The change of epoch that a janitor sends at this point.
fn change_of(at: Tidying) -> Option<Request> {
    let (from, to, registration) = match at {
        Tidying::Close { from, to } => (from, to, Registration::Closing),
        Tidying::Decide { from, to, empty: false } => (from, to, Registration::Listed),
        Tidying::Decide { from, to, empty: true } | Tidying::Fence { from, to } => {
            (from, to, Registration::None)
        }
        _ => return None,
    };
    Some(Request::Change { from, to, registration, row: None, anyway: false })
}

fn step_janitor(
    world: &World,
    cluster: &Cluster,
    map: Map,
    at: Tidying,
    go_on: &mut impl FnMut(Cluster, Server),
) {
    let mut to = |cluster: Cluster, map, at| go_on(cluster, Server::Janitor { map, at });
    let strike = |map, epoch| Tidying::Entry(entering(world, map, epoch, epoch));
    match at {
        Tidying::Start => {
            let epoch = cluster.epoch;
            let next = match cluster.registration {
                Registration::Listed => Tidying::Look { epoch },
                Registration::Closing => Tidying::LookAgain { epoch },
                Registration::None => Tidying::Find { epoch },
            };
            to(cluster.clone(), map, next);
        }
        Tidying::Look { .. } if cluster.row => to(cluster.clone(), map, Tidying::Done),
        Tidying::Look { epoch: from } => {
            for epoch in world.epochs_above(from) {
                let next = if world.has(Safeguard::Closing) {
                    Tidying::Close { from, to: epoch }
                } else {
                    Tidying::Decide { from, to: epoch, empty: true }
                };
                to(cluster.clone(), map, next);
            }
        }
        Tidying::LookAgain { epoch: from } => {
            for epoch in world.epochs_above(from) {
                to(cluster.clone(), map, Tidying::Decide { from, to: epoch, empty: !cluster.row });
            }
        }
        Tidying::Find { epoch } => match cluster.entry(map.at) {
            Some(listed) => to(cluster.clone(), map, Tidying::FindAgain { epoch, listed }),
            None => to(cluster.clone(), map, Tidying::Done),
        },
        Tidying::FindAgain { epoch, .. } if cluster.map.version != map.version => {
            to(cluster.clone(), cluster.map, Tidying::Find { epoch });
        }
        Tidying::FindAgain { epoch: from, listed } if world.has(Safeguard::OrphanFence) => {
            for epoch in world.epochs_above(from.max(listed)) {
                to(cluster.clone(), map, Tidying::Fence { from, to: epoch });
            }
        }
        Tidying::FindAgain { epoch, listed } => to(cluster.clone(), map, strike(map, epoch.max(listed))),
        Tidying::Close { to: next, .. }
        | Tidying::Decide { to: next, .. }
        | Tidying::Fence { to: next, .. } => {
            let mut cluster = cluster.clone();
            let changed = change_of(at).is_some_and(|request| cluster.take(request, true));
            let next = match at {
                Tidying::Close { .. } if changed => Tidying::LookAgain { epoch: next },
                Tidying::Decide { empty: true, .. } | Tidying::Fence { .. } if changed => strike(map, next),
                _ => Tidying::Done,
            };
            to(cluster, map, next);
        }
        Tidying::Entry(entry) => step_entry(world, cluster, map, entry, false, &mut |cluster, map, next| {
            to(cluster, map, next.map_or(Tidying::Done, Tidying::Entry));
        }),
        Tidying::Done => {}
    }
}

/// The change that a mover sends at this point.
fn request_of(at: Moving) -> Option<Request> {
    let changed = |map: Map, change: fn(&mut Map)| {
        let mut to = Map { version: map.version + 1, ..map };
        change(&mut to);
        Request::ChangeMap { to }
    };
    Some(match at {
        Moving::Announce(map) => changed(map, |to| to.moving = true),
        Moving::Copy { map, epoch } => Request::List { segment: map.at + 1, epoch },
        Moving::Swap(map) => changed(map, |to| (to.at, to.moving, to.retired) = (to.at + 1, false, true)),
        Moving::Drop(map) => Request::DropSegment { segment: map.at - 1 },
        Moving::Clear(map) => changed(map, |to| to.retired = false),
        Moving::Start | Moving::Read(_) | Moving::Done => return None,
    })
}

fn step_mover(
    world: &World,
    cluster: &Cluster,
    left: u8,
    at: Moving,
    go_on: &mut impl FnMut(Cluster, Server),
) {
    let mut after = cluster.clone();
    if let Some(request) = request_of(at) {
        after.take(request, world.has(Safeguard::EpochTimestamps));
    }
    let (left, next) = match at {
        // The map says what comes next.
        Moving::Start => match cluster.map {
            map if map.retired => (left, Moving::Drop(map)),
            map if map.moving => (left, Moving::Read(map)),
            map if left > 0 && usize::from(map.at) + 1 < SEGMENTS => (left - 1, Moving::Announce(map)),
            _ => (0, Moving::Done),
        },
        Moving::Read(map) => {
            let found = cluster.entry(map.at).map(|epoch| Moving::Copy { map, epoch });
            (left, found.unwrap_or(Moving::Swap(map)))
        }
        Moving::Copy { map, .. } => (left, Moving::Swap(map)),
        Moving::Drop(map) => (left, Moving::Clear(map)),
        // Whether it was applied or not, the map says what comes next.
        Moving::Announce(_) | Moving::Swap(_) | Moving::Clear(_) => (left, Moving::Start),
        Moving::Done => return,
    };
    go_on(after, Server::Mover { left, at: next });
}

fn step_scanner(
    world: &World,
    cluster: &Cluster,
    map: Map,
    at: Scanning,
    go_on: &mut impl FnMut(Cluster, Server),
) {
    let mut to = |map, at| go_on(cluster.clone(), Server::Scanner { map, at });
    match at {
        Scanning::Start => to(map, Scanning::Read { row_throughout: cluster.row }),
        Scanning::Read { row_throughout } => {
            let listed = cluster.entry(map.at).is_some();
            let next = if world.has(Safeguard::ScanReadsAgain) {
                Scanning::Check { row_throughout, listed }
            } else {
                Scanning::Done { row_throughout, listed }
            };
            to(map, next);
        }
        Scanning::Check { row_throughout, listed } if cluster.map.version == map.version => {
            to(map, Scanning::Done { row_throughout, listed });
        }
        Scanning::Check { row_throughout, .. } => to(map, Scanning::ReadMap { row_throughout }),
        Scanning::ReadMap { row_throughout } => to(cluster.map, Scanning::Read { row_throughout }),
        Scanning::Done { .. } => {}
    }
}
