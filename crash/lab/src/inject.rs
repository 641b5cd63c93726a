//! System calls that fail: the server may refuse, end or continue, but never give a wrong answer. Without the fault,
//! everything must work again.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use tokio::time::sleep;

use crate::archivist::{self, Archivist};
use crate::cases::{self, Case, Phase};
use crate::faults::Rule;
use crate::full_disk;
use crate::lab::{self, Lab};
use crate::porter::{self, Porter};
use crate::request;
use crate::server::{Launch, Server, Start};
use crate::totals::Totals;
use crate::writer::{Load, Writer};

const LOAD_BEFORE: Duration = Duration::from_millis(150);
/// Some calls are rare. If the fault does not happen within this time, it does not count.
const FAULT_WAIT_MAX: Duration = Duration::from_millis(1500);
const LOAD_AFTER: Duration = Duration::from_millis(200);
/// Longer than the server waits for requests, metrics and a stalled commit together when it is told to stop.
const END_WAIT_MAX: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(2);

/// The store that all cases use, one after the other.
struct Bench<'a> {
    lab: &'a Lab,
    library: PathBuf,
    data: PathBuf,
    writers: Vec<Writer>,
    porters: Vec<Porter>,
    archivists: Vec<Archivist>,
    random: StdRng,
    totals: Totals,
}

pub async fn run(lab: &Lab, rounds: Option<usize>, only: &str) -> Result<Totals, String> {
    let began = Instant::now();
    let mut cases = cases::all();
    cases.retain(|case| case.name.contains(only));
    if let Some(rounds) = rounds {
        cases.shuffle(&mut StdRng::seed_from_u64(lab.seed));
        cases.truncate(rounds);
    }
    let mut bench = Bench {
        lab,
        library: lab.library()?,
        data: lab.directory("data")?,
        writers: lab.writers(),
        porters: porter::porters(lab.seed),
        archivists: archivist::archivists(lab.seed),
        random: lab.random(),
        totals: Totals::new("faults", lab.seed),
    };
    for (number, case) in cases.iter().enumerate() {
        if lab.is_over() {
            break;
        }
        bench.totals.rounds += 1;
        match bench.case(case).await? {
            Ok(told) => println!("faults: {}: {told}", case.name),
            Err(what) => {
                println!("faults: {}: VIOLATION: {what}", case.name);
                bench.keep(number)?;
                let what = format!("{}: {what}", case.name);
                bench.totals.violations.push(lab.violation(number as u64, what));
            }
        }
    }
    bench.totals.answered(&bench.writers);
    if rounds.is_none() && "full disk".contains(only) {
        full_disk::run(lab, &mut bench.totals).await?;
    }
    bench.totals.seconds = began.elapsed().as_secs();
    Ok(bench.totals)
}

