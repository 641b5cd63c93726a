//! A proxy between an engine and its node that loses conditional writes, or their answers, on purpose.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};

use bytes::Bytes;
use scylla_proxy::{
    Action, Condition, Node, Proxy, Reaction, RequestFrame, RequestOpcode, RequestReaction, RequestRule,
    ResponseFrame, ResponseReaction, ResponseRule, RunningProxy, ShardAwareness, example_db_errors,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Which conditional writes have mishaps. The engine also sends some of its own at any time, to renew its slot.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    /// Those of partitions whose key begins with `MARK`.
    Rows,
    All,
}

/// The prefix of the partition keys that `Aim::Rows` means.
pub const MARK: &str = "lost-";

/// What happens to one conditional write. After all but `None` and `LateAtGate` the engine does not know the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    None,
    /// It does not arrive; `lost` keeps it, so that a test can deliver it later.
    RequestLost,
    /// It is done, but the answer is a timeout.
    AnswerLost,
    /// It does not arrive, and the connection ends.
    RequestCut,
    /// It is done, and the connection ends before the answer.
    AnswerCut,
    /// As `RequestLost`, but the engine gets the timeout only when the gate is opened.
    RequestLostAtGate,
    /// As `AnswerLost`, but the engine gets the timeout only when the gate is opened.
    AnswerLostAtGate,
    /// It arrives once the gate is opened, and is answered.
    LateAtGate,
}

use Mishap::{
    AnswerCut, AnswerLost, AnswerLostAtGate, LateAtGate, None, RequestCut, RequestLost, RequestLostAtGate,
};

pub struct Between {
    proxy: RunningProxy,
    /// Where the engine finds the proxy.
    pub address: String,
    keep: UnboundedSender<Kept>,
    lost: UnboundedReceiver<Kept>,
}

/// A request and its shard. Cassandra has no shards.
pub type Kept = (RequestFrame, Option<u16>);

/// Where one frame waits until the test lets it pass.
pub struct Gate {
    arrived: UnboundedReceiver<()>,
    open: mpsc::Sender<()>,
}

impl Gate {
    pub async fn arrived(&mut self) {
        self.arrived.recv().await.expect("the proxy holds the other end");
    }

    pub fn open(self) {
        // If nothing waits there any more, the test notices by itself.
        let _ = self.open.send(());
    }
}

/// The other side of a gate.
type Bar = Arc<dyn Fn() + Send + Sync>;

fn gate() -> (Gate, Bar) {
    let (arrive, arrived) = unbounded_channel();
    let (open, opened) = mpsc::channel();
    let opened = Mutex::new(opened);
    let wait = move || {
        let _ = arrive.send(());
        tokio::task::block_in_place(|| {
            let _ = opened.lock().map(|opened| opened.recv());
        });
    };
    (Gate { arrived, open }, Arc::new(wait))
}

impl Between {
    pub async fn start(node: SocketAddr) -> Self {
        // On the node's own address but another port: the driver uses one port for all nodes, and the peers have no
        // proxy at this one.
        let free = TcpListener::bind((node.ip(), 0)).await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let proxy =
            Proxy::new([Node::new(node, address, ShardAwareness::Unaware, Option::None, Option::None)]);
        let (keep, lost) = unbounded_channel();
        Self { proxy: proxy.run().await.unwrap(), address: address.to_string(), keep, lost }
    }

    /// The mishaps of the next conditional writes, in order. Later writes pass.
    pub fn expect(&mut self, aim: Aim, mishaps: &[Mishap]) -> Gate {
        let (gate, bar) = gate();
        let (mut requests, mut answers) = (Vec::new(), Vec::new());
        for mishap in mishaps {
            let next = write(aim).and(Condition::TrueForLimitedTimes(1));
            requests.push(RequestRule(next, self.on_request(*mishap, &bar)));
            let answered = !matches!(mishap, RequestLost | RequestCut | RequestLostAtGate);
            if answered {
                let next = verdict(aim).and(Condition::TrueForLimitedTimes(1));
                answers.push(ResponseRule(next, on_answer(*mishap, &bar)));
            }
        }
        self.set(requests, answers);
        gate
    }

