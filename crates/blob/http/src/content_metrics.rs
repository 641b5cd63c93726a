//! What became of the content of blobs, for Prometheus.

use blob_service::BlobService;
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
        let counts = self.0.content_counts();
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
}
