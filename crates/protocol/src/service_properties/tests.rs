use super::*;
use common::Refusal;

const TABLE: ServiceKind = ServiceKind::Table;

const FRESH: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors /></StorageServiceProperties>";

#[test]
fn a_fresh_account_is_the_services_to_the_byte() {
    assert_eq!(String::from_utf8(ServiceProperties::default().write()).unwrap(), FRESH);
    assert_eq!(ServiceProperties::read(TABLE, FRESH.as_bytes()), Some(ServiceProperties::default()));
}

fn rule(inside: &str) -> String {
    format!("<StorageServiceProperties><Cors><CorsRule>{inside}</CorsRule></Cors></StorageServiceProperties>")
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
    assert_eq!(ServiceProperties::read(TABLE, text.as_bytes()).as_ref(), Some(&properties));
    properties.apply(Update::read(b"<StorageServiceProperties><Cors/></StorageServiceProperties>").unwrap());
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

#[test]
fn whole_names_of_a_rule_stand_before_prefixes() {
    let body = rule(
        "<AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders>x-a*,x-b</AllowedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds>",
    );
    let update = Update::read(body.as_bytes()).unwrap();
    assert_eq!(update.cors.unwrap()[0].allowed_headers, ["x-b", "x-a*"]);
}

#[test]
fn a_fresh_queue_service_has_no_metrics() {
    let properties = ServiceProperties::of_fresh_account(ServiceKind::Queue);
    let text = String::from_utf8(properties.write()).unwrap();
    assert!(text.contains("<HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>"), "{text}");
    assert_eq!(ServiceProperties::read(ServiceKind::Queue, text.as_bytes()), Some(properties));
}
