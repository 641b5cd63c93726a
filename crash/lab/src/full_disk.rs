//! A disk that is really full: a small file system in memory, if this user may mount one.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::inject::well_ended;
use crate::lab::{self, Lab};
use crate::server::Start;
use crate::totals::Totals;
use crate::writer::Load;

const SMALL: &str = "size=24m";
const LARGE: &str = "size=512m";
/// The longest time until the disk is full and the server has noticed.
const FILL_TIME_MAX: Duration = Duration::from_secs(60);
const LOAD: Duration = Duration::from_millis(300);

/// Unmounted when it is dropped.
struct Mount(PathBuf);

impl Mount {
    fn new(place: PathBuf) -> Option<Self> {
        mount(&[SMALL], &place).then_some(Self(place))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: what is still in use is unmounted when its last user ends.
        let _ = Command::new("umount").arg("-l").arg(&self.0).stderr(Stdio::null()).status();
    }
}

fn mount(options: &[&str], place: &std::path::Path) -> bool {
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", &options.join(","), "tmpfs"]).arg(place).stderr(Stdio::null());
    mount.status().is_ok_and(|status| status.success())
}

pub async fn run(lab: &Lab, totals: &mut Totals) -> Result<(), String> {
    let Some(disk) = Mount::new(lab.directory("full")?) else {
        println!("faults: full disk: skipped, because this user can't mount a file system");
        return Ok(());
    };
    totals.rounds += 1;
    match fill(lab, &disk, totals).await? {
        Ok(told) => println!("faults: full disk: {told}"),
        Err(what) => {
            println!("faults: full disk: VIOLATION: {what}");
            totals.violations.push(lab.violation(totals.rounds, format!("full disk: {what}")));
        }
    }
    Ok(())
}

/// The outer error is a failure of the lab, the inner one a violation.
async fn fill(lab: &Lab, disk: &Mount, totals: &mut Totals) -> Result<Result<String, String>, String> {
    let launch = lab.launch(&disk.0.join("data"));
    let (mut random, mut writers) = (lab.random(), lab.writers());
    let mut server = match lab::start(&launch, totals) {
        Ok(server) => server,
        Err(what) => return Ok(Err(what)),
    };
    let working = lab::work(&server, writers, Load { persist: true, ..Load::default() }).await?;
    let deadline = Instant::now() + FILL_TIME_MAX;
    let mut ended = None;
    while ended.is_none() && Instant::now() < deadline {
        sleep(LOAD).await;
        ended = server.wait(Duration::ZERO);
    }
    writers = working.finish().await?;
    let told = match ended.map(|status| well_ended(status, &server.said())) {
        Some(Ok(told)) => told,
        Some(Err(what)) => return Ok(Err(what)),
        None => {
            return Ok(Err(format!(
                "the disk was not full, or the server did not notice, within {FILL_TIME_MAX:?}"
            )));
        }
    };
    // There is still no space. The server may start, or refuse with a reason, and must not change anything.
    let again = match launch.start() {
        Ok(Start::Ready(_)) => "started while the disk was full".to_owned(),
        Ok(Start::Ended { status, said }) => match well_ended(status, &said) {
            Ok(told) => told,
            Err(what) => return Ok(Err(what)),
        },
        Err(what) => return Ok(Err(what)),
    };
    if !mount(&["remount", LARGE], &disk.0) {
        return Err("the small disk can't be made larger".to_owned());
    }
    for _ in 0..2 {
        let mut server = match lab::start(&launch, totals) {
            Ok(server) => server,
            Err(what) => return Ok(Err(format!("with space again: {what}"))),
        };
        if let Err(what) = lab::judge_all(&server, &mut writers, &mut random, totals).await {
            return Ok(Err(format!("with space again: {what}")));
        }
        let working = lab::work(&server, writers, Load::default()).await?;
        sleep(LOAD).await;
        server.kill();
        totals.kills += 1;
        writers = working.finish().await?;
    }
    totals.answered(&writers);
    Ok(Ok(format!("{told}; again: {again}; with space again: all there")))
}
