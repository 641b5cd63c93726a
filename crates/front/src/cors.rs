//! Cross-origin requests (CORS), by the rules in an account's service properties.

use common::Refusal;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response};
use protocol::service_properties::CorsRule;

use crate::headers::header;
use crate::response_body::Body;

const ANY: &str = "*";

/// The headers that answer a preflight, if the announced request is allowed. Preflights carry no credentials.
pub fn preflight(rules: &[CorsRule], headers: &HeaderMap) -> Result<HeaderMap, Refusal> {
    let origin = header(headers, ORIGIN).if_readable().ok_or(Refusal::CorsHeaderMissing)?;
    let method =
        header(headers, ACCESS_CONTROL_REQUEST_METHOD).if_readable().ok_or(Refusal::CorsHeaderMissing)?;
    let asked =
        header(headers, ACCESS_CONTROL_REQUEST_HEADERS).required_readable(Refusal::CorsPreflightFailure)?;
    // The first rule for this origin and method decides.
    let rule = find(rules, origin, method).ok_or(Refusal::CorsPreflightFailure)?;
    let mut names = asked.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    if !names.all(|name| lists(&rule.allowed_headers, name)) {
        return Err(Refusal::CorsPreflightFailure);
    }
    let mut answer = HeaderMap::new();
    let mut put = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            answer.insert(name, value);
        }
    };
    put(ACCESS_CONTROL_ALLOW_ORIGIN, if is_for_all(rule) { ANY } else { origin });
    put(ACCESS_CONTROL_ALLOW_METHODS, method);
    if let Some(asked) = asked {
        put(ACCESS_CONTROL_ALLOW_HEADERS, asked);
    }
    put(ACCESS_CONTROL_MAX_AGE, &rule.max_age_seconds.to_string());
    put(ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
    Ok(answer)
}

/// Adds the headers that tell browsers and caches who may read this answer. Refuses nothing.
pub fn decorate<'o>(
    response: &mut Response<Body>,
    rules: &[CorsRule],
    method: &Method,
    origin: impl FnOnce() -> Option<&'o HeaderValue>,
) {
    if rules.is_empty() {
        return;
    }
    let origin = origin();
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let origin_text = origin.and_then(|origin| origin.to_str().ok());
    // A cache may serve the answer to a read without an origin to a browser, so such an answer has the headers too.
    let rule = match origin_text {
        Some(origin) => find(rules, origin, method.as_str()),
        None if reads => rules.iter().find(|rule| is_for_all(rule) && names_method(rule, method.as_str())),
        None => None,
    };
    let for_all = rule.is_some_and(is_for_all);
    if reads && !for_all {
        response.headers_mut().insert(VARY, HeaderValue::from_static("Origin"));
    }
    let Some(rule) = rule else { return };
    let exposed = exposed(rule, response.headers());
    let allowed = if for_all { Some(HeaderValue::from_static(ANY)) } else { origin.cloned() };
    if let Some(allowed) = allowed {
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    }
    if let Some(exposed) = exposed {
        response.headers_mut().insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

fn find<'r>(rules: &'r [CorsRule], origin: &str, method: &str) -> Option<&'r CorsRule> {
    let names_origin =
        |rule: &CorsRule| rule.allowed_origins.iter().any(|allowed| allowed == ANY || allowed == origin);
    rules.iter().find(|rule| names_origin(rule) && names_method(rule, method))
}

fn names_method(rule: &CorsRule, method: &str) -> bool {
    rule.allowed_methods.iter().any(|allowed| allowed == method)
}

fn is_for_all(rule: &CorsRule) -> bool {
    rule.allowed_origins.iter().any(|origin| origin == ANY)
}

/// Whether a list of names and prefixes (`x-ms-*`) has this name, in any case.
fn lists(list: &[String], name: &str) -> bool {
    list.iter().any(|entry| match entry.strip_suffix('*') {
        Some(prefix) => name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)),
        None => entry.eq_ignore_ascii_case(name),
    })
}

