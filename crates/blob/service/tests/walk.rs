//! Random operations on containers under virtual time, compared with the oracle; the service is started anew now and then.

use std::time::Duration;

use blob_model::{
    BreakPeriod, Conditions, Etag, LeaseAction, LeaseDuration, LeaseId, LeaseView, Leased, PublicAccess,
    Refusal,
};
use blob_service::{Error, ListQuery, Request};
use bytes::Bytes;

use crate::kit::{Ground, Random, account, container, lease, metadata, setting};
use crate::oracle::{Known, Oracle, Told};

const NAMES: [&str; 5] = ["$logs", "abc", "abc-1", "abd", "z-9"];

struct Walk {
    ground: Ground,
    oracle: Oracle,
    random: Random,
    last_etag: Option<Etag>,
}

/// A service's answer as the oracle tells it.
fn told<T>(answer: Result<T, Error>) -> Told<T> {
    answer.map_err(|error| match error {
        Error::Refused(refusal) => refusal.code(),
        Error::Fault(fault) => panic!("{fault:?}"),
    })
}

fn words(view: LeaseView) -> String {
    let duration = view.duration.map_or(String::new(), |duration| format!(" {duration}"));
    format!("{} {}{duration}", view.status, view.state)
}

impl Walk {
    fn new(seed: u64) -> Self {
        Self { ground: Ground::new(), oracle: Oracle::default(), random: Random::new(seed), last_etag: None }
    }

