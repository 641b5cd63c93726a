//! `partita top`: the partitions that are asked for most, live in the terminal.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use super::command::{TopCommand, Words};
use super::layout::{Cell, Grid, Paint, Screen};
use super::{TableError, connect, document};
use crate::progress::grouped;

/// Lines of the screen that are not partitions.
const FRAME_LINES: usize = 4;
const SHOWN_USUAL: usize = 20;

#[derive(Debug, Deserialize)]
struct Hot {
    this_minute: Minute,
    last_minute: Minute,
}

#[derive(Debug, Deserialize)]
struct Minute {
    seconds: f64,
    sampled: bool,
    partitions: Vec<Partition>,
}

#[derive(Clone, Debug, Deserialize)]
struct Partition {
    service: String,
    name: String,
    partition: Option<String>,
    requests: u64,
    writes: u64,
    entities: u64,
    kib: u64,
    refusals: u64,
}

type PlaceKey = (String, String, Option<String>);

impl Partition {
    fn key(&self) -> PlaceKey {
        (self.service.clone(), self.name.clone(), self.partition.clone())
    }
}

/// What the last look saw.
struct Look {
    at: Instant,
    minute_seconds: f64,
    requests: HashMap<PlaceKey, u64>,
}

pub async fn top(command: &TopCommand) -> Result<(), TableError> {
    let service = connect(&command.connection)?;
    let mut last: Option<Look> = None;
    let is_live = !command.once && command.format == Words::Text && Screen::of_stdout().width.is_some();
    // Dropped, it leaves the terminal as it was.
    let _alternate = is_live.then(AlternateScreen::enter).transpose()?;
    loop {
        let screen = Screen::of_stdout();
        let room = screen.height.map(|height| height.saturating_sub(FRAME_LINES).clamp(1, 256));
        let count = command.top.map(usize::from).or(room.filter(|_| is_live)).unwrap_or(SHOWN_USUAL);
        let query = vec![("top", count.to_string()), ("by", command.by.name().to_owned())];
        let answer = tokio::select! {
            answer = document(&service, "/hot", query) => answer?,
            _ = crate::stop_signal() => return Ok(()),
        };
        match command.format {
            Words::Json => screen.print(&format!("{answer}\n"))?,
            Words::Text => {
                let hot = read(answer)?;
                let text = shown(&hot, last.as_ref(), &service.url(), &screen);
                screen.print(&if is_live { repainted(&text) } else { text })?;
                let requests = hot.this_minute.partitions.iter().map(|p| (p.key(), p.requests)).collect();
                last = Some(Look { at: Instant::now(), minute_seconds: hot.this_minute.seconds, requests });
            }
        }
        if command.once {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(u64::from(command.interval))) => {}
            _ = crate::stop_signal() => return Ok(()),
        }
    }
}

fn read(answer: Value) -> Result<Hot, TableError> {
    serde_json::from_value(answer).map_err(TableError::Answer)
}

fn shown(hot: &Hot, last: Option<&Look>, url: &str, screen: &Screen) -> String {
    let before: HashMap<PlaceKey, u64> =
        hot.last_minute.partitions.iter().map(|p| (p.key(), p.requests)).collect();
    // In the first seconds of a minute, the last one says more.
    let this = &hot.this_minute;
    let rows: Vec<Vec<Cell>> = this
        .partitions
        .iter()
        .map(|partition| {
            let number = |number: u64| Cell::number(grouped(number));
            let place = partition.partition.as_deref().unwrap_or(match partition.service.as_str() {
                "table" => "(several partitions)",
                // Queues and containers have no partitions.
                _ => "",
            });
            vec![
                Cell::number(format!("{:.1}", rate(partition, this.seconds, last))),
                Cell::text(&partition.name),
                Cell::text(place),
                number(partition.requests),
                number(before.get(&partition.key()).copied().unwrap_or(0)),
                number(partition.writes),
                number(partition.entities),
                number(partition.kib),
                number(partition.refusals),
                Cell::text(&partition.service),
            ]
        })
        .collect();
    // A narrow terminal has no room for the last ones.
    let names = [
        "Req/s",
        "Name",
        "Partition",
        "Requests",
        "Last min",
        "Writes",
        "Entities",
        "KiB",
        "Refused",
        "Service",
    ];
    let grid = Grid::new(names.map(str::to_owned).into(), &rows, screen);
    let sampled = if this.sampled { ", sampled" } else { "" };
    let title = format!("{}  {:.0} s of this minute{sampled}", Cell::text(url).text, this.seconds);
    let mut out = format!("{}\n", screen.painted(&title, Paint::Dim));
    out.push_str(&grid.head(screen));
    rows.iter().for_each(|row| out.push_str(&grid.row(row)));
    if rows.is_empty() {
        out.push_str("no requests in this minute\n");
    }
    out
}

/// Requests a second since the last look; of the minute so far if there was none in this minute.
fn rate(partition: &Partition, seconds: f64, last: Option<&Look>) -> f64 {
    match last {
        Some(last) if last.minute_seconds < seconds => {
            let known = last.requests.get(&partition.key()).copied().unwrap_or(0);
            let elapsed =
                (seconds - last.minute_seconds).max(last.at.elapsed().as_secs_f64() / 2.0).max(0.001);
            partition.requests.saturating_sub(known) as f64 / elapsed
        }
        _ => partition.requests as f64 / seconds.max(1.0),
    }
}

/// The text over what was there, without a flicker.
fn repainted(text: &str) -> String {
    let lines = text.replace('\n', "\x1b[K\n");
    format!("\x1b[H{lines}\x1b[J")
}

/// The terminal's other screen, with a hidden cursor, until this is dropped.
struct AlternateScreen;

impl AlternateScreen {
    fn enter() -> io::Result<Self> {
        let mut out = io::stdout().lock();
        out.write_all(b"\x1b[?1049h\x1b[?25l\x1b[2J")?;
        out.flush()?;
        Ok(Self)
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        let mut out = io::stdout().lock();
        // The terminal may be gone.
        let _ = out.write_all(b"\x1b[?25h\x1b[?1049l").and_then(|()| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(requests: u64) -> Partition {
        Partition {
            service: "table".to_owned(),
            name: "books".to_owned(),
            partition: Some("sf".to_owned()),
            requests,
            writes: 0,
            entities: 0,
            kib: 0,
            refusals: 0,
        }
    }

    #[test]
    fn a_rate_is_that_since_the_last_look_in_the_same_minute() {
        let look = |minute_seconds, requests| Look {
            at: Instant::now(),
            minute_seconds,
            requests: HashMap::from([(partition(0).key(), requests)]),
        };
        assert_eq!(rate(&partition(100), 10.0, None), 10.0);
        assert_eq!(rate(&partition(100), 10.0, Some(&look(8.0, 60))), 20.0);
        assert_eq!(
            rate(&partition(100), 2.0, Some(&look(58.0, 6000))),
            50.0,
            "the minute before counts no more"
        );
    }
}
