//! The SAS of a container, or of something in it (spec: blob-operations 8.3, 8.4).

use super::{
    ACCOUNT_SAS, ENCRYPTION_SCOPE, Fields, SERVICE_IN_RESOURCE, SasFormatError, Terms, UserDelegation, text,
};
use crate::QueryString;

pub(super) const FIELDS: [&str; 10] =
    ["sdd", "rscc", "rscd", "rsce", "rscl", "rsct", "snapshot", "versionid", "srh", "srq"];

/// What a request addresses, decoded: a container, or a blob in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobTarget<'a> {
    pub container: &'a str,
    pub blob: Option<&'a str>,
}

/// Grants access to blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobSas {
    pub terms: Terms,
    /// From the address: the token signs it, but does not name it.
    pub container: String,
    /// `sr`, with the part of the address that it is for.
    pub resource: SignedResource,
    /// `si`: the stored access policy that provides the terms which the token does not have.
    pub identifier: String,
    /// `ses`
    pub encryption_scope: String,
    pub overrides: Overrides,
    pub delegation: Option<UserDelegation>,
}

/// What a token is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignedResource {
    /// `c`: everything in the container.
    Container,
    /// `b`: one blob.
    Blob(String),
    /// `bs`: one snapshot of a blob.
    Snapshot { blob: String, time: String },
    /// `bv`: one version of a blob.
    Version { blob: String, time: String },
    /// `d`: everything in a directory. `depth` is `sdd`, as sent: the number of names in its path.
    Directory { path: String, depth: String },
}

/// Headers of the answer that the token sets: `rscc`, `rscd`, `rsce`, `rscl`, `rsct`. Empty ones are not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    pub cache_control: String,
    pub content_disposition: String,
    pub content_encoding: String,
    pub content_language: String,
    pub content_type: String,
}

/// First versions of the layouts.
const OVERRIDES: &str = "2013-08-15";
const RESOURCE_SIGNED: &str = "2018-11-09";
const ON_BEHALF: &str = "2020-02-10";
const DELEGATED_USER: &str = "2025-07-05";
const SIGNED_REQUEST: &str = "2026-04-06";

impl BlobSas {
    pub(super) fn read(
        terms: Terms,
        query: &QueryString,
        target: BlobTarget<'_>,
    ) -> Result<Self, SasFormatError> {
        let delegation = UserDelegation::read(query);
        if delegation.is_some() && terms.version.as_str() < RESOURCE_SIGNED {
            return Err(SasFormatError::Version(terms.version));
        }
        // These tokens also sign headers or options of the request, which we do not support.
        for field in ["srh", "srq"] {
            if query.get(field).is_some_and(|names| !names.is_empty()) {
                return Err(SasFormatError::Unsupported(field));
            }
        }
        Ok(Self {
            container: target.container.to_owned(),
            resource: SignedResource::read(&terms.version, query, target)?,
            terms,
            identifier: text(query, "si"),
            encryption_scope: text(query, "ses"),
            overrides: Overrides {
                cache_control: text(query, "rscc"),
                content_disposition: text(query, "rscd"),
                content_encoding: text(query, "rsce"),
                content_language: text(query, "rscl"),
                content_type: text(query, "rsct"),
            },
            delegation,
        })
    }

    pub(super) fn string_to_sign(&self, account: &str) -> String {
        let terms = &self.terms;
        let version = terms.version.as_str();
        let service = if version >= SERVICE_IN_RESOURCE { "/blob" } else { "" };
        let inside = match self.resource.path() {
            "" => String::new(),
            path => format!("/{path}"),
        };
        let resource = format!("{service}/{account}/{}{inside}", self.container);
        let mut fields = vec![terms.permissions.as_str(), &terms.start, &terms.expiry, &resource];
        match &self.delegation {
            Some(user) => {
                fields.extend(user.key());
                if version >= ON_BEHALF {
                    fields.extend([
                        user.authorized_user.as_str(),
                        &user.unauthorized_user,
                        &user.correlation,
                    ]);
                }
                if version >= DELEGATED_USER {
                    fields.extend([user.delegated_tenant.as_str(), &user.delegated_user]);
                }
            }
            None => fields.push(&self.identifier),
        }
        if version >= ACCOUNT_SAS {
            fields.extend([terms.ip.as_str(), &terms.protocol]);
        }
        fields.push(version);
        if version >= RESOURCE_SIGNED {
            fields.extend([self.resource.letter(), self.resource.time()]);
        }
        if version >= ENCRYPTION_SCOPE {
            fields.push(&self.encryption_scope);
        }
        if version >= SIGNED_REQUEST && self.delegation.is_some() {
            // `srh` and `srq` are always empty here: `read` refuses others.
            fields.extend(["", ""]);
        }
        if version >= OVERRIDES {
            fields.extend(self.overrides.fields().map(|(_, value)| value));
        }
        fields.join("\n")
    }