    async fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            match self.random.below(24) {
                0 => {
                    self.ground = self.ground.again();
                    self.last_etag = None;
                }
                1..=4 => {
                    let millis = self.random.of(&[1, 400, 1000, 7_000, 15_000, 31_000, 61_000]);
                    self.ground.time.pass(Duration::from_millis(millis));
                }
                5..=7 => self.create().await,
                8 => self.delete().await,
                9..=10 => self.set_metadata().await,
                11..=12 => self.set_policies().await,
                13..=15 => self.look().await,
                16..=17 => self.list().await,
                18..=19 => self.break_lease().await,
                _ => self.act().await,
            }
        }
    }

    fn name(&mut self) -> &'static str {
        self.random.of(&NAMES)
    }

    fn lease(&mut self) -> LeaseId {
        let number = self.random.of(&[1, 2, 3]);
        lease(number)
    }

    fn lease_or_none(&mut self) -> Option<LeaseId> {
        if self.random.below(2) == 0 { None } else { Some(self.lease()) }
    }

    /// Conditions of time around the last change, or none; and whether they hold for it.
    fn conditions(&mut self, name: &str) -> (Conditions, bool) {
        let Some(known) = self.oracle.containers.get(name) else { return (Conditions::default(), true) };
        let second = known.changed.ticks() / 10_000_000;
        let offset = self.random.of(&[-1, 0, 1]);
        let date = blob_model::DateTime::from_ticks((second + offset) * 10_000_000);
        match self.random.below(4) {
            0 => (Conditions { modified_since: date, ..Conditions::default() }, offset < 0),
            1 => (Conditions { unmodified_since: date, ..Conditions::default() }, offset >= 0),
            _ => (Conditions::default(), true),
        }
    }

    /// What is known of it, if a request with this lease and these conditions may go on.
    fn may(
        &mut self,
        name: &str,
        named: Option<LeaseId>,
        needs_lease: bool,
        holds: bool,
    ) -> Told<&mut Known> {
        let now = self.ground.time.now();
        let known = self.oracle.containers.get_mut(name).ok_or("ContainerNotFound")?;
        known.lease.check(named, needs_lease, now, Leased::Container)?;
        if holds { Ok(known) } else { Err("ConditionNotMet") }
    }

    /// A new ETag is later than every one that this server has given.
    fn moved(&mut self, etag: Etag) {
        assert!(self.last_etag.is_none_or(|last| last < etag), "{etag} after {:?}", self.last_etag);
        self.last_etag = Some(etag);
    }

    async fn create(&mut self) {
        let name = self.name();
        let metadata = self.some_metadata();
        let access = self.random.of(&[PublicAccess::None, PublicAccess::Blob, PublicAccess::Container]);
        let answer = self.ground.service.create_container(&container(name), metadata.clone(), access).await;
        match (told(answer), self.oracle.containers.contains_key(name)) {
            (Ok(etag), false) => {
                self.moved(etag);
                self.oracle.containers.insert(name, Known::new(etag.0, metadata, access));
            }
            (Err("ContainerAlreadyExists"), true) => {}
            other => panic!("{name}: {other:?}"),
        }
    }

    async fn delete(&mut self) {
        let (name, named) = (self.name(), self.lease_or_none());
        let (conditions, holds) = self.conditions(name);
        let expected = self.may(name, named, true, holds).map(|_| ());
        let request = Request { conditions, lease: named };
        assert_eq!(told(self.ground.service.delete_container(&container(name), &request).await), expected);
        if expected.is_ok() {
            self.oracle.containers.remove(name);
        }
    }

    fn some_metadata(&mut self) -> blob_model::Metadata {
        self.random.of(&[&[][..], &[("a", "1")], &[("Color", "red"), ("b", "")]]).pipe(metadata)
    }

    async fn set_metadata(&mut self) {
        let (name, named, metadata) = (self.name(), self.lease_or_none(), self.some_metadata());
        let (conditions, holds) = self.conditions(name);
        let request = Request { conditions, lease: named };
        let answer = self.ground.service.set_container_metadata(&container(name), &metadata, &request).await;
        let expected = self.may(name, named, false, holds).map(|known| known.metadata = metadata.clone());
        self.changed(name, told(answer), expected);
    }

    async fn set_policies(&mut self) {
        let (name, named) = (self.name(), self.lease_or_none());
        let (conditions, holds) = self.conditions(name);
        let access = self.random.of(&[PublicAccess::None, PublicAccess::Blob]);
        let policies = self.random.of(&[&b"one"[..], b"two"]);
        let request = Request { conditions, lease: named };
        let service = &self.ground.service;
        let answer = service
            .set_container_policies(&container(name), Bytes::from_static(policies), access, &request)
            .await;
        let expected = self.may(name, named, false, holds).map(|known| {
            known.policies = Some(policies.to_vec());
            known.access = access;
        });
        self.changed(name, told(answer), expected);
    }

    fn changed(&mut self, name: &str, answer: Told<Etag>, expected: Told<()>) {
        match (answer, expected) {
            (Ok(etag), Ok(())) => {
                self.moved(etag);
                let known = self.oracle.containers.get_mut(name).unwrap();
                assert!(known.changed < etag.0, "also after a restart");
                known.changed = etag.0;
            }
            (answer, expected) => assert_eq!(answer.map(|_| ()), expected, "{name}"),
        }
    }

    async fn look(&mut self) {
        let (name, named, now) = (self.name(), self.lease_or_none(), self.ground.time.now());
        let shown = told(self.ground.service.container_properties(&container(name), named).await);
        let policies = told(self.ground.service.container_policies(&container(name), named).await);
        match self.may(name, named, false, true) {
            Ok(known) => {
                let (shown, policies) = (shown.unwrap(), policies.unwrap());
                assert_eq!(
                    (shown.etag.0, &shown.metadata, shown.access),
                    (known.changed, &known.metadata, known.access)
                );
                assert_eq!(words(shown.lease), known.lease.words(now));
                let stored = policies.policies.map(|policies| policies.to_vec());
                assert_eq!(
                    (policies.etag, policies.access, stored),
                    (shown.etag, known.access, known.policies.clone())
                );
            }
            Err(code) => assert_eq!((shown.err(), policies.err()), (Some(code), Some(code))),
        }
    }

    async fn list(&mut self) {
        let (prefix, system) = (self.random.of(&["", "a", "abc", "z", "$", "b"]), self.random.below(2) == 0);
        let limit = self.random.of(&[1, 2, 100]);
        let (mut listed, mut from) = (Vec::new(), Some(String::new()));
        while let Some(start) = from {
            let query = ListQuery { prefix, from: &start, limit, system };
            let page = self.ground.service.list_containers(&account(), query).await.unwrap();
            assert!(page.containers.len() <= limit);
            listed.extend(page.containers);
            from = page.next.map(|next| next.as_str().to_owned());
        }
        let now = self.ground.time.now();
        let listed = listed.iter().map(|entry| {
            let properties = &entry.properties;
            (entry.name.as_str().to_owned(), properties.etag.0, words(properties.lease))
        });
        let is_shown = |name: &str| name.starts_with(prefix) && (system || name != "$logs");
        let known = self.oracle.containers.iter().filter(|(name, _)| is_shown(name));
        let known = known.map(|(name, known)| ((*name).to_owned(), known.changed, known.lease.words(now)));
        assert_eq!(listed.collect::<Vec<_>>(), known.collect::<Vec<_>>());
    }

    async fn act(&mut self) {
        let name = self.name();
        let (conditions, holds) = self.conditions(name);
        let duration = self.random.of(&[
            LeaseDuration::Infinite,
            LeaseDuration::Seconds(15),
            LeaseDuration::Seconds(60),
        ]);
        let action = match self.random.below(6) {
            0..=2 => LeaseAction::Acquire { duration, proposed: self.lease_or_none(), fresh: lease(9) },
            3 => LeaseAction::Renew { id: self.lease() },
            4 => LeaseAction::Change { id: self.lease(), proposed: self.lease() },
            _ => LeaseAction::Release { id: self.lease() },
        };
        let now = self.ground.time.now();
        let answer = told(self.ground.service.lease_container(&container(name), action, conditions).await);
        let expected = self.may(name, None, false, holds).and_then(|known| known.lease.act(action, now));
        let etag = self.oracle.containers.get(name).map(|known| known.changed);
        let answer = answer.map(|(outcome, shown)| {
            assert_eq!(Some(shown.0), etag, "a lease does not move the ETag");
            (outcome.id, outcome.seconds_left)
        });
        assert_eq!(answer, expected, "{action:?} on {name}");
    }

    async fn break_lease(&mut self) {
        let name = self.name();
        let seconds = self.random.of(&[None, Some(0), Some(5), Some(60)]);
        let period = seconds.map(|seconds: u64| BreakPeriod::of_header(&seconds.to_string()).unwrap());
        let action = LeaseAction::Break { period };
        let now = self.ground.time.now();
        let answer =
            self.ground.service.lease_container(&container(name), action, Conditions::default()).await;
        let answer = told(answer).map(|(outcome, _)| outcome.seconds_left.unwrap());
        let expected =
            self.may(name, None, false, true).and_then(|known| known.lease.break_off(seconds, now));
        assert_eq!(answer, expected, "{seconds:?} on {name}");
    }
}

trait Pipe: Sized {
    fn pipe<T>(self, next: impl Fn(Self) -> T) -> T {
        next(self)
    }
}

impl<S> Pipe for S {}

#[tokio::test]
async fn answers_are_those_of_the_oracle() {
    let (first, steps) = (setting("PARTITA_SEED", 1), setting("PARTITA_STEPS", 2000));
    for seed in first..first + setting("PARTITA_WALKS", 40) {
        println!("PARTITA_SEED={seed} PARTITA_STEPS={steps}");
        Walk::new(seed).run(steps).await;
    }
}

#[test]
fn refusals_are_told_by_their_codes() {
    assert_eq!(told::<()>(Err(Refusal::ContainerNotFound.into())), Err("ContainerNotFound"));
}
