//! Service properties as XML: logging, metrics and CORS rules of an account.

use std::fmt::Write as _;

use common::{Refusal, limits};

use crate::xml_tree::{Element, Repeated, escape};

/// All of an account's properties. The default is what a fresh account of the service has.
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

/// What a Set asks to change; the rest stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    pub logging: Option<Logging>,
    pub hour_metrics: Option<Metrics>,
    pub minute_metrics: Option<Metrics>,
    pub cors: Option<Vec<CorsRule>>,
}

impl Default for ServiceProperties {
    fn default() -> Self {
        Self {
            logging: Logging::default(),
            hour_metrics: Metrics { enabled: true, include_apis: true, retention_days: Some(7) },
            minute_metrics: Metrics::default(),
            cors: Vec::new(),
        }
    }
}

impl ServiceProperties {
    /// What `write` wrote, as it is stored.
    pub fn read(document: &[u8]) -> Option<Self> {
        let mut properties = Self::default();
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

    /// Get Service Properties' answer, byte order mark and all; the order of elements is fixed.
    pub fn write(&self) -> Vec<u8> {
        let metrics = [("HourMetrics", &self.hour_metrics), ("MinuteMetrics", &self.minute_metrics)];
        let mut out = self.write_start(&metrics);
        if self.cors.is_empty() {
            out.push_str("<Cors />");
        } else {
            out.push_str("<Cors>");
            self.cors.iter().for_each(|rule| rule.write(&mut out));
            out.push_str("</Cors>");
        }
        out.push_str("</StorageServiceProperties>");
        out.into_bytes()
    }

    /// The same for versions before 2013-08-15, which know the hourly metrics alone, and no CORS.
    pub fn write_old(&self) -> Vec<u8> {
        let mut out = self.write_start(&[("Metrics", &self.hour_metrics)]);
        out.push_str("</StorageServiceProperties>");
        out.into_bytes()
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

impl Update {
    pub fn read(body: &[u8]) -> Result<Self, Refusal> {
        update(body)
            .ok_or_else(|| if has_long_list(body) { Refusal::XmlNodeValue } else { Refusal::XmlNotValid })
    }
}

/// Whether a CORS rule lists more than it may: the service has another refusal for that.
fn has_long_list(body: &[u8]) -> bool {
    let Some(root) = Element::parse(body) else { return false };
    let Ok(Some(cors)) = root.child("Cors") else { return false };
    let is_long = |rule: &Element, name: &str| {
        let text = rule.child(name).ok().flatten().map_or("", Element::text);
        let (literals, prefixes) = counts(&items(text));
        literals > limits::CORS_ITEMS_MAX
            || (name != "AllowedOrigins" && prefixes > limits::CORS_PREFIXES_MAX)
    };
    let lists = ["AllowedOrigins", "AllowedHeaders", "ExposedHeaders"];
    cors.children.len() <= limits::CORS_RULES_MAX
        && cors.children.iter().any(|rule| lists.iter().any(|name| is_long(rule, name)))
}

fn items(text: &str) -> Vec<String> {
    text.split(',').map(str::trim_ascii).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// How many names there are in a list, and how many prefixes.
fn counts(items: &[String]) -> (usize, usize) {
    let prefixes = items.iter().filter(|item| item.len() > 1 && item.ends_with('*')).count();
    (items.len() - prefixes, prefixes)
}

fn update(body: &[u8]) -> Option<Update> {
    let root = Element::parse(body).filter(|root| root.name == "StorageServiceProperties")?;
    // `Metrics` is what the versions before 2013-08-15 called the hourly ones.
    if !root.has_only(&["Logging", "HourMetrics", "Metrics", "MinuteMetrics", "Cors"]) {
        return None;
    }
    let section = |name| root.child(name).ok();
    let hourly = section("HourMetrics")?.or(section("Metrics")?);
    Some(Update {
        logging: optional(section("Logging")?, logging)?,
        hour_metrics: optional(hourly, metrics)?,
        minute_metrics: optional(section("MinuteMetrics")?, metrics)?,
        cors: optional(section("Cors")?, cors)?,
    })
}

/// Nothing for an element that is not there, but none that can't be read.
fn optional<T>(element: Option<&Element>, read: impl Fn(&Element) -> Option<T>) -> Option<Option<T>> {
    element.map_or(Some(None), |element| read(element).map(Some))
}

fn logging(element: &Element) -> Option<Logging> {
    if !element.has_only(&["Version", "Read", "Write", "Delete", "RetentionPolicy"]) || !has_version(element)?
    {
        return None;
    }
    Some(Logging {
        read: flag(element, "Read")?,
        write: flag(element, "Write")?,
        delete: flag(element, "Delete")?,
        retention_days: retention_policy(element)?,
    })
}

fn metrics(element: &Element) -> Option<Metrics> {
    if !element.has_only(&["Version", "Enabled", "IncludeAPIs", "RetentionPolicy"]) || !has_version(element)?
    {
        return None;
    }
    let enabled = flag(element, "Enabled")?;
    let include_apis = match child(element, "IncludeAPIs")? {
        Some(_) => flag(element, "IncludeAPIs")?,
        None if enabled => return None,
        None => false,
    };
    Some(Metrics { enabled, include_apis, retention_days: retention_policy(element)? })
}

/// The days, or none if nothing is thrown away.
fn retention_policy(element: &Element) -> Option<Option<u16>> {
    let policy = child(element, "RetentionPolicy")??;
    if !policy.has_only(&["Enabled", "Days"]) {
        return None;
    }
    let days = child(policy, "Days")?.map(|days| {
        days.text().parse::<u16>().ok().filter(|days| (1..=limits::RETENTION_DAYS_MAX).contains(days))
    });
    match (flag(policy, "Enabled")?, days) {
        (true, Some(days)) => Some(Some(days?)),
        (true, None) => None,
        (false, Some(None)) => None,
        (false, _) => Some(None),
    }
}

fn cors(element: &Element) -> Option<Vec<CorsRule>> {
    if element.children.len() > limits::CORS_RULES_MAX || !element.has_only(&["CorsRule"]) {
        return None;
    }
    let rules: Vec<CorsRule> = element.children.iter().map(cors_rule).collect::<Option<_>>()?;
    let text: usize =
        element.children.iter().flat_map(|rule| &rule.children).map(|field| field.text().len()).sum();
    (text <= limits::CORS_TEXT_BYTES_MAX).then_some(rules)
}

/// Methods the service lets a rule name; PATCH is what today's clients merge with.
const CORS_METHODS: [&str; 10] =
    ["CONNECT", "DELETE", "GET", "HEAD", "MERGE", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

fn cors_rule(element: &Element) -> Option<CorsRule> {
    let fields = ["AllowedMethods", "AllowedOrigins", "AllowedHeaders", "ExposedHeaders", "MaxAgeInSeconds"];
    if !element.has_only(&fields) {
        return None;
    }
    let list =
        |name: &str| -> Option<Vec<String>> { Some(items(child(element, name)?.map_or("", Element::text))) };
    let rule = CorsRule {
        allowed_methods: list("AllowedMethods")?,
        allowed_origins: list("AllowedOrigins")?,
        allowed_headers: literals_first(list("AllowedHeaders")?),
        exposed_headers: literals_first(list("ExposedHeaders")?),
        max_age_seconds: child(element, "MaxAgeInSeconds")??.text().parse().ok()?,
    };
    let short = |items: &[String]| items.iter().all(|item| item.len() <= limits::CORS_ITEM_BYTES_MAX);
    let headers_fit = |items: &[String]| {
        let (literals, prefixes) = counts(items);
        short(items) && prefixes <= limits::CORS_PREFIXES_MAX && literals <= limits::CORS_ITEMS_MAX
    };
    let valid = !rule.allowed_methods.is_empty()
        && rule.allowed_methods.iter().all(|method| CORS_METHODS.contains(&method.as_str()))
        && !rule.allowed_origins.is_empty()
        && rule.allowed_origins.len() <= limits::CORS_ITEMS_MAX
        && short(&rule.allowed_origins)
        && headers_fit(&rule.allowed_headers)
        && headers_fit(&rule.exposed_headers);
    valid.then_some(rule)
}

/// The service keeps whole names before prefixes, each in the order given.
fn literals_first(names: Vec<String>) -> Vec<String> {
    let (prefixes, mut names): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.ends_with('*'));
    names.extend(prefixes);
    names
}

/// A child that may be missing, but not stand twice.
fn child<'e>(element: &'e Element, name: &str) -> Option<Option<&'e Element>> {
    element.child(name).map_err(|Repeated| ()).ok()
}

fn flag(element: &Element, name: &str) -> Option<bool> {
    match child(element, name)??.text() {
        text if text.eq_ignore_ascii_case("true") => Some(true),
        text if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn has_version(element: &Element) -> Option<bool> {
    Some(child(element, "Version")??.text() == "1.0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors /></StorageServiceProperties>";

    #[test]
    fn a_fresh_account_is_the_services_to_the_byte() {
        assert_eq!(String::from_utf8(ServiceProperties::default().write()).unwrap(), FRESH);
        assert_eq!(ServiceProperties::read(FRESH.as_bytes()), Some(ServiceProperties::default()));
    }

    fn rule(inside: &str) -> String {
        format!(
            "<StorageServiceProperties><Cors><CorsRule>{inside}</CorsRule></Cors></StorageServiceProperties>"
        )
    }

    #[test]
    fn what_is_sent_changes_and_the_rest_stays() {
        let mut properties = ServiceProperties::default();
        let body = rule(
            "<AllowedOrigins>http://a , *</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-a*,x-b</AllowedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds>",
        );
        properties.apply(Update::read(body.as_bytes()).unwrap());
        assert_eq!(properties.cors[0].allowed_origins, ["http://a", "*"]);
        assert!(properties.hour_metrics.enabled);
        let text = String::from_utf8(properties.write()).unwrap();
        assert!(text.contains("<Cors><CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>http://a,*</AllowedOrigins><AllowedHeaders>x-b,x-a*</AllowedHeaders><ExposedHeaders /><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors>"), "{text}");
        assert_eq!(ServiceProperties::read(text.as_bytes()).as_ref(), Some(&properties));
        properties
            .apply(Update::read(b"<StorageServiceProperties><Cors/></StorageServiceProperties>").unwrap());
        assert_eq!(properties, ServiceProperties::default());
    }

    #[test]
    fn what_is_incomplete_or_out_of_bounds_is_refused() {
        let root = |inside: &str| format!("<StorageServiceProperties>{inside}</StorageServiceProperties>");
        let logging = |retention: &str| {
            root(&format!(
                "<Logging><Version>1.0</Version><Read>true</Read><Write>true</Write><Delete>true</Delete><RetentionPolicy>{retention}</RetentionPolicy></Logging>"
            ))
        };
        let good = "<AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds>";
        let six = format!("<Cors>{}</Cors>", format!("<CorsRule>{good}</CorsRule>").repeat(6));
        for body in [
            String::new(),
            "<x/>".into(),
            root("<Unknown/>"),
            root("<Logging/>"),
            root(
                "<Logging><Version>2.0</Version><Read>true</Read><Write>true</Write><Delete>true</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>",
            ),
            logging("<Enabled>true</Enabled>"),
            logging("<Enabled>true</Enabled><Days>366</Days>"),
            logging("<Enabled>true</Enabled><Days>0</Days>"),
            logging("<Enabled>yes</Enabled>"),
            root(
                "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>",
            ),
            root(&six),
            rule("<AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>"),
            rule(&good.replace("GET", "FETCH")),
            rule(&good.replace('*', "")),
            rule(&good.replace('*', &"x".repeat(257))),
            rule(&good.replace('5', "-1")),
        ] {
            assert_eq!(Update::read(body.as_bytes()), Err(Refusal::XmlNotValid), "{body}");
        }
        assert!(Update::read(logging("<Enabled>true</Enabled><Days>365</Days>").as_bytes()).is_ok());
        assert!(Update::read(rule(good).as_bytes()).is_ok());
    }
}
