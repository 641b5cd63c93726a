//! Service properties as XML: logging, metrics and CORS rules of a service. Blobs have more (`blob.rs`).

mod blob;
mod read;

pub use blob::{BlobProperties, BlobUpdate, DeleteRetention, StaticWebsite};
pub use read::long_list;

use std::fmt::Write as _;

use common::ServiceKind;

use crate::xml_tree::escape;

const END: &str = "</StorageServiceProperties>";

/// The properties that every service has. The default is that of tables in a fresh account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceProperties {
    pub logging: Logging,
    pub hour_metrics: Metrics,
    pub minute_metrics: Metrics,
    pub cors: Vec<CorsRule>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logging {
    pub read: bool,
    pub write: bool,
    pub delete: bool,
    pub retention_days: Option<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    pub enabled: bool,
    pub include_apis: bool,
    pub retention_days: Option<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorsRule {
    pub allowed_methods: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub allowed_headers: Vec<String>,
    pub exposed_headers: Vec<String>,
    pub max_age_seconds: u64,
}

/// What Set Service Properties changes; the rest stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    pub logging: Option<Logging>,
    pub hour_metrics: Option<Metrics>,
    pub minute_metrics: Option<Metrics>,
    pub cors: Option<Vec<CorsRule>>,
}

impl Default for ServiceProperties {
    fn default() -> Self {
        Self::of_fresh_account(ServiceKind::Table)
    }
}

impl ServiceProperties {
    /// Queues start without metrics (spec: access-and-service 5.1, queue-operations 3.2).
    pub fn of_fresh_account(service: ServiceKind) -> Self {
        let hour_metrics = match service {
            ServiceKind::Blob | ServiceKind::Table => {
                Metrics { enabled: true, include_apis: true, retention_days: Some(7) }
            }
            ServiceKind::Queue => Metrics::default(),
        };
        Self {
            logging: Logging::default(),
            hour_metrics,
            minute_metrics: Metrics::default(),
            cors: Vec::new(),
        }
    }

    /// Reads what `write` wrote: the stored document.
    pub fn read(service: ServiceKind, document: &[u8]) -> Option<Self> {
        let mut properties = Self::of_fresh_account(service);
        properties.apply(Update::read(document).ok()?);
        Some(properties)
    }

    pub fn apply(&mut self, update: Update) {
        if let Some(logging) = update.logging {
            self.logging = logging;
        }
        if let Some(metrics) = update.hour_metrics {
            self.hour_metrics = metrics;
        }
        if let Some(metrics) = update.minute_metrics {
            self.minute_metrics = metrics;
        }
        if let Some(cors) = update.cors {
            self.cors = cors;
        }
    }

    /// The answer to Get Service Properties, with its byte order mark. The order of elements is fixed.
    pub fn write(&self) -> Vec<u8> {
        let mut out = self.write_sections();
        out.push_str(END);
        out.into_bytes()
    }

    /// The same for versions before 2013-08-15, which have only hourly metrics and no CORS.
    pub fn write_old(&self) -> Vec<u8> {
        let mut out = self.write_old_sections();
        out.push_str(END);
        out.into_bytes()
    }

    /// The document without its end tag.
    fn write_sections(&self) -> String {
        let metrics = [("HourMetrics", &self.hour_metrics), ("MinuteMetrics", &self.minute_metrics)];
        let mut out = self.write_start(&metrics);
        if self.cors.is_empty() {
            out.push_str("<Cors />");
        } else {
            out.push_str("<Cors>");
            self.cors.iter().for_each(|rule| rule.write(&mut out));
            out.push_str("</Cors>");
        }
        out
    }

    fn write_old_sections(&self) -> String {
        self.write_start(&[("Metrics", &self.hour_metrics)])
    }

    fn write_start(&self, metrics: &[(&str, &Metrics)]) -> String {
        let mut out =
            String::from("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties>");
        // Writing to a String can't fail.
        let Logging { read, write, delete, retention_days } = &self.logging;
        let _ = write!(
            out,
            "<Logging><Version>1.0</Version><Read>{read}</Read><Write>{write}</Write><Delete>{delete}</Delete>{}</Logging>",
            retention(*retention_days)
        );
        for (name, metrics) in metrics {
            let _ = write!(out, "<{name}><Version>1.0</Version><Enabled>{}</Enabled>", metrics.enabled);
            if metrics.enabled {
                let _ = write!(out, "<IncludeAPIs>{}</IncludeAPIs>", metrics.include_apis);
            }
            let _ = write!(out, "{}</{name}>", retention(metrics.retention_days));
        }
        out
    }
}

fn retention(days: Option<u16>) -> String {
    match days {
        Some(days) => {
            format!("<RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy>")
        }
        None => "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>".to_owned(),
    }
}

impl CorsRule {
    fn write(&self, out: &mut String) {
        let list = |items: &[String]| escape(&items.join(","));
        out.push_str("<CorsRule>");
        for (name, items) in [
            ("AllowedMethods", &self.allowed_methods),
            ("AllowedOrigins", &self.allowed_origins),
            ("AllowedHeaders", &self.allowed_headers),
            ("ExposedHeaders", &self.exposed_headers),
        ] {
            let _ = match items.is_empty() {
                true => write!(out, "<{name} />"),
                false => write!(out, "<{name}>{}</{name}>", list(items)),
            };
        }
        let _ = write!(out, "<MaxAgeInSeconds>{}</MaxAgeInSeconds></CorsRule>", self.max_age_seconds);
    }
}

#[cfg(test)]
mod tests;
