//! Method, address and some headers to operation (spec: blob-operations 1.2, 1.3).

use blob_model::Refusal;
use blob_wire::names as blob_names;
use front::headers::header;
use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;
use protocol::{QueryString, names};

/// The container of blobs whose address names none.
const ROOT: &str = "$root";

/// What an address names, decoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    Service,
    Container(String),
    Blob {
        container: String,
        name: String,
    },
    /// Nothing that the service has.
    Nothing,
}

impl Resource {
    /// The path behind the account, in which a backslash is a slash. A path of one name is a container if the request says so,
    /// or else a blob of `$root`.
    pub fn parse(path: &str, query: &QueryString) -> Self {
        let Ok(path) = percent_decode_str(path).decode_utf8() else { return Self::Nothing };
        let path = path.replace('\\', "/");
        let path = path.strip_prefix('/').unwrap_or(&path);
        let of_container = restype(query).eq_ignore_ascii_case("container");
        match path.split_once('/') {
            None if path.is_empty() => Self::Service,
            None if of_container => Self::Container(path.to_owned()),
            None => Self::Blob { container: ROOT.to_owned(), name: path.to_owned() },
            Some((container, "")) if of_container => Self::Container(container.to_owned()),
            Some((container, name)) => Self::Blob { container: container.to_owned(), name: name.to_owned() },
        }
    }

    /// The container that is addressed, valid or not; empty if none is.
    pub fn container(&self) -> &str {
        match self {
            Self::Container(container) | Self::Blob { container, .. } => container,
            Self::Service | Self::Nothing => "",
        }
    }

    pub fn blob(&self) -> Option<&str> {
        match self {
            Self::Blob { name, .. } => Some(name),
            Self::Service | Self::Container(_) | Self::Nothing => None,
        }
    }
}

/// Every operation of the Blob service this server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    ListContainers,
    GetServiceProperties,
    SetServiceProperties,
    GetStatistics,
    GetAccountInformation,
    GetDelegationKey,
    Batch,
    FindBlobs,
    CreateContainer,
    DeleteContainer,
    GetContainerProperties,
    GetContainerMetadata,
    SetContainerMetadata,
    GetContainerPolicies,
    SetContainerPolicies,
    LeaseContainer(LeaseVerb),
    RestoreContainer,
    ListBlobs,
    PutBlob,
    PutBlobFromUrl,
    CopyBlob,
    CopyBlobFromUrl,
    AbortCopy,
    GetBlob,
    GetBlobProperties,
    GetBlobMetadata,
    SetBlobMetadata,
    SetBlobProperties,
    SetBlobTier,
    DeleteBlob,
    UndeleteBlob,
    SnapshotBlob,
    LeaseBlob(LeaseVerb),
    GetBlobTags,
    SetBlobTags,
    PutBlock,
    PutBlockFromUrl,
    PutBlockList,
    GetBlockList,
    AppendBlock,
    AppendBlockFromUrl,
    SealBlob,
    PutPage,
    PutPageFromUrl,
    ClearPages,
    GetPageRanges,
}

/// `x-ms-lease-action`. Another one, or none, is refused when the operation is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseVerb {
    Acquire,
    Renew,
    Change,
    Release,
    Break,
    Unknown,
}

impl LeaseVerb {
    const NAMED: [(&str, Self); 5] = [
        ("acquire", Self::Acquire),
        ("renew", Self::Renew),
        ("change", Self::Change),
        ("release", Self::Release),
        ("break", Self::Break),
    ];

    fn of(headers: &HeaderMap) -> Self {
        let action = header(headers, "x-ms-lease-action").if_readable().unwrap_or_default();
        let named = Self::NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(action));
        named.map_or(Self::Unknown, |(_, verb)| *verb)
    }
}

fn restype(query: &QueryString) -> &str {
    query.get_ignoring_case(names::RESTYPE).unwrap_or_default()
}

/// The operation that a request asks for. `comp` is judged before the method is.
pub fn resolve(
    method: &Method,
    resource: &Resource,
    query: &QueryString,
    headers: &HeaderMap,
    secondary: bool,
) -> Result<Operation, Refusal> {
    let asked = Asked {
        method,
        restype: restype(query).to_ascii_lowercase(),
        comp: query.get_ignoring_case(names::COMP).unwrap_or_default(),
        headers,
        secondary,
    };
    if asked.restype == "account" && asked.is("properties") && *resource != Resource::Nothing {
        return asked.one_of(&[
            (Method::GET, Operation::GetAccountInformation),
            (Method::HEAD, Operation::GetAccountInformation),
        ]);
    }
    match resource {
        Resource::Service => asked.of_service(),
        Resource::Container(_) => asked.of_container(),
        Resource::Blob { .. } => asked.of_blob(),
        Resource::Nothing => Err(common::Refusal::UriInvalid.into()),
    }
}

