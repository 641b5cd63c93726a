//! The properties of the Blob service: those of every service, and its own (spec: blob-operations 4.2).

use std::fmt::Write as _;

use common::{Refusal, ServiceKind, Version};

use super::read::{SECTIONS, child, days, flag, optional, refusal, root};
use super::{END, ServiceProperties, Update};
use crate::xml_tree::{Element, escape};

/// The default is that of a fresh account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobProperties {
    pub shared: ServiceProperties,
    pub delete_retention: DeleteRetention,
    pub static_website: StaticWebsite,
    /// The version of a request that names none.
    pub default_version: Option<Version>,
}

/// How long deleted blobs can be restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteRetention {
    /// `None` if deleted blobs can't be restored.
    pub days: Option<u16>,
    pub allow_permanent_delete: bool,
}

/// How `$web` is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticWebsite {
    pub enabled: bool,
    pub index_document: Option<String>,
    pub error_document: Option<String>,
    pub default_index_document: Option<String>,
}

/// What Set Service Properties changes; the rest stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobUpdate {
    pub shared: Update,
    pub delete_retention: Option<DeleteRetention>,
    pub static_website: Option<StaticWebsite>,
    pub default_version: Option<Version>,
}

const DELETE_RETENTION: &str = "DeleteRetentionPolicy";
const STATIC_WEBSITE: &str = "StaticWebsite";
const DEFAULT_VERSION: &str = "DefaultServiceVersion";
const DOCUMENTS: [&str; 3] = ["IndexDocument", "ErrorDocument404Path", "DefaultIndexDocumentPath"];

impl Default for BlobProperties {
    fn default() -> Self {
        Self {
            shared: ServiceProperties::of_fresh_account(ServiceKind::Blob),
            delete_retention: DeleteRetention::default(),
            static_website: StaticWebsite::default(),
            default_version: None,
        }
    }
}

impl BlobProperties {
    /// Reads what `write` wrote: the stored document.
    pub fn read(document: &[u8]) -> Option<Self> {
        let mut properties = Self::default();
        properties.apply(BlobUpdate::read(document).ok()?);
        Some(properties)
    }

    pub fn apply(&mut self, update: BlobUpdate) {
        self.shared.apply(update.shared);
        if let Some(retention) = update.delete_retention {
            self.delete_retention = retention;
        }
        if let Some(website) = update.static_website {
            self.static_website = website;
        }
        if let Some(version) = update.default_version {
            self.default_version = Some(version);
        }
    }

    /// The answer to Get Service Properties, with its byte order mark. The order of elements is fixed.
    pub fn write(&self) -> Vec<u8> {
        let mut out = self.shared.write_sections();
        self.delete_retention.write(&mut out);
        self.static_website.write(&mut out);
        self.write_end(out)
    }

    /// The same for versions before 2013-08-15.
    pub fn write_old(&self) -> Vec<u8> {
        self.write_end(self.shared.write_old_sections())
    }

    fn write_end(&self, mut out: String) -> Vec<u8> {
        if let Some(version) = self.default_version {
            // Writing to a String can't fail.
            let _ = write!(out, "<{DEFAULT_VERSION}>{version}</{DEFAULT_VERSION}>");
        }
        out.push_str(END);
        out.into_bytes()
    }
}

impl DeleteRetention {
    fn write(&self, out: &mut String) {
        let Self { days, allow_permanent_delete } = self;
        let days = days.map_or(String::new(), |days| format!("<Days>{days}</Days>"));
        let enabled = self.days.is_some();
        let _ = write!(
            out,
            "<{DELETE_RETENTION}><Enabled>{enabled}</Enabled>{days}<AllowPermanentDelete>{allow_permanent_delete}</AllowPermanentDelete></{DELETE_RETENTION}>"
        );
    }
}

impl StaticWebsite {
    fn write(&self, out: &mut String) {
        let Self { enabled, index_document, error_document, default_index_document } = self;
        let _ = write!(out, "<{STATIC_WEBSITE}><Enabled>{enabled}</Enabled>");
        for (name, document) in DOCUMENTS.iter().zip([index_document, error_document, default_index_document])
        {
            if let Some(document) = document {
                let _ = write!(out, "<{name}>{}</{name}>", escape(document));
            }
        }
        let _ = write!(out, "</{STATIC_WEBSITE}>");
    }
}

impl BlobUpdate {
    pub fn read(body: &[u8]) -> Result<Self, Refusal> {
        root(body).and_then(|root| Self::of(&root)).ok_or_else(|| refusal(body))
    }