    /// Each request for rows, and each answer to one, is lost with this probability.
    pub fn expect_any(&mut self, probability: f64) {
        let chance = Condition::RandomWithProbability(probability);
        let (_, bar) = gate();
        let request = RequestRule(write(Aim::Rows).and(chance.clone()), self.on_request(RequestLost, &bar));
        let answer = ResponseRule(verdict(Aim::Rows).and(chance), on_answer(AnswerLost, &bar));
        self.set(vec![request], vec![answer]);
    }

    /// Lets the first `steps` requests about something arrive, and none after them. Returns those that did not arrive.
    pub fn lose_after(&mut self, steps: usize, about: &Condition) -> UnboundedReceiver<Kept> {
        let (tried, lost) = unbounded_channel();
        let arrive = about.clone().and(Condition::TrueForLimitedTimes(steps));
        let lose = RequestReaction::drop_frame().with_feedback_when_performed(tried);
        let rules = vec![RequestRule(arrive, RequestReaction::noop()), RequestRule(about.clone(), lose)];
        self.set(rules, Vec::new());
        lost
    }

    fn set(&mut self, requests: Vec<RequestRule>, answers: Vec<ResponseRule>) {
        let [node] = self.proxy.running_nodes.as_mut_slice() else { panic!("there must be one node") };
        node.change_request_rules(Some(requests));
        node.change_response_rules(Some(answers));
    }

    pub fn expect_nothing(&mut self) {
        self.proxy.turn_off_rules();
    }

    /// Writes that did not arrive, as they were sent.
    pub fn lost(&mut self) -> Vec<Bytes> {
        let mut lost = Vec::new();
        while let Ok((frame, _)) = self.lost.try_recv() {
            lost.push(frame.body);
        }
        lost
    }

    /// The next write that does not arrive.
    pub async fn next_lost(&mut self) -> Bytes {
        self.lost.recv().await.expect("one sender is our own").0.body
    }

    fn on_request(&self, mishap: Mishap, bar: &Bar) -> RequestReaction {
        let forge = |bar: Option<Bar>| {
            let timeout = move |request: RequestFrame| {
                bar.iter().for_each(|bar| bar());
                ResponseFrame::forged_error(request.params, example_db_errors::write_timeout(), Option::None)
                    .expect("a short message")
            };
            RequestReaction::forge_response(Arc::new(timeout))
        };
        match mishap {
            RequestLost => forge(Option::None).with_feedback_when_performed(self.keep.clone()),
            RequestLostAtGate => forge(Some(bar.clone())).with_feedback_when_performed(self.keep.clone()),
            RequestCut => RequestReaction::drop_connection().with_feedback_when_performed(self.keep.clone()),
            LateAtGate => {
                let bar = bar.clone();
                RequestReaction::transform_frame(Arc::new(move |request| {
                    bar();
                    request
                }))
            }
            None | AnswerLost | AnswerCut | AnswerLostAtGate => RequestReaction::noop(),
        }
    }
}

fn write(aim: Aim) -> Condition {
    let batch = Condition::RequestOpcode(RequestOpcode::Batch);
    match aim {
        Aim::Rows => batch.and(contains(MARK)),
        Aim::All => batch,
    }
}

/// The answer to a conditional write, which names the table.
fn verdict(aim: Aim) -> Condition {
    match aim {
        Aim::Rows => contains("[applied]").and(contains("entities")),
        Aim::All => contains("[applied]"),
    }
}

fn contains(text: &str) -> Condition {
    Condition::BodyContainsCaseSensitive(Box::from(text.as_bytes()))
}

fn on_answer(mishap: Mishap, bar: &Bar) -> ResponseReaction {
    let timeout = |bar: Option<Bar>| {
        let timeout = move |answer: ResponseFrame| {
            bar.iter().for_each(|bar| bar());
            ResponseFrame::forged_error(answer.params, example_db_errors::write_timeout(), Option::None)
                .expect("a short message")
        };
        let action = Action { delay: Option::None, msg_processor: Some(Arc::new(timeout) as _) };
        ResponseReaction { to_addressee: Some(action), ..ResponseReaction::noop() }
    };
    match mishap {
        AnswerLost => timeout(Option::None),
        AnswerLostAtGate => timeout(Some(bar.clone())),
        AnswerCut => ResponseReaction::drop_connection(),
        None | LateAtGate | RequestLost | RequestCut | RequestLostAtGate => ResponseReaction::noop(),
    }
}
