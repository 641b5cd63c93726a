//! The format of the answer, and the format of the body.

use model::Refusal;

use crate::{TableVersion, Version};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataLevel {
    None,
    Minimal,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json(MetadataLevel),
    Atom,
}

/// The formats that the client accepts. Errors are chosen separately: XML unless the request asks for JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    pub success: Format,
    pub error: Option<MetadataLevel>,
}

impl MetadataLevel {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }
}

/// `$format` wins over `Accept`. Of several types, the first that this version has is used.
///
/// `odata_3` says whether the client speaks OData 3.0, which JSON requires.
pub fn negotiate(
    format: Option<&str>,
    accept: Option<&str>,
    version: Version,
    odata_3: bool,
) -> Result<Negotiated, Refusal> {
    let asked = format.or(accept).unwrap_or("*/*");
    // What the SDKs send is known without taking it apart.
    let usual = match asked {
        "application/json;odata=minimalmetadata" => Some(MetadataLevel::Minimal),
        "application/json;odata=nometadata" => Some(MetadataLevel::None),
        "application/json;odata=fullmetadata" => Some(MetadataLevel::Full),
        _ => None,
    };
    if let Some(level) = usual {
        return json(level, version, odata_3);
    }
    let mut refusal = None;
    for media_type in asked.split(',') {
        match one(media_type, version, odata_3) {
            Ok(negotiated) => return Ok(negotiated),
            // If no type fits, the answer is the refusal of the first.
            Err(refused) => refusal = refusal.or(Some(refused)),
        }
    }
    Err(refusal.unwrap_or(Refusal::MediaTypeNotSupported))
}

const JSON: &str = "application/json";
const ATOM: &str = "application/atom+xml";
const XML: &str = "application/xml";
const ANY: [&str; 2] = ["*/*", "application/*"];

/// A media type in lower case, if it is one that is distinguished here.
fn known(kind: &str) -> &str {
    let kind = kind.trim();
    let same = |known: &&str| known.eq_ignore_ascii_case(kind);
    [JSON, ATOM, XML, ANY[0], ANY[1]].into_iter().find(same).unwrap_or(kind)
}

fn one(media_type: &str, version: Version, odata_3: bool) -> Result<Negotiated, Refusal> {
    let (kind, parameters) = media_type.split_once(';').unwrap_or((media_type, ""));
    match known(kind) {
        JSON => json(level(parameters).ok_or(Refusal::MediaTypeNotSupported)?, version, odata_3),
        ATOM | XML if version.has_atom() => Ok(Negotiated { success: Format::Atom, error: None }),
        ATOM | XML => Err(Refusal::AtomFormatNotSupported),
        "*/*" | "application/*" | "" if version.has_atom() => {
            Ok(Negotiated { success: Format::Atom, error: None })
        }
        "*/*" | "application/*" | "" => {
            Ok(Negotiated { success: Format::Json(MetadataLevel::Minimal), error: None })
        }
        _ => Err(Refusal::MediaTypeNotSupported),
    }
}

fn json(level: MetadataLevel, version: Version, odata_3: bool) -> Result<Negotiated, Refusal> {
    if !version.has_json() || !odata_3 {
        return Err(Refusal::JsonFormatNotSupported);
    }
    Ok(Negotiated { success: Format::Json(level), error: Some(level) })
}

fn level(parameters: &str) -> Option<MetadataLevel> {
    let odata = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("odata").then(|| value.trim().to_ascii_lowercase())
    });
    match odata.as_deref() {
        None | Some("minimalmetadata") => Some(MetadataLevel::Minimal),
        Some("nometadata") => Some(MetadataLevel::None),
        Some("fullmetadata") => Some(MetadataLevel::Full),
        Some(_) => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    Json,
    Atom,
}