impl Bench<'_> {
    /// The outer error is a failure of the lab, the inner one a violation.
    async fn case(&mut self, case: &Case) -> Result<Result<String, String>, String> {
        let rule = Arc::new(Rule::create(self.lab.path("rule"), &case.fault)?);
        let mut launch = self.lab.launch(&self.data);
        if case.phase == Phase::FirstStart {
            self.totals.answered(&self.writers);
            self.writers = self.lab.writers();
            self.porters = porter::porters(self.lab.seed);
            self.archivists = archivist::archivists(self.lab.seed);
            self.data = self.lab.directory("data")?;
            launch = self.lab.launch(&self.data);
        }
        let clean = launch.clone();
        launch.variables = vec![
            ("LD_PRELOAD", self.library.clone()),
            ("PARTITA_FAULTS_ROOT", self.data.clone()),
            ("PARTITA_FAULTS_RULE", rule.path.clone()),
        ];
        let faulty = match case.phase {
            Phase::Load => self.under_load(case, &launch, &rule).await?,
            Phase::Start | Phase::FirstStart => self.at_start(&launch, &rule).await?,
        };
        self.totals.injected_errors += rule.injected();
        let how = match faulty {
            Ok(how) => how,
            Err(what) => return Ok(Err(what)),
        };
        let complaint = lab::complaint(&self.writers).or_else(|| porter::complaint(&self.porters));
        if let Some(complaint) = complaint.or_else(|| archivist::complaint(&self.archivists)) {
            return Ok(Err(complaint));
        }
        let server = match lab::start(&clean, &mut self.totals) {
            Ok(server) => server,
            Err(what) => return Ok(Err(format!("{how}; without the fault it {what}"))),
        };
        let mut judged = lab::judge_all(&server, &mut self.writers, &mut self.random, &mut self.totals).await;
        if let Err(what) = porter::judge_all(&server, &mut self.porters, &mut self.totals).await {
            judged = judged.and(Err(what));
        }
        if let Err(what) = archivist::judge_all(&server, &mut self.archivists, &mut self.totals).await {
            judged = judged.and(Err(what));
        }
        drop(server);
        let injected = rule.injected();
        Ok(judged
            .map(|settled| {
                format!(
                    "{injected} of {} calls failed; {how}; {} of {} unknown operations had been done",
                    rule.seen(),
                    settled.taken,
                    settled.unknown
                )
            })
            .map_err(|what| format!("{how}; then: {what}")))
    }

    async fn under_load(
        &mut self,
        case: &Case,
        launch: &Launch,
        rule: &Arc<Rule>,
    ) -> Result<Result<String, String>, String> {
        let mut server = match lab::start(launch, &mut self.totals) {
            Ok(server) => server,
            Err(what) => return Ok(Err(what)),
        };
        let load = Load {
            rule: Some(rule.clone()),
            fault_is_final: case.is_final,
            persist: true,
            ..Load::default()
        };
        let working = lab::work(&server, std::mem::take(&mut self.writers), load).await?;
        let carrying = porter::work(&server, std::mem::take(&mut self.porters), &working.load)?;
        let filing = archivist::work(&server, std::mem::take(&mut self.archivists), &working.load)?;
        sleep(LOAD_BEFORE).await;
        rule.arm(true)?;
        let deadline = Instant::now() + FAULT_WAIT_MAX;
        while rule.injected() == 0 && Instant::now() < deadline {
            sleep(POLL).await;
        }
        sleep(LOAD_AFTER).await;
        let must_end = case.is_final && rule.injected() > 0;
        // Writers that still get answers continue until they are told to stop.
        let ended = server.wait(if must_end { END_WAIT_MAX } else { Duration::ZERO });
        self.writers = working.finish().await?;
        self.porters = carrying.finish().await?;
        self.archivists = filing.finish().await?;
        Ok(match ended {
            Some(status) => well_ended(status, &server.said()),
            None if must_end => Err("the log could not be written, but the server continues".to_owned()),
            None => self.end(&mut server).await,
        })
    }

    async fn at_start(
        &mut self,
        launch: &Launch,
        rule: &Arc<Rule>,
    ) -> Result<Result<String, String>, String> {
        rule.arm(true)?;
        let mut server = match launch.start() {
            Ok(Start::Ready(server)) => server,
            Ok(Start::Ended { status, said }) => return Ok(well_ended(status, &said)),
            Err(what) => return Ok(Err(what)),
        };
        let load = Load { rule: Some(rule.clone()), persist: true, ..Load::default() };
        let working = lab::work(&server, std::mem::take(&mut self.writers), load).await?;
        let carrying = porter::work(&server, std::mem::take(&mut self.porters), &working.load)?;
        let filing = archivist::work(&server, std::mem::take(&mut self.archivists), &working.load)?;
        sleep(LOAD_AFTER).await;
        self.writers = working.finish().await?;
        self.porters = carrying.finish().await?;
        self.archivists = filing.finish().await?;
        Ok(match server.wait(Duration::ZERO) {
            Some(status) => well_ended(status, &server.said()),
            None => self.end(&mut server).await,
        })
    }

    /// Kills a server that continues in spite of the fault, or tells it to stop while calls still fail. A server that
    /// no longer answers must be about to end.
    async fn end(&mut self, server: &mut Server) -> Result<String, String> {
        if request::table_names(&mut server.client()?).await.is_err() {
            let ended = server.wait(END_WAIT_MAX);
            let ended = ended.ok_or_else(|| "it neither answers nor ends".to_owned())?;
            return well_ended(ended, &server.said());
        }
        if self.random.random_bool(0.5) {
            server.kill();
            self.totals.kills += 1;
            return Ok("continued and was killed".to_owned());
        }
        server.terminate()?;
        match server.wait(END_WAIT_MAX) {
            Some(status) if status.code().is_some() => Ok("continued and was stopped".to_owned()),
            Some(status) => Err(format!("ended with {status} when told to stop: {}", server.said())),
            None => Err(format!("did not stop within {END_WAIT_MAX:?}")),
        }
    }

    /// Keeps the store as evidence; the next case begins with a new one.
    fn keep(&mut self, number: usize) -> Result<(), String> {
        let kept = self.lab.path(&format!("violation-{number}"));
        std::fs::rename(&self.data, &kept)
            .map_err(|error| format!("can't keep {}: {error}", kept.display()))?;
        self.totals.answered(&self.writers);
        self.writers = self.lab.writers();
        self.porters = porter::porters(self.lab.seed);
        self.archivists = archivist::archivists(self.lab.seed);
        self.data = self.lab.directory("data")?;
        Ok(())
    }
}

/// Whether it ended by itself and gave a reason, not by a signal or a panic.
pub fn well_ended(status: ExitStatus, said: &str) -> Result<String, String> {
    let why = said.lines().rev().find_map(|line| line.strip_prefix("partita: "));
    match (status.code(), why) {
        (Some(1), Some(why)) if !said.contains("panicked") => Ok(format!("ended: {why}")),
        _ => Err(format!("ended badly with {status}, and said: {said}")),
    }
}
