//! What became of the content of blobs, for Prometheus.

use blob_service::BlobService;
use blob_service::content::ContentCounts;
use front::metrics::MetricKind::{Counter, Gauge};
use front::metrics::{MetricSource, TextWriter};

#[derive(Debug)]
pub struct ContentMetrics(BlobService);

impl ContentMetrics {
    pub fn new(service: BlobService) -> Self {
        Self(service)
    }
}

impl MetricSource for ContentMetrics {
    fn write(&self, text: &mut TextWriter) {
        write(&self.0.content_counts(), text);
    }
}

fn write(counts: &ContentCounts, text: &mut TextWriter) {
    let objects = "partita_blob_objects_total";
    text.family(objects, Counter, "Pieces of content, by what became of them.");
    for (outcome, count) in
        [("written", counts.written), ("removed", counts.removed), ("swept", counts.swept)]
    {
        text.sample(objects, &[("outcome", outcome)], count as f64);
    }
    let sweeps = "partita_blob_sweeps_total";
    text.family(sweeps, Counter, "Searches for content that no blob names, by outcome.");
    for (outcome, count) in [("done", counts.sweeps), ("failed", counts.failed_sweeps)] {
        text.sample(sweeps, &[("outcome", outcome)], count as f64);
    }
    for (name, help, count) in [
        ("partita_blob_downloads", "Downloads that run.", counts.readers),
        (
            "partita_blob_objects_held",
            "Pieces of content that are removed when their last download ends.",
            counts.waiting,
        ),
    ] {
        text.single(name, Gauge, help, count as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_has_its_own_place() {
        let counts = ContentCounts {
            written: 1,
            removed: 2,
            swept: 3,
            sweeps: 4,
            failed_sweeps: 5,
            waiting: 6,
            readers: 7,
        };
        let mut text = TextWriter::default();
        write(&counts, &mut text);
        let text = text.into_text();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "partita_blob_objects_total{outcome=\"written\"} 1",
                "partita_blob_objects_total{outcome=\"removed\"} 2",
                "partita_blob_objects_total{outcome=\"swept\"} 3",
                "partita_blob_sweeps_total{outcome=\"done\"} 4",
                "partita_blob_sweeps_total{outcome=\"failed\"} 5",
                "partita_blob_downloads 7",
                "partita_blob_objects_held 6",
            ]
        );
    }
}