/// Browsers do not know prefixes, so each is replaced by the headers of this answer that begin with it.
fn exposed(rule: &CorsRule, headers: &HeaderMap) -> Option<HeaderValue> {
    let present =
        headers.keys().map(http::HeaderName::as_str).filter(|name| lists(&rule.exposed_headers, name));
    let mut names: Vec<&str> = present.collect();
    for name in rule.exposed_headers.iter().filter(|name| !name.ends_with('*')) {
        if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            names.push(name);
        }
    }
    if names.is_empty() { None } else { HeaderValue::from_str(&names.join(",")).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::ServiceKind;

    fn rule(origins: &str, methods: &str, headers: &str) -> CorsRule {
        let list = |text: &str| text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect();
        CorsRule {
            allowed_origins: list(origins),
            allowed_methods: list(methods),
            allowed_headers: list(headers),
            exposed_headers: list("x-ms-*,etag,x-none"),
            max_age_seconds: 7,
        }
    }

    /// The rules of the documentation's example.
    fn rules() -> Vec<CorsRule> {
        vec![
            rule("http://contoso", "PUT,HEAD", "h1,h2"),
            rule("*", "PUT,GET", "h1,h2"),
            rule("http://contoso", "GET", "x-ms-client-request-id"),
        ]
    }

    fn check_preflight(origin: &str, method: &str, headers: &str, expected: &str) {
        let mut request = HeaderMap::new();
        for (name, value) in [
            (ORIGIN, origin),
            (ACCESS_CONTROL_REQUEST_METHOD, method),
            (ACCESS_CONTROL_REQUEST_HEADERS, headers),
        ] {
            if !value.is_empty() {
                request.insert(name, value.parse().unwrap());
            }
        }
        let shown = match preflight(&rules(), &request) {
            Ok(answer) => answer[ACCESS_CONTROL_ALLOW_ORIGIN].to_str().unwrap().to_owned(),
            Err(refusal) => refusal.code(ServiceKind::Table).to_owned(),
        };
        assert_eq!(shown, expected, "{origin} {method} {headers}");
    }

    #[test]
    fn the_first_rule_for_origin_and_method_decides() {
        check_preflight("http://contoso", "PUT", "h1", "http://contoso");
        check_preflight("http://contoso", "PUT", "H1, h2", "http://contoso");
        check_preflight("http://contoso", "GET", "h1", "*");
        check_preflight("http://contoso", "GET", "", "*");
        check_preflight("http://contoso", "GET", "x-ms-client-request-id", "CorsPreflightFailure");
        check_preflight("http://other", "PUT", "h2", "*");
        check_preflight("http://other", "HEAD", "", "CorsPreflightFailure");
        check_preflight("HTTP://CONTOSO", "HEAD", "", "CorsPreflightFailure");
        check_preflight("http://contoso", "DELETE", "", "CorsPreflightFailure");
        check_preflight("", "GET", "", "InvalidHeaderValue");
        check_preflight("http://contoso", "", "", "InvalidHeaderValue");
    }

    fn check(rules: &[CorsRule], method: Method, origin: Option<&str>, expected: &str) {
        let mut response = Response::new(Body::sized(Vec::new()));
        response.headers_mut().insert("x-ms-version", HeaderValue::from_static("v"));
        let origin = origin.map(|origin| HeaderValue::from_str(origin).unwrap());
        decorate(&mut response, rules, &method, || origin.as_ref());
        let show =
            |name| response.headers().get(name).map_or("-", |value: &HeaderValue| value.to_str().unwrap());
        let shown = format!(
            "{} {} {}",
            show(VARY),
            show(ACCESS_CONTROL_ALLOW_ORIGIN),
            show(ACCESS_CONTROL_EXPOSE_HEADERS)
        );
        assert_eq!(shown, expected, "{method} {origin:?}");
    }

    #[test]
    fn answers_tell_browsers_and_caches() {
        let one = [rule("http://a", "GET,PUT", "")];
        let all = [rule("*", "GET,PUT", "")];
        let exposed = "x-ms-version,etag,x-none";
        check(&[], Method::GET, Some("http://a"), "- - -");
        check(&[], Method::GET, None, "- - -");
        check(&one, Method::GET, None, "Origin - -");
        check(&one, Method::GET, Some("http://a"), &format!("Origin http://a {exposed}"));
        check(&one, Method::GET, Some("http://b"), "Origin - -");
        check(&one, Method::PUT, Some("http://a"), &format!("- http://a {exposed}"));
        check(&one, Method::PUT, Some("http://b"), "- - -");
        check(&one, Method::PUT, None, "- - -");
        check(&one, Method::DELETE, Some("http://a"), "- - -");
        check(&all, Method::GET, None, &format!("- * {exposed}"));
        check(&all, Method::GET, Some("http://a"), &format!("- * {exposed}"));
        check(&all, Method::PUT, Some("http://a"), &format!("- * {exposed}"));
    }
}