/// The format of a request body. A body without a type is JSON if the version has it, else Atom.
pub fn of_body(content_type: Option<&str>, version: Version) -> Result<BodyFormat, Refusal> {
    let kind = known(content_type.unwrap_or_default().split(';').next().unwrap_or_default());
    match kind {
        JSON if version.has_json() => Ok(BodyFormat::Json),
        JSON => Err(Refusal::JsonFormatNotSupported),
        ATOM | XML if version.has_atom() => Ok(BodyFormat::Atom),
        ATOM | XML => Err(Refusal::AtomFormatNotSupported),
        "" if version.has_json() => Ok(BodyFormat::Json),
        "" => Ok(BodyFormat::Atom),
        _ => Err(Refusal::MediaTypeNotSupported),
    }
}

/// Whether a body of this type may be XML. Nothing says so of a body without a type.
pub fn may_be_xml(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.is_empty() || kind.ends_with("/xml") || kind.ends_with("+xml")
}

/// Whether `DataServiceVersion`/`MaxDataServiceVersion` allow OData 3.0. The second wins; without either, they do.
pub fn speaks_odata_3<'h>(
    data_service_version: impl FnOnce() -> Option<&'h str>,
    max_data_service_version: Option<&'h str>,
) -> bool {
    let said = max_data_service_version.or_else(data_service_version).unwrap_or("3.0");
    let number = said.split(';').next().unwrap_or_default().trim();
    !matches!(number, "1.0" | "2.0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: Option<&str>, version: &str, expected: &str) {
        let shown = match negotiate(None, accept, Version::parse(version).unwrap(), true) {
            Ok(Negotiated { success: Format::Atom, error }) => format!("atom {error:?}"),
            Ok(Negotiated { success: Format::Json(level), error }) => format!("{level:?} {error:?}"),
            Err(refusal) => refusal.code().to_owned(),
        };
        assert_eq!(shown, expected, "{accept:?} {version}");
    }

    #[test]
    fn accept_is_read_as_the_service_reads_it() {
        check(Some("application/json;odata=nometadata"), "2019-02-02", "None Some(None)");
        check(Some("application/json;odata=minimalmetadata"), "2019-02-02", "Minimal Some(Minimal)");
        check(Some("application/json;odata=fullmetadata"), "2019-02-02", "Full Some(Full)");
        check(Some("application/json;odata=fullmetadata"), "2012-02-12", "JsonFormatNotSupported");
        check(Some("application/json; odata=fullmetadata;charset=utf-8"), "2019-02-02", "Full Some(Full)");
        check(Some("application/json"), "2019-02-02", "Minimal Some(Minimal)");
        check(Some("application/json;odata=verbose"), "2019-02-02", "MediaTypeNotSupported");
        check(Some("*/*"), "2019-02-02", "Minimal None");
        check(None, "2019-02-02", "Minimal None");
        check(None, "2014-02-14", "atom None");
        check(Some("application/atom+xml"), "2015-12-11", "AtomFormatNotSupported");
        check(Some("application/atom+xml,application/xml"), "2011-08-18", "atom None");
        check(Some("application/atom+xml, application/json"), "2019-02-02", "Minimal Some(Minimal)");
        check(Some("application/json"), "2012-02-12", "JsonFormatNotSupported");
        check(Some("text/html"), "2019-02-02", "MediaTypeNotSupported");
    }

    #[test]
    fn format_wins_over_accept() {
        let version = Version::DEFAULT;
        let format = Some("application/json;odata=fullmetadata");
        let negotiated = negotiate(format, Some("application/json;odata=nometadata"), version, true).unwrap();
        assert_eq!(negotiated.success, Format::Json(MetadataLevel::Full));
        assert_eq!(negotiate(format, None, version, false), Err(Refusal::JsonFormatNotSupported));
    }

    #[test]
    fn data_service_versions_are_read_with_their_tails() {
        assert!(speaks_odata_3(|| None, None));
        assert!(speaks_odata_3(|| Some("1.0;"), Some("3.0;NetFx")));
        assert!(!speaks_odata_3(|| Some("3.0"), Some("2.0;NetFx")));
        assert!(!speaks_odata_3(|| Some("1.0;NetFx"), None));
    }
}
