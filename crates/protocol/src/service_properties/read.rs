//! Reads the body of Set Service Properties.

use common::{Refusal, limits};

use super::{CorsRule, Logging, Metrics, Update};
use crate::xml_tree::{Element, RepeatedChild};

/// The sections that every service has. `Metrics` is the name of `HourMetrics` in versions before 2013-08-15.
pub(super) const SECTIONS: [&str; 5] = ["Logging", "HourMetrics", "Metrics", "MinuteMetrics", "Cors"];

impl Update {
    pub fn read(body: &[u8]) -> Result<Self, Refusal> {
        root(body)
            .filter(|root| root.has_only(&SECTIONS))
            .and_then(|root| Self::of(&root))
            .ok_or_else(|| refusal(body))
    }

    pub(super) fn of(root: &Element) -> Option<Self> {
        let section = |name| root.child(name).ok();
        let hourly = section("HourMetrics")?.or(section("Metrics")?);
        Some(Self {
            logging: optional(section("Logging")?, logging)?,
            hour_metrics: optional(hourly, metrics)?,
            minute_metrics: optional(section("MinuteMetrics")?, metrics)?,
            cors: optional(section("Cors")?, cors)?,
        })
    }
}

pub(super) fn root(body: &[u8]) -> Option<Element> {
    Element::parse(body).filter(|root| root.name == "StorageServiceProperties")
}

/// The refusal of a document that can't be read.
pub(super) fn refusal(body: &[u8]) -> Refusal {
    if long_list(body).is_some() { Refusal::XmlNodeValue } else { Refusal::XmlNotValid }
}

/// The first list of a CORS rule that is too long, by the name of its element, and its text: the service has another refusal
/// for that.
pub fn long_list(body: &[u8]) -> Option<(&'static str, String)> {
    let root = Element::parse(body)?;
    let cors = root.child("Cors").ok()??;
    if cors.children.len() > limits::CORS_RULES_MAX {
        return None;
    }
    let text = |rule: &Element, name| rule.child(name).ok().flatten().map_or("", Element::text).to_owned();
    let is_long = |name: &str, text: &str| {
        let (literals, prefixes) = counts(&items(text));
        literals > limits::CORS_ITEMS_MAX
            || (name != "AllowedOrigins" && prefixes > limits::CORS_PREFIXES_MAX)
    };
    let lists = ["AllowedOrigins", "AllowedHeaders", "ExposedHeaders"];
    let mut all = cors.children.iter().flat_map(|rule| lists.map(|name| (name, text(rule, name))));
    all.find(|(name, text)| is_long(name, text))
}

fn items(text: &str) -> Vec<String> {
    text.split(',').map(str::trim_ascii).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// The number of whole names in a list, and of prefixes.
fn counts(items: &[String]) -> (usize, usize) {
    let prefixes = items.iter().filter(|item| item.len() > 1 && item.ends_with('*')).count();
    (items.len() - prefixes, prefixes)
}

/// `Some(None)` if the element is absent, `None` if it can't be read.
pub(super) fn optional<T>(
    element: Option<&Element>,
    read: impl Fn(&Element) -> Option<T>,
) -> Option<Option<T>> {
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

/// The days; `Some(None)` if the policy is off, `None` if it can't be read.
fn retention_policy(element: &Element) -> Option<Option<u16>> {
    let policy = child(element, "RetentionPolicy")??;
    if policy.has_only(&["Enabled", "Days"]) { days(policy) } else { None }
}

/// The `Days` of a policy, which `Enabled` needs. `Some(None)` if it is not enabled, `None` if it can't be read.
pub(super) fn days(policy: &Element) -> Option<Option<u16>> {
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

/// The methods that a rule may name. Current clients merge with PATCH.
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
        allowed_headers: in_stored_order(list("AllowedHeaders")?),
        exposed_headers: in_stored_order(list("ExposedHeaders")?),
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

/// Whole names before prefixes, each in the order given, as recorded of all services.
fn in_stored_order(names: Vec<String>) -> Vec<String> {
    let (prefixes, mut names): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.ends_with('*'));
    names.extend(prefixes);
    names
}

/// A child that may be absent, but not repeated. `None` if it is repeated.
pub(super) fn child<'e>(element: &'e Element, name: &str) -> Option<Option<&'e Element>> {
    element.child(name).map_err(|RepeatedChild| ()).ok()
}

pub(super) fn flag(element: &Element, name: &str) -> Option<bool> {
    match child(element, name)??.text() {
        text if text.eq_ignore_ascii_case("true") => Some(true),
        text if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn has_version(element: &Element) -> Option<bool> {
    Some(child(element, "Version")??.text() == "1.0")
}