    fn of(root: &Element) -> Option<Self> {
        let names = [&SECTIONS[..], &[DELETE_RETENTION, STATIC_WEBSITE, DEFAULT_VERSION]].concat();
        if !root.has_only(&names) {
            return None;
        }
        Some(Self {
            shared: Update::of(root)?,
            delete_retention: optional(child(root, DELETE_RETENTION)?, delete_retention)?,
            static_website: optional(child(root, STATIC_WEBSITE)?, static_website)?,
            default_version: optional(child(root, DEFAULT_VERSION)?, |version| {
                Version::parse(version.text())
            })?,
        })
    }
}

fn delete_retention(element: &Element) -> Option<DeleteRetention> {
    const PERMANENT: &str = "AllowPermanentDelete";
    if !element.has_only(&["Enabled", "Days", PERMANENT]) {
        return None;
    }
    let allow_permanent_delete = match child(element, PERMANENT)? {
        Some(_) => flag(element, PERMANENT)?,
        None => false,
    };
    Some(DeleteRetention { days: days(element)?, allow_permanent_delete })
}

fn static_website(element: &Element) -> Option<StaticWebsite> {
    let [index, error, default] = DOCUMENTS;
    if !element.has_only(&["Enabled", index, error, default]) {
        return None;
    }
    // An empty name says as little as none.
    let document = |name| {
        let text = child(element, name)?.map_or("", Element::text);
        Some((!text.is_empty()).then(|| text.to_owned()))
    };
    Some(StaticWebsite {
        enabled: flag(element, "Enabled")?,
        index_document: document(index)?,
        error_document: document(error)?,
        default_index_document: document(default)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETENTION: &str = "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days><AllowPermanentDelete>false</AllowPermanentDelete></DeleteRetentionPolicy>";
    const WEBSITE: &str = "<StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument><ErrorDocument404Path>404.html</ErrorDocument404Path><DefaultIndexDocumentPath>p</DefaultIndexDocumentPath></StaticWebsite>";
    const VERSION: &str = "<DefaultServiceVersion>2014-02-14</DefaultServiceVersion>";

    fn document(inside: &str) -> String {
        format!("<StorageServiceProperties>{inside}</StorageServiceProperties>")
    }

    fn written(properties: &BlobProperties) -> String {
        let text = String::from_utf8(properties.write()).unwrap();
        let (_, own) = text.split_once("<Cors />").unwrap();
        own.to_owned()
    }

    #[test]
    fn a_fresh_account_keeps_nothing_and_serves_no_website() {
        assert_eq!(
            written(&BlobProperties::default()),
            "<DeleteRetentionPolicy><Enabled>false</Enabled><AllowPermanentDelete>false</AllowPermanentDelete></DeleteRetentionPolicy><StaticWebsite><Enabled>false</Enabled></StaticWebsite></StorageServiceProperties>"
        );
    }

    #[test]
    fn what_is_sent_changes_and_the_rest_stays() {
        let mut properties = BlobProperties::default();
        // In any order; the answer's is fixed.
        let body = document(&format!("{VERSION}{WEBSITE}{RETENTION}"));
        properties.apply(BlobUpdate::read(body.as_bytes()).unwrap());
        assert_eq!(written(&properties), format!("{RETENTION}{WEBSITE}{VERSION}</StorageServiceProperties>"));
        assert_eq!(BlobProperties::read(&properties.write()).as_ref(), Some(&properties));

        let body = document("<StaticWebsite><Enabled>false</Enabled></StaticWebsite>");
        properties.apply(BlobUpdate::read(body.as_bytes()).unwrap());
        let off = "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>";
        assert_eq!(written(&properties), format!("{RETENTION}{off}{VERSION}</StorageServiceProperties>"));
    }

    #[test]
    fn old_versions_see_the_default_version_alone() {
        let properties =
            BlobProperties { default_version: Version::parse("2011-08-18"), ..BlobProperties::default() };
        let text = String::from_utf8(properties.write_old()).unwrap();
        assert!(
            text.ends_with("</Metrics><DefaultServiceVersion>2011-08-18</DefaultServiceVersion></StorageServiceProperties>"),
            "{text}"
        );
    }

    #[test]
    fn what_is_incomplete_or_out_of_bounds_is_refused() {
        for inside in [
            "<DeleteRetentionPolicy/>".to_owned(),
            RETENTION.replace('7', "0"),
            RETENTION.replace('7', "366"),
            RETENTION.replace("<Days>7</Days>", ""),
            RETENTION.replace("<Enabled>true</Enabled>", ""),
            WEBSITE.replace("<Enabled>true</Enabled>", ""),
            format!("{RETENTION}{RETENTION}"),
            VERSION.replace("2014-02-14", "soon"),
            "<Unknown/>".to_owned(),
        ] {
            let body = document(&inside);
            assert_eq!(BlobUpdate::read(body.as_bytes()), Err(Refusal::XmlNotValid), "{body}");
        }
        // Blobs alone have these.
        let body = document(RETENTION);
        assert_eq!(Update::read(body.as_bytes()), Err(Refusal::XmlNotValid));
    }
}