    pub(super) fn fields(&self) -> (Fields<'_>, Fields<'_>) {
        let mut after = vec![("si", self.identifier.as_str()), ("ses", &self.encryption_scope)];
        after.extend(self.overrides.fields());
        after.extend(self.delegation.iter().flat_map(UserDelegation::fields));
        (vec![("sr", self.resource.letter()), ("sdd", self.resource.depth())], after)
    }
}

impl SignedResource {
    fn read(version: &str, query: &QueryString, target: BlobTarget<'_>) -> Result<Self, SasFormatError> {
        let letter =
            query.get("sr").filter(|letter| !letter.is_empty()).ok_or(SasFormatError::Missing("sr"))?;
        // Older tokens do not sign `sr`: a blob's token would be valid for its snapshots too.
        if version < RESOURCE_SIGNED && !matches!(letter, "b" | "c") {
            return Err(SasFormatError::Resource(letter.to_owned()));
        }
        let blob = |level| target.blob.map(str::to_owned).ok_or(SasFormatError::Level(level));
        // As the request is served, which finds it in any case.
        let time = |name| query.get_ignoring_case(name).unwrap_or_default().to_owned();
        match letter {
            "c" => Ok(Self::Container),
            "b" => Ok(Self::Blob(blob("b")?)),
            "bs" => Ok(Self::Snapshot { blob: blob("bs")?, time: time("snapshot") }),
            "bv" => Ok(Self::Version { blob: blob("bv")?, time: time("versionid") }),
            "d" => {
                let depth = text(query, "sdd");
                let names: usize = depth.parse().map_err(|_| SasFormatError::Depth(depth.clone()))?;
                let blob = target.blob.unwrap_or_default().trim_end_matches('/');
                let path: Vec<&str> = blob.split('/').filter(|_| !blob.is_empty()).take(names).collect();
                if path.len() < names {
                    return Err(SasFormatError::Level("d"));
                }
                Ok(Self::Directory { path: path.join("/"), depth })
            }
            _ => Err(SasFormatError::Resource(letter.to_owned())),
        }
    }

    pub fn letter(&self) -> &'static str {
        match self {
            Self::Container => "c",
            Self::Blob(_) => "b",
            Self::Snapshot { .. } => "bs",
            Self::Version { .. } => "bv",
            Self::Directory { .. } => "d",
        }
    }

    /// The path inside the container.
    fn path(&self) -> &str {
        match self {
            Self::Container => "",
            Self::Blob(blob) | Self::Snapshot { blob, .. } | Self::Version { blob, .. } => blob,
            Self::Directory { path, .. } => path,
        }
    }

    fn time(&self) -> &str {
        match self {
            Self::Snapshot { time, .. } | Self::Version { time, .. } => time,
            Self::Container | Self::Blob(_) | Self::Directory { .. } => "",
        }
    }

    fn depth(&self) -> &str {
        match self {
            Self::Directory { depth, .. } => depth,
            _ => "",
        }
    }
}

impl Overrides {
    fn fields(&self) -> [(&'static str, &str); 5] {
        [
            ("rscc", &self.cache_control),
            ("rscd", &self.content_disposition),
            ("rsce", &self.content_encoding),
            ("rscl", &self.content_language),
            ("rsct", &self.content_type),
        ]
    }
}

#[cfg(test)]
mod tests;
