//! Of the Table service.

use super::Template;

const V: (&str, &str) = ("x-ms-version", "2019-02-02");
const OLD: (&str, &str) = ("x-ms-version", "2014-02-14");
const JSON: (&str, &str) = ("Accept", "application/json;odata=nometadata");
const FULL: (&str, &str) = ("Accept", "application/json;odata=fullmetadata");
const JSON_BODY: (&str, &str) = ("Content-Type", "application/json");
const ATOM: (&str, &str) = ("Accept", "application/atom+xml");
const ATOM_BODY: (&str, &str) = ("Content-Type", "application/atom+xml");
const ANY: (&str, &str) = ("If-Match", "*");
const ENTITY: &str = r#"{"PartitionKey":"p","RowKey":"new","A":1,"B":1.5,"C@odata.type":"Edm.Int64","C":"7","D@odata.type":"Edm.DateTime","D":"2021-05-06T07:08:09.12Z","E@odata.type":"Edm.Guid","E":"0f8fad5b-d9cb-469f-a165-70867728950e","F@odata.type":"Edm.Binary","F":"AQID","G":true,"H":null}"#;
const ATOM_ENTITY: &str = r#"<?xml version="1.0" encoding="utf-8"?><entry xmlns="http://www.w3.org/2005/Atom" xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata" xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices"><content type="application/xml"><m:properties><d:PartitionKey>p</d:PartitionKey><d:RowKey>atom</d:RowKey><d:A m:type="Edm.Int32">1</d:A><d:N m:null="true" /></m:properties></content></entry>"#;
const BATCH: &str = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST /devstoreaccount1/Open HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n\r\n{\"PartitionKey\":\"p\",\"RowKey\":\"new\"}\r\n--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 2\r\n\r\nMERGE /devstoreaccount1/Open(PartitionKey='p',RowKey='r') HTTP/1.1\r\nContent-Type: application/json\r\nIf-Match: *\r\n\r\n{\"X\":2}\r\n--c--\r\n--b--\r\n";
const BATCH_QUERY: &str = "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nGET http://x/devstoreaccount1/Open(PartitionKey='p',RowKey='r')?$select=A HTTP/1.1\r\nAccept: application/json\r\n\r\n--b--\r\n";
const MIXED: (&str, &str) = ("Content-Type", "multipart/mixed; boundary=b");
const PROPERTIES: &str = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read><Write>true</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>365</Days></RetentionPolicy></HourMetrics><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>0</MaxAgeInSeconds><ExposedHeaders></ExposedHeaders><AllowedHeaders></AllowedHeaders></CorsRule></Cors></StorageServiceProperties>";
const POLICIES: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>t</Id><AccessPolicy><Start>2020-01-01T00:00:00Z</Start><Expiry>2090-01-01T00:00:00Z</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
const FILTER: &str = "/Open()?$filter=(A%20eq%201%20or%20D%20gt%20datetime'2021-01-01T00:00:00Z')%20and%20not%20(E%20eq%20guid'0f8fad5b-d9cb-469f-a165-70867728950e')%20and%20C%20lt%209L%20and%20F%20ne%20X'0102'%20and%20B%20ge%201.5&$select=A,B&$top=5";

#[rustfmt::skip]
pub const SET_UP: [Template; 6] = [
    ("POST", "/Tables", &[V, JSON, JSON_BODY], r#"{"TableName":"Open"}"#),
    ("POST", "/Tables", &[V, JSON, JSON_BODY], r#"{"TableName":"Spare"}"#),
    ("DELETE", "/Tables('New')", &[V, JSON], ""),
    ("DELETE", "/Open(PartitionKey='p',RowKey='new')", &[V, JSON, ANY], ""),
    ("DELETE", "/Open(PartitionKey='p',RowKey='atom')", &[V, JSON, ANY], ""),
    ("PUT", "/Open(PartitionKey='p',RowKey='r')", &[V, JSON, JSON_BODY], r#"{"A":1,"B":2.5,"S":"x","C@odata.type":"Edm.Int64","C":"8"}"#),
];

#[rustfmt::skip]
pub const REQUESTS: [Template; 26] = [
    ("GET", "/Tables?$filter=TableName%20ge%20'O'&$top=3", &[V, JSON], ""),
    ("GET", "/Tables?NextTableName=1!8!b3Blbg--", &[V, FULL], ""),
    ("POST", "/Tables", &[V, JSON, JSON_BODY, ("Prefer", "return-no-content")], r#"{"TableName":"New"}"#),
    ("GET", "/Tables('Open')", &[OLD, ATOM], ""),
    ("DELETE", "/Tables('Spare')", &[V, JSON], ""),
    ("GET", "/Open?comp=acl", &[V], ""),
    ("PUT", "/Open?comp=acl", &[V], POLICIES),
    ("GET", "/?restype=service&comp=properties", &[V], ""),
    ("PUT", "/?restype=service&comp=properties", &[V], PROPERTIES),
    ("GET", "-secondary/?restype=service&comp=stats", &[V], ""),
    ("POST", "/Open", &[V, JSON, JSON_BODY, ("DataServiceVersion", "3.0"), ("MaxDataServiceVersion", "3.0;NetFx")], ENTITY),
    ("POST", "/Open", &[OLD, ATOM, ATOM_BODY], ATOM_ENTITY),
    ("POST", "/Open", &[V, FULL, JSON_BODY, ("Prefer", "return-content")], ENTITY),
    ("GET", "/Open(PartitionKey='p',RowKey='r')", &[V, FULL, ("If-None-Match", "W/\"datetime'2020'\"")], ""),
    ("GET", "/Open(PartitionKey='p',RowKey='r')?$select=A,C", &[V, JSON], ""),
    ("PUT", "/Open(PartitionKey='p',RowKey='r')", &[V, JSON, JSON_BODY, ANY], r#"{"PartitionKey":"p","RowKey":"r","A":3}"#),
    ("MERGE", "/Open(PartitionKey='p',RowKey='r')", &[V, JSON, JSON_BODY, ANY], r#"{"A":4}"#),
    ("PATCH", "/Open(PartitionKey='p',RowKey='r')", &[V, JSON, JSON_BODY], r#"{"Z":4.5e10}"#),
    ("POST", "/Open(PartitionKey='p',RowKey='r')", &[V, JSON, JSON_BODY, ("X-HTTP-Method", "MERGE")], r#"{"A":5}"#),
    ("DELETE", "/Open(PartitionKey='p',RowKey='r')", &[V, JSON, ANY], ""),
    ("GET", FILTER, &[V, JSON], ""),
    ("GET", FILTER, &[OLD, ATOM], ""),
    ("GET", "/Open()?$top=1&NextPartitionKey=1!4!cA--&NextRowKey=1!4!cQ--&timeout=30", &[V, FULL], ""),
    ("POST", "/$batch", &[V, JSON, MIXED], BATCH),
    ("POST", "/$batch", &[V, JSON, MIXED], BATCH_QUERY),
    ("OPTIONS", "/Open", &[("Origin", "http://b"), ("Access-Control-Request-Method", "GET")], ""),
];
