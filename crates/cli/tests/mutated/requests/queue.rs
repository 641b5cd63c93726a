//! Of the Queue service.

use super::Template;

const V: (&str, &str) = ("x-ms-version", "2021-02-12");
const TEXT: &str = "<QueueMessage><MessageText>PGE+</MessageText></QueueMessage>";
const PROPERTIES: &str = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>true</Read><Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors /></StorageServiceProperties>";
const POLICIES: &str = "<SignedIdentifiers><SignedIdentifier><Id>q</Id><AccessPolicy><Start>2020-01-01</Start><Expiry>2090-01-01T00:00:00.0000000Z</Expiry><Permission>raup</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";

#[rustfmt::skip]
pub const SET_UP: [Template; 5] = [
    ("PUT", "/jobs", &[V, ("x-ms-meta-a", "1")], ""),
    ("PUT", "/spare", &[V], ""),
    ("DELETE", "/jobs/messages", &[V], ""),
    ("POST", "/jobs/messages", &[V], TEXT),
    ("POST", "/jobs/messages", &[V], TEXT),
];

#[rustfmt::skip]
pub const REQUESTS: [Template; 19] = [
    ("GET", "/?comp=list&prefix=j&maxresults=2&include=metadata&marker=", &[V], ""),
    ("GET", "/?restype=service&comp=properties", &[V], ""),
    ("PUT", "/?restype=service&comp=properties", &[V], PROPERTIES),
    ("PUT", "/new", &[V, ("x-ms-meta-a", "b")], ""),
    ("DELETE", "/spare", &[V], ""),
    ("GET", "/jobs?comp=metadata", &[V], ""),
    ("HEAD", "/jobs?comp=metadata", &[V], ""),
    ("PUT", "/jobs?comp=metadata", &[V, ("x-ms-meta-c", "d")], ""),
    ("GET", "/jobs?comp=acl", &[V], ""),
    ("PUT", "/jobs?comp=acl", &[V], POLICIES),
    ("POST", "/jobs/messages?visibilitytimeout=1&messagettl=60&timeout=5", &[V, ("Content-Type", "application/xml")], TEXT),
    ("POST", "/jobs/messages?messagettl=-1", &[V], TEXT),
    ("GET", "/jobs/messages?numofmessages=2&visibilitytimeout=2", &[V], ""),
    ("GET", "/jobs/messages?peekonly=true&numofmessages=32", &[V, ("x-ms-client-request-id", "mine")], ""),
    ("PUT", "/jobs/messages/{message}?popreceipt={receipt}&visibilitytimeout=0", &[V], TEXT),
    ("PUT", "/jobs/messages/{message}?popreceipt={receipt}&visibilitytimeout=3", &[V], ""),
    ("DELETE", "/jobs/messages/{message}?popreceipt={receipt}", &[V], ""),
    ("DELETE", "/jobs/messages", &[V], ""),
    ("GET", "-secondary/?restype=service&comp=stats", &[V], ""),
];
