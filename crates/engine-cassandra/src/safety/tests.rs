use super::facts::Node;
use super::*;
use crate::trouble::Trouble;

fn node(datacenter: &str) -> Node {
    let settings = [
        ("commitlog_sync", "group"),
        ("paxos_variant", "v2"),
        ("paxos_state_purging", "gc_grace"),
        ("disk_failure_policy", "stop"),
        ("commit_failure_policy", "stop"),
    ];
    let facts = NodeFacts {
        version: "5.0.8".into(),
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        clock_ahead_milliseconds: Some(20),
    };
    Node { address: "10.0.0.1:9042".into(), datacenter: Some(datacenter.into()), state: Ok(facts) }
}

fn safe() -> Facts {
    Facts {
        keyspace: "k".into(),
        durable_writes: true,
        replicas: vec![(Some("east".into()), 3)],
        schema_version: Some(crate::schema::VERSION),
        datacenter: None,
        nodes: vec![node("east"), node("east"), node("east")],
    }
}

/// Changes a safe cluster and checks the findings.
fn check(change: impl FnOnce(&mut Facts), expected: &[(Weight, &str)]) {
    let mut facts = safe();
    change(&mut facts);
    let found = assess(&facts);
    let weights: Vec<Weight> = found.iter().map(|finding| finding.weight).collect();
    assert_eq!(weights, expected.iter().map(|(weight, _)| *weight).collect::<Vec<_>>(), "{found}");
    for (finding, (_, text)) in found.iter().zip(expected) {
        assert!(finding.text.contains(text), "{}", finding.text);
    }
}

/// The same for one node's settings.
fn check_node(change: impl FnOnce(&mut NodeFacts), expected: &[(Weight, &str)]) {
    check(|facts| change(facts.nodes[1].state.as_mut().unwrap()), expected);
}

fn set(name: &'static str, value: &'static str) -> impl FnOnce(&mut NodeFacts) {
    move |node| {
        node.settings.retain(|(of, _)| of != name);
        node.settings.push((name.to_owned(), value.to_owned()));
    }
}

#[test]
fn a_safe_cluster_has_no_findings() {
    check(|_| {}, &[]);
    check(|facts| facts.datacenter = Some("east".into()), &[]);
    check(|facts| facts.replicas = vec![(None, 3)], &[]);
    check_node(set("commitlog_sync", "batch"), &[]);
    check_node(set("disk_failure_policy", "die"), &[]);
    check_node(set("commit_failure_policy", "stop_commit"), &[]);
    check_node(|node| node.version = "5.1-SNAPSHOT".into(), &[]);
    check_node(|node| node.version = "6.0".into(), &[]);
    check_node(|node| node.clock_ahead_milliseconds = None, &[]);
}

#[test]
fn settings_that_can_lose_acknowledged_writes_are_unsafe() {
    use Weight::Unsafe;
    check_node(set("commitlog_sync", "periodic"), &[(Unsafe, "commitlog_sync: group")]);
    check_node(set("paxos_variant", "v1"), &[(Unsafe, "paxos_variant: v2")]);
    for careless in ["ignore", "best_effort"] {
        check_node(set("disk_failure_policy", careless), &[(Unsafe, "set disk_failure_policy: stop")]);
    }
    check_node(set("commit_failure_policy", "ignore"), &[(Unsafe, "set commit_failure_policy: stop")]);
    check_node(|node| node.version = "4.1.3".into(), &[(Unsafe, "Cassandra 4.1.3; this program needs 5.0")]);
    check_node(|node| node.version = "4".into(), &[(Unsafe, "needs 5.0")]);
    check(|facts| facts.durable_writes = false, &[(Unsafe, "durable_writes = true")]);
    check(|facts| facts.replicas[0].1 = 1, &[(Unsafe, "keeps 1 copy of everything and takes 3")]);
    check(|facts| facts.replicas = vec![(None, 2)], &[(Unsafe, "keeps 2 copies")]);
    check(|facts| facts.replicas.clear(), &[(Unsafe, "keeps 0 copies")]);
    check(
        |facts| facts.nodes.truncate(2),
        &[(Unsafe, "3 of its copies in datacenter \"east\", which has 2 nodes")],
    );
    check(
        |facts| facts.replicas.push((Some("west".into()), 1)),
        &[(Unsafe, "1 of its copies in datacenter \"west\", which has 0 nodes")],
    );
    let unreadable = [(Unsafe, "does not say its commitlog_sync"), (Unsafe, "GRANT SELECT")];
    check_node(|node| node.settings.clear(), &unreadable);
}

#[test]
fn a_cluster_that_can_not_work_is_never_accepted() {
    check(|facts| facts.schema_version = None, &[(Weight::Wrong, "partita store init")]);
    check(|facts| facts.schema_version = Some(1), &[(Weight::Wrong, "run `partita store init`")]);
    check(|facts| facts.schema_version = Some(77), &[(Weight::Wrong, "has schema 77")]);
    check(
        |facts| facts.datacenter = Some("west".into()),
        &[(Weight::Wrong, "datacenter \"west\" has no nodes; the cluster has east")],
    );
}

#[test]
fn a_node_that_is_down_and_a_wrong_clock_are_only_advice() {
    check(
        |facts| facts.nodes[2].state = Err(Trouble::refused("no answer")),
        &[(Weight::Advice, "no answer")],
    );
    check_node(|node| node.clock_ahead_milliseconds = Some(-9_500), &[(Weight::Advice, "9 s behind")]);
    check_node(|node| node.clock_ahead_milliseconds = Some(6_000), &[(Weight::Advice, "6 s ahead of")]);
    check_node(set("paxos_state_purging", "legacy"), &[(Weight::Advice, "gc_grace")]);
}

#[test]
fn only_unsafe_findings_can_be_accepted() {
    let of = |weights: &[Weight]| {
        Findings(
            weights.iter().map(|weight| Finding { weight: *weight, text: format!("{weight:?}") }).collect(),
        )
    };
    use Weight::{Advice, Unsafe, Wrong};
    for (weights, strict, lenient) in [
        (&[][..], true, true),
        (&[Advice], true, true),
        (&[Advice, Unsafe], false, true),
        (&[Wrong, Unsafe], false, false),
    ] {
        let found = of(weights);
        assert_eq!(found.is_refused(), !strict);
        assert_eq!(found.clone().judge(false).is_ok(), strict, "{weights:?}");
        assert_eq!(found.judge(true).is_ok(), lenient, "{weights:?}");
    }
    let Err(ConnectError::Unsafe(told)) = of(&[Advice, Unsafe]).judge(false) else { panic!("accepted") };
    assert_eq!(told, of(&[Unsafe]));
}