struct Asked<'a> {
    method: &'a Method,
    /// In lower case.
    restype: String,
    comp: &'a str,
    headers: &'a HeaderMap,
    secondary: bool,
}

impl Asked<'_> {
    fn is(&self, comp: &str) -> bool {
        self.comp.eq_ignore_ascii_case(comp)
    }

    fn one_of(&self, operations: &[(Method, Operation)]) -> Result<Operation, Refusal> {
        let found = operations.iter().find(|(known, _)| known == self.method);
        found.map(|(_, operation)| *operation).ok_or(Refusal::VerbNotSupported)
    }

    fn get(&self, operation: Operation) -> Result<Operation, Refusal> {
        self.one_of(&[(Method::GET, operation)])
    }

    fn put(&self, operation: Operation) -> Result<Operation, Refusal> {
        self.one_of(&[(Method::PUT, operation)])
    }

    fn read(&self, operation: Operation) -> Result<Operation, Refusal> {
        self.one_of(&[(Method::GET, operation), (Method::HEAD, operation)])
    }

    /// Named, but by none of the names that this resource has. Only an empty one comes with an (empty) reason, and
    /// statistics where there are none.
    fn unknown_comp(&self) -> Refusal {
        let reason = (self.comp.is_empty() || self.is("stats")).then_some("");
        Refusal::ParameterInvalid { name: names::COMP, value: self.comp.to_owned(), reason }
    }

    fn of_service(&self) -> Result<Operation, Refusal> {
        match self.restype.as_str() {
            "service" if self.is("properties") => self.one_of(&[
                (Method::GET, Operation::GetServiceProperties),
                (Method::PUT, Operation::SetServiceProperties),
            ]),
            // Only the secondary has something to tell of replication.
            "service" if self.is("stats") && self.secondary => self.get(Operation::GetStatistics),
            "service" if self.is("userdelegationkey") => {
                self.one_of(&[(Method::POST, Operation::GetDelegationKey)])
            }
            "" if self.is("list") => self.get(Operation::ListContainers),
            "" | "service" if self.is("batch") => self.one_of(&[(Method::POST, Operation::Batch)]),
            "" | "service" if self.is("blobs") => self.get(Operation::FindBlobs),
            _ => Err(self.unknown_comp()),
        }
    }

    fn of_container(&self) -> Result<Operation, Refusal> {
        match self.comp.to_ascii_lowercase().as_str() {
            "" => self.one_of(&[
                (Method::PUT, Operation::CreateContainer),
                (Method::GET, Operation::GetContainerProperties),
                (Method::HEAD, Operation::GetContainerProperties),
                (Method::DELETE, Operation::DeleteContainer),
            ]),
            "metadata" => self.one_of(&[
                (Method::GET, Operation::GetContainerMetadata),
                (Method::HEAD, Operation::GetContainerMetadata),
                (Method::PUT, Operation::SetContainerMetadata),
            ]),
            "acl" => self.one_of(&[
                (Method::GET, Operation::GetContainerPolicies),
                (Method::HEAD, Operation::GetContainerPolicies),
                (Method::PUT, Operation::SetContainerPolicies),
            ]),
            "lease" => self.put(Operation::LeaseContainer(LeaseVerb::of(self.headers))),
            "undelete" => self.put(Operation::RestoreContainer),
            "list" => self.get(Operation::ListBlobs),
            "batch" => self.one_of(&[(Method::POST, Operation::Batch)]),
            "blobs" => self.get(Operation::FindBlobs),
            _ => Err(self.unknown_comp()),
        }
    }

    fn of_blob(&self) -> Result<Operation, Refusal> {
        let copies = self.headers.contains_key(blob_names::COPY_SOURCE);
        let or_from_url = |here, there| self.put(if copies { there } else { here });
        match self.comp.to_ascii_lowercase().as_str() {
            "" => self.one_of(&[
                (Method::PUT, self.put_blob(copies)),
                (Method::GET, Operation::GetBlob),
                (Method::HEAD, Operation::GetBlobProperties),
                (Method::DELETE, Operation::DeleteBlob),
            ]),
            "metadata" => self.one_of(&[
                (Method::GET, Operation::GetBlobMetadata),
                (Method::HEAD, Operation::GetBlobMetadata),
                (Method::PUT, Operation::SetBlobMetadata),
            ]),
            "properties" => self.put(Operation::SetBlobProperties),
            "tier" => self.put(Operation::SetBlobTier),
            "snapshot" => self.put(Operation::SnapshotBlob),
            "undelete" => self.put(Operation::UndeleteBlob),
            "lease" => self.put(Operation::LeaseBlob(LeaseVerb::of(self.headers))),
            "copy" => self.put(Operation::AbortCopy),
            "tags" => {
                self.one_of(&[(Method::GET, Operation::GetBlobTags), (Method::PUT, Operation::SetBlobTags)])
            }
            "block" => or_from_url(Operation::PutBlock, Operation::PutBlockFromUrl),
            "blocklist" => {
                self.one_of(&[(Method::PUT, Operation::PutBlockList), (Method::GET, Operation::GetBlockList)])
            }
            "appendblock" => or_from_url(Operation::AppendBlock, Operation::AppendBlockFromUrl),
            "seal" => self.put(Operation::SealBlob),
            "page" if self.clears() => self.put(Operation::ClearPages),
            "page" => or_from_url(Operation::PutPage, Operation::PutPageFromUrl),
            "pagelist" => self.read(Operation::GetPageRanges),
            "expiry" => Err(Refusal::HierarchyNotEnabled),
            // Known to the service, and not built here.
            "query" | "incrementalcopy" | "immutabilitypolicies" | "legalhold" => {
                Err(common::Refusal::NotImplemented.into())
            }
            _ => Err(self.unknown_comp()),
        }
    }

    fn put_blob(&self, copies: bool) -> Operation {
        let text = |name| header(self.headers, name).if_readable().unwrap_or_default();
        let has_type = self.headers.contains_key(blob_names::BLOB_TYPE);
        match (copies, has_type) {
            (true, true) => Operation::PutBlobFromUrl,
            (true, false) if text("x-ms-requires-sync").eq_ignore_ascii_case("true") => {
                Operation::CopyBlobFromUrl
            }
            (true, false) => Operation::CopyBlob,
            (false, _) => Operation::PutBlob,
        }
    }

    fn clears(&self) -> bool {
        let write = header(self.headers, "x-ms-page-write").if_readable().unwrap_or_default();
        write.eq_ignore_ascii_case("clear")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn check_with(method: &str, target: &str, headers: &[(&'static str, &'static str)], expected: &str) {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = QueryString::parse(query).unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        let resource = Resource::parse(path, &query);
        let shown = match resolve(&method, &resource, &query, &map, false) {
            Ok(operation) => format!("{operation:?}"),
            Err(refusal) => refusal.code().to_owned(),
        };
        assert_eq!(shown, expected, "{method} {target}");
    }

    fn check(method: &str, target: &str, expected: &str) {
        check_with(method, target, &[], expected);
    }

    #[test]
    fn every_operation_of_the_account_has_its_address() {
        check("GET", "/?comp=list", "ListContainers");
        check("GET", "?COMP=List", "ListContainers");
        check("GET", "/?restype=service&comp=properties", "GetServiceProperties");
        check("PUT", "/?restype=Service&comp=Properties", "SetServiceProperties");
        check("POST", "/?restype=service&comp=userdelegationkey", "GetDelegationKey");
        check("POST", "/?comp=batch", "Batch");
        check("GET", "/?comp=blobs&where=x", "FindBlobs");
        for target in ["/", "/c", "/c/b", "/c?restype=account&x"] {
            let target = format!("{}?restype=account&comp=properties", target.split('?').next().unwrap());
            check("GET", &target, "GetAccountInformation");
            check("HEAD", &target, "GetAccountInformation");
        }
    }

    #[test]
    fn every_operation_of_a_container_has_its_address() {
        for (method, comp, expected) in [
            ("PUT", "", "CreateContainer"),
            ("GET", "", "GetContainerProperties"),
            ("HEAD", "", "GetContainerProperties"),
            ("DELETE", "", "DeleteContainer"),
            ("GET", "&comp=metadata", "GetContainerMetadata"),
            ("PUT", "&comp=metadata", "SetContainerMetadata"),
            ("GET", "&comp=acl", "GetContainerPolicies"),
            ("PUT", "&comp=acl", "SetContainerPolicies"),
            ("PUT", "&comp=undelete", "RestoreContainer"),
            ("GET", "&comp=list", "ListBlobs"),
            ("POST", "&comp=batch", "Batch"),
            ("GET", "&comp=blobs", "FindBlobs"),
        ] {
            check(method, &format!("/c?restype=container{comp}"), expected);
            check(method, &format!("/c/?restype=container{comp}"), expected);
        }
        check("PUT", "/c?restype=container&comp=lease", "LeaseContainer(Unknown)");
        let acquire = [("x-ms-lease-action", "Acquire")];
        check_with("PUT", "/c?restype=container&comp=lease", &acquire, "LeaseContainer(Acquire)");
    }

    #[test]
    fn every_operation_of_a_blob_has_its_address() {
        let source = [("x-ms-copy-source", "http://x")];
        for (method, comp, here, from_url) in [
            ("GET", "", "GetBlob", "GetBlob"),
            ("HEAD", "", "GetBlobProperties", "GetBlobProperties"),
            ("DELETE", "", "DeleteBlob", "DeleteBlob"),
            ("PUT", "", "PutBlob", "CopyBlob"),
            ("GET", "?comp=metadata", "GetBlobMetadata", "GetBlobMetadata"),
            ("PUT", "?comp=metadata", "SetBlobMetadata", "SetBlobMetadata"),
            ("PUT", "?comp=properties", "SetBlobProperties", "SetBlobProperties"),
            ("PUT", "?comp=tier", "SetBlobTier", "SetBlobTier"),
            ("PUT", "?comp=snapshot", "SnapshotBlob", "SnapshotBlob"),
            ("PUT", "?comp=undelete", "UndeleteBlob", "UndeleteBlob"),
            ("PUT", "?comp=copy&copyid=1", "AbortCopy", "AbortCopy"),
            ("GET", "?comp=tags", "GetBlobTags", "GetBlobTags"),
            ("PUT", "?comp=tags", "SetBlobTags", "SetBlobTags"),
            ("PUT", "?comp=block&blockid=a", "PutBlock", "PutBlockFromUrl"),
            ("PUT", "?comp=blocklist", "PutBlockList", "PutBlockList"),
            ("GET", "?comp=blocklist", "GetBlockList", "GetBlockList"),
            ("PUT", "?comp=appendblock", "AppendBlock", "AppendBlockFromUrl"),
            ("PUT", "?comp=seal", "SealBlob", "SealBlob"),
            ("PUT", "?comp=page", "PutPage", "PutPageFromUrl"),
            ("GET", "?comp=pagelist", "GetPageRanges", "GetPageRanges"),
        ] {
            check(method, &format!("/c/b{comp}"), here);
            check_with(method, &format!("/c/d/b{comp}"), &source, from_url);
        }
        check_with("PUT", "/c/b?comp=page", &[("x-ms-page-write", "Clear")], "ClearPages");
        let typed = [("x-ms-copy-source", "http://x"), ("x-ms-blob-type", "BlockBlob")];
        check_with("PUT", "/c/b", &typed, "PutBlobFromUrl");
        let sync = [("x-ms-copy-source", "http://x"), ("x-ms-requires-sync", "True")];
        check_with("PUT", "/c/b", &sync, "CopyBlobFromUrl");
        check("GET", "/b", "GetBlob");
    }

    #[test]
    fn what_is_none_is_refused() {
        check("GET", "/", "InvalidQueryParameterValue");
        check("GET", "/?restype=service&comp=stats", "InvalidQueryParameterValue");
        check("PUT", "/?restype=container", "InvalidQueryParameterValue");
        check("PUT", "/c?restype=container&comp=rename", "InvalidQueryParameterValue");
        check("PUT", "/c/b?comp=other", "InvalidQueryParameterValue");
        check("PUT", "/c/b?comp=expiry", "HierarchicalNamespaceNotEnabled");
        check("POST", "/c/b?comp=query", "NotImplemented");
        check("PATCH", "/c/b", "UnsupportedHttpVerb");
        check("POST", "/c?restype=container", "UnsupportedHttpVerb");
        check("GET", "/c/b?comp=tier", "UnsupportedHttpVerb");
        check("GET", "/c/%ff", "InvalidUri");
    }

    #[test]
    fn names_are_decoded_once() {
        let none = QueryString::default();
        let blob = |container: &str, name: &str| Resource::Blob {
            container: container.to_owned(),
            name: name.to_owned(),
        };
        assert_eq!(Resource::parse("/c/a%2Fb%2520+c", &none), blob("c", "a/b%20+c"));
        assert_eq!(Resource::parse("/c//a/", &none), blob("c", "/a/"));
        assert_eq!(Resource::parse("/c/a%5Cb", &none), blob("c", "a/b"));
        assert_eq!(Resource::parse("/c%5Ca", &none), blob("c", "a"));
        assert_eq!(Resource::parse("/%5Ca", &none), Resource::parse("//a", &none));
        assert_eq!(Resource::parse("/a", &none), blob("$root", "a"));
        assert_eq!(Resource::parse("", &none), Resource::Service);
    }
}
