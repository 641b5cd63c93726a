//! How long no request was served: the gaps between acknowledgements, over all endpoints and at each of them.

use std::time::{Duration, Instant};

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
}

/// When requests were answered successfully, in milliseconds since the load began.
#[derive(Debug)]
pub struct Times {
    began: Instant,
    answers: Vec<(usize, Kind, u64)>,
}

/// The longest time in which nothing of a kind was acknowledged, and when it began; in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Gap {
    pub seconds: f64,
    pub began: f64,
}

/// The service at one endpoint, or at all of them together.
#[derive(Clone, Debug, Serialize)]
pub struct Service {
    pub endpoint: Option<usize>,
    pub writes: usize,
    pub reads: usize,
    pub longest_without_write: Gap,
    pub longest_without_read: Gap,
    /// When the last write was acknowledged, in seconds since the load began.
    pub last_write: Option<f64>,
    /// Whole seconds in which there was no acknowledged write, and no answered read.
    pub seconds_without_write: usize,
    pub seconds_without_read: usize,
}

impl Service {
    pub fn name(&self) -> String {
        self.endpoint.map_or("all endpoints".to_owned(), |endpoint| format!("endpoint {endpoint}"))
    }
}

impl Times {
    pub fn start() -> Self {
        Self { began: Instant::now(), answers: Vec::new() }
    }

    pub fn answered(&mut self, endpoint: usize, kind: Kind) {
        let since = self.began.elapsed().as_millis();
        self.answers.push((endpoint, kind, u64::try_from(since).unwrap_or(u64::MAX)));
    }

    pub fn began(&self) -> Instant {
        self.began
    }

    /// For the whole time of the load: for all endpoints together, and for each.
    pub fn services(&self, endpoints: usize, time: Duration) -> Vec<Service> {
        let end = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        std::iter::once(None).chain((0..endpoints).map(Some)).map(|at| self.service(at, end)).collect()
    }

    fn service(&self, endpoint: Option<usize>, end: u64) -> Service {
        let of = |kind: Kind| {
            let here = |answer: &&(usize, Kind, u64)| {
                answer.1 == kind && endpoint.is_none_or(|endpoint| endpoint == answer.0)
            };
            let mut times: Vec<u64> = self.answers.iter().filter(here).map(|answer| answer.2).collect();
            times.sort_unstable();
            times
        };
        let (writes, reads) = (of(Kind::Write), of(Kind::Read));
        Service {
            endpoint,
            writes: writes.len(),
            reads: reads.len(),
            longest_without_write: longest(&writes, end),
            longest_without_read: longest(&reads, end),
            last_write: writes.last().map(|last| *last as f64 / 1000.0),
            seconds_without_write: silent_seconds(&writes, end),
            seconds_without_read: silent_seconds(&reads, end),
        }
    }
}

fn longest(times: &[u64], end: u64) -> Gap {
    let starts = std::iter::once(0).chain(times.iter().copied());
    let ends = times.iter().copied().chain(std::iter::once(end));
    let gaps = starts.zip(ends).map(|(start, end)| (end.saturating_sub(start), start));
    // The first of equally long gaps.
    let (length, start) = gaps.fold((0, 0), |longest, gap| if gap.0 > longest.0 { gap } else { longest });
    Gap { seconds: length as f64 / 1000.0, began: start as f64 / 1000.0 }
}

fn silent_seconds(times: &[u64], end: u64) -> usize {
    let mut heard: Vec<u64> =
        times.iter().map(|time| time / 1000).filter(|second| *second < end / 1000).collect();
    heard.dedup();
    usize::try_from(end / 1000).unwrap_or(usize::MAX).saturating_sub(heard.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_count_from_the_beginning_to_the_end() {
        for (times, end, seconds, began, silent) in [
            (&[][..], 3000, 3.0, 0.0, 3),
            (&[100, 200, 1500], 2000, 1.3, 0.2, 0),
            (&[100, 200, 1500], 9000, 7.5, 1.5, 7),
            (&[2500], 3000, 2.5, 0.0, 2),
            (&[500, 1500, 2500, 2600], 3000, 1.0, 0.5, 0),
        ] {
            assert_eq!(longest(times, end), Gap { seconds, began }, "{times:?}");
            assert_eq!(silent_seconds(times, end), silent, "{times:?}");
        }
    }

    #[test]
    fn an_endpoint_is_measured_by_its_own_answers() {
        let mut times = Times::start();
        times.answers = vec![(0, Kind::Write, 100), (1, Kind::Write, 600), (1, Kind::Read, 900)];
        let services = times.services(2, Duration::from_secs(1));
        let gaps: Vec<f64> = services.iter().map(|service| service.longest_without_write.seconds).collect();
        assert_eq!(gaps, [0.5, 0.9, 0.6]);
        assert_eq!(services.iter().map(|service| service.reads).collect::<Vec<_>>(), [1, 0, 1]);
        let last: Vec<_> = services.iter().map(|service| service.last_write).collect();
        assert_eq!(last, [Some(0.6), Some(0.1), Some(0.6)]);
    }
}
