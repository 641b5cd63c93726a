//! Prometheus' text format, version 0.0.4: families of samples, each with its help and its kind.

use std::fmt::{self, Write as _};

use store::Spread;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows. Its name ends in `_total`.
    Counter,
    Gauge,
    Histogram,
}

impl MetricKind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// Writes the text. The samples of a family follow its head.
#[derive(Debug, Default)]
pub struct TextWriter {
    text: String,
}

impl TextWriter {
    /// The media type of the text.
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    pub fn family(&mut self, name: &str, kind: MetricKind, help: &str) {
        self.write(format_args!("# HELP {name} {}\n# TYPE {name} {}\n", HelpText(help), kind.name()));
    }

    pub fn sample(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        self.write(format_args!("{name}{} {}\n", LabelText(labels, None), Number(value)));
    }

    /// A family of one sample without labels.
    pub fn single(&mut self, name: &str, kind: MetricKind, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// The samples of a histogram.
    pub fn spread(&mut self, name: &str, labels: Labels<'_>, spread: &Spread) {
        let mut count = 0;
        for (bound, up_to) in spread.cumulative() {
            let bound = Number(bound).to_string();
            self.write(format_args!("{name}_bucket{} {up_to}\n", LabelText(labels, Some(("le", &bound)))));
            count = up_to;
        }
        self.sample(&format!("{name}_sum"), labels, spread.sum());
        self.sample(&format!("{name}_count"), labels, count as f64);
    }

    pub fn into_text(self) -> String {
        self.text
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string can't fail.
        let _ = self.text.write_fmt(text);
    }
}

struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            value if value == f64::INFINITY => f.write_str("+Inf"),
            value if value == f64::NEG_INFINITY => f.write_str("-Inf"),
            value if value.is_nan() => f.write_str("NaN"),
            value => value.fmt(f),
        }
    }
}

struct HelpText<'a>(&'a str);

impl fmt::Display for HelpText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0, "\\\n")
    }
}

struct LabelText<'a>(Labels<'a>, Option<(&'a str, &'a str)>);

impl fmt::Display for LabelText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "{";
        for (name, value) in self.0.iter().copied().chain(self.1) {
            write!(f, "{before}{name}=\"")?;
            escape(f, value, "\\\n\"")?;
            f.write_char('"')?;
            before = ",";
        }
        f.write_str(if before == "{" { "" } else { "}" })
    }
}

fn escape(f: &mut fmt::Formatter<'_>, text: &str, special: &str) -> fmt::Result {
    for letter in text.chars() {
        match letter {
            '\n' => f.write_str("\\n")?,
            letter if special.contains(letter) => write!(f, "\\{letter}")?,
            letter => f.write_char(letter)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{LiveSpread, SpreadScale};

    static MILLISECONDS: SpreadScale = SpreadScale { bounds: &[1, 2500], per_shown: 1000 };

    #[test]
    fn families_are_written_as_the_format_says() {
        let times = LiveSpread::new(&MILLISECONDS);
        [1, 2000, 5000].into_iter().for_each(|value| times.note(value));
        let mut text = TextWriter::default();
        text.family("a_total", MetricKind::Counter, "Back\\slash and\nline.");
        text.sample("a_total", &[("of", "x\"y\\z\n"), ("to", "b")], 3.0);
        text.single("b", MetricKind::Gauge, "Parts.", 0.25);
        text.family("c_seconds", MetricKind::Histogram, "Times.");
        text.spread("c_seconds", &[("of", "x")], &times.read());
        text.single("d", MetricKind::Gauge, "No number.", f64::NAN);
        let expected = r#"# HELP a_total Back\\slash and\nline.
# TYPE a_total counter
a_total{of="x\"y\\z\n",to="b"} 3
# HELP b Parts.
# TYPE b gauge
b 0.25
# HELP c_seconds Times.
# TYPE c_seconds histogram
c_seconds_bucket{of="x",le="0.001"} 1
c_seconds_bucket{of="x",le="2.5"} 2
c_seconds_bucket{of="x",le="+Inf"} 3
c_seconds_sum{of="x"} 7.001
c_seconds_count{of="x"} 3
# HELP d No number.
# TYPE d gauge
d NaN
"#;
        assert_eq!(text.into_text(), expected);
    }
}
