//! Of the Blob service.

use super::Template;

const V: (&str, &str) = ("x-ms-version", "2021-12-02");
const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const APPEND: (&str, &str) = ("x-ms-blob-type", "AppendBlob");
const PAGE: (&str, &str) = ("x-ms-blob-type", "PageBlob");
const SOURCE: (&str, &str) = ("x-ms-copy-source", "{blobs}/box/block?{token}");
const PROPERTIES: &str = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write><RetentionPolicy><Enabled>true</Enabled><Days>3</Days></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics><Cors><CorsRule><AllowedOrigins>http://a,*</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders>x-ms-meta-*</ExposedHeaders><AllowedHeaders>x-ms-*</AllowedHeaders></CorsRule></Cors><DeleteRetentionPolicy><Enabled>true</Enabled><Days>2</Days></DeleteRetentionPolicy></StorageServiceProperties>";
const POLICIES: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Start>2020-01-01T00:00:00Z</Start><Expiry>2090-01-01T00:00:00Z</Expiry><Permission>rwdl</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
const TAGS: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags><TagSet><Tag><Key>kind</Key><Value>x y</Value></Tag><Tag><Key>n</Key><Value>2</Value></Tag></TagSet></Tags>";
const BATCH: &str = "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 0\r\n\r\nDELETE /devstoreaccount1/box/gone HTTP/1.1\r\nx-ms-date: Thu, 14 Jul 2022 00:00:00 GMT\r\nAuthorization: SharedKey devstoreaccount1:AAAA\r\nContent-Length: 0\r\n\r\n--b\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\nDELETE /devstoreaccount1/box/a/b?{token} HTTP/1.1\r\nContent-Length: 0\r\n\r\n--b--\r\n";
const TIERS: &str = "--b\r\nContent-Type: application/http\r\nContent-ID: 2\r\n\r\nPUT /devstoreaccount1/loose/cold?comp=tier&{token} HTTP/1.1\r\nx-ms-access-tier: Hot\r\nContent-Length: 0\r\n\r\n--b--\r\n";
const MIXED: (&str, &str) = ("Content-Type", "multipart/mixed; boundary=b");

#[rustfmt::skip]
pub const SET_UP: [Template; 30] = [
    ("PUT", "/?restype=service&comp=properties", &[V], PROPERTIES),
    ("PUT", "/box?restype=container&comp=lease", &[V, ("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")], ""),
    ("PUT", "/held?restype=container&comp=lease", &[V, ("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")], ""),
    ("PUT", "/box?restype=container", &[V], ""),
    ("PUT", "/held?restype=container", &[V], ""),
    ("PUT", "/loose?restype=container", &[V], ""),
    ("PUT", "/spare?restype=container", &[V], ""),
    ("PUT", "/$root?restype=container", &[V], ""),
    ("DELETE", "/fresh?restype=container", &[V], ""),
    ("DELETE", "/box/new", &[V], ""),
    ("PUT", "/held?restype=container&comp=lease", &[V, ("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", "{lease}")], ""),
    ("PUT", "/box/block?comp=lease", &[V, ("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")], ""),
    ("PUT", "/box/held?comp=lease", &[V, ("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")], ""),
    ("PUT", "/box/block", &[V, BLOCK, ("x-ms-tags", "kind=x%20y&n=1"), ("x-ms-meta-a", "1")], "0123456789"),
    ("PUT", "/box/block?comp=snapshot", &[V], ""),
    ("PUT", "/box/held", &[V, BLOCK], "held"),
    ("PUT", "/box/held?comp=lease", &[V, ("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", "{lease}")], ""),
    ("PUT", "/box/blocks", &[V, BLOCK], ""),
    ("PUT", "/box/blocks?comp=block&blockid=YWE%3D", &[V], "block a"),
    ("PUT", "/box/append?comp=lease", &[V, ("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")], ""),
    ("PUT", "/box/append", &[V, APPEND], ""),
    ("PUT", "/box/page?comp=lease", &[V, ("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")], ""),
    ("PUT", "/box/page", &[V, PAGE, ("x-ms-blob-content-length", "8192")], ""),
    ("PUT", "/box/page?comp=page", &[V, ("x-ms-page-write", "update"), ("x-ms-range", "bytes=512-1535")], "{pages}"),
    ("PUT", "/box/page?comp=snapshot", &[V], ""),
    ("PUT", "/box/page?comp=page", &[V, ("x-ms-page-write", "update"), ("x-ms-range", "bytes=2048-2559")], "{page}"),
    ("PUT", "/box/gone", &[V, BLOCK], "gone"),
    ("DELETE", "/box/gone", &[V], ""),
    ("PUT", "/box/a/b", &[V, BLOCK], "deep"),
    ("PUT", "/loose/cold", &[V, BLOCK, ("x-ms-access-tier", "Cool")], "cold"),
];

#[rustfmt::skip]
pub const REQUESTS: [Template; 79] = [
    // The service.
    ("GET", "/?comp=list&maxresults=2&prefix=b&include=metadata,deleted,system&timeout=20", &[V], ""),
    ("GET", "/?restype=service&comp=properties", &[V], ""),
    ("PUT", "/?restype=service&comp=properties", &[V], PROPERTIES),
    ("GET", "/?restype=account&comp=properties", &[V], ""),
    ("HEAD", "/box?restype=account&comp=properties", &[V], ""),
    ("GET", "/?comp=blobs&where=%40container%3D%27box%27%20AND%20%22kind%22%3D%27x%20y%27%20AND%20n%3E%3D%271%27&maxresults=3", &[V], ""),
    ("GET", "-secondary/?restype=service&comp=stats", &[V], ""),
    ("POST", "/?comp=batch", &[V, MIXED], BATCH),
    ("POST", "/box?restype=container&comp=batch", &[V, MIXED], BATCH),
    ("POST", "/loose?restype=container&comp=batch", &[V, MIXED], TIERS),
    // Containers.
    ("PUT", "/fresh?restype=container", &[V, ("x-ms-meta-a", "1"), ("x-ms-blob-public-access", "blob"), ("x-ms-default-encryption-scope", "$account-encryption-key"), ("x-ms-deny-encryption-scope-override", "false")], ""),
    ("GET", "/box?restype=container", &[V, ("x-ms-client-request-id", "mine")], ""),
    ("HEAD", "/held?restype=container", &[V, ("x-ms-lease-id", "{lease}")], ""),
    ("GET", "/box?restype=container&comp=metadata", &[V], ""),
    ("PUT", "/box?restype=container&comp=metadata", &[V, ("x-ms-meta-b", "2"), ("If-Modified-Since", "Mon, 01 Jan 2018 00:00:00 GMT")], ""),
    ("GET", "/box?restype=container&comp=acl", &[V], ""),
    ("PUT", "/box?restype=container&comp=acl", &[V, ("x-ms-blob-public-access", "container"), ("If-Unmodified-Since", "Wed, 01 Jan 2070 00:00:00 GMT")], POLICIES),
    ("PUT", "/loose?restype=container&comp=lease", &[V, ("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", "{lease}")], ""),
    ("PUT", "/held?restype=container&comp=lease", &[V, ("x-ms-lease-action", "renew"), ("x-ms-lease-id", "{lease}")], ""),
    ("PUT", "/held?restype=container&comp=lease", &[V, ("x-ms-lease-action", "change"), ("x-ms-lease-id", "{lease}"), ("x-ms-proposed-lease-id", "00000000-1111-2222-3333-555555555555")], ""),
    ("PUT", "/held?restype=container&comp=lease", &[V, ("x-ms-lease-action", "release"), ("x-ms-lease-id", "{lease}")], ""),
    ("PUT", "/held?restype=container&comp=lease", &[V, ("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "3")], ""),
    ("GET", "/box?restype=container&comp=list", &[V], ""),
    ("GET", "/box?restype=container&comp=list&prefix=a&delimiter=/&maxresults=2&marker=&include=metadata,uncommittedblobs,copy,tags", &[V], ""),
    ("GET", "/box?restype=container&comp=list&maxresults=3&include=snapshots,metadata,uncommittedblobs,copy,deleted,tags,versions,deletedwithversions,immutabilitypolicy,legalhold,permissions", &[V], ""),
    ("GET", "/box?restype=container&comp=list&startfrom=b&showonly=&maxresults=1", &[V], ""),
    ("GET", "/box?restype=container&comp=blobs&where=n%3D%271%27", &[V], ""),
    ("DELETE", "/spare?restype=container", &[V, ("If-Modified-Since", "Mon, 01 Jan 2018 00:00:00 GMT")], ""),
    // Block blobs.
    ("PUT", "/box/new", &[V, BLOCK, ("Content-Type", "text/plain"), ("Content-MD5", "XUFAKrxLKna5cZ2REBfFkg=="), ("x-ms-blob-content-type", "a/b"), ("x-ms-blob-content-encoding", "gzip"), ("x-ms-blob-content-language", "de"), ("x-ms-blob-cache-control", "no-cache"), ("x-ms-blob-content-disposition", "inline"), ("x-ms-meta-Name", "value"), ("x-ms-tags", "a=b"), ("x-ms-access-tier", "Cool")], "hello"),
    ("PUT", "/box/block", &[V, BLOCK, ("If-Match", "{etag}"), ("x-ms-if-tags", "n='1'"), ("x-ms-content-crc64", "")], "0123456789"),
    ("PUT", "/box/new", &[V, BLOCK, ("If-None-Match", "*"), ("Transfer-Encoding", "chunked")], "in chunks"),
    ("PUT", "/plain", &[V, BLOCK], "in the root"),
    ("PUT", "/box/blocks?comp=block&blockid=YWI%3D", &[V, ("Content-MD5", "")], "block b"),
    ("PUT", "/box/blocks?comp=block&blockid=YWM%3D", &[V, SOURCE, ("x-ms-source-range", "bytes=2-5"), ("x-ms-source-if-match", "*")], ""),
    ("PUT", "/box/blocks?comp=blocklist", &[V, ("x-ms-meta-a", "b"), ("x-ms-blob-content-type", "x/y"), ("x-ms-tags", "t=1"), ("x-ms-access-tier", "Hot")], "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList><Uncommitted>YWE=</Uncommitted><Latest>YWE=</Latest></BlockList>"),
    ("GET", "/box/blocks?comp=blocklist&blocklisttype=all", &[V], ""),
    // Append blobs.
    ("PUT", "/box/append", &[V, APPEND, ("x-ms-meta-a", "1")], ""),
    ("PUT", "/box/append?comp=appendblock", &[V, ("x-ms-blob-condition-appendpos", "0"), ("x-ms-blob-condition-maxsize", "100")], "appended"),
    ("PUT", "/box/append?comp=appendblock", &[V, SOURCE, ("x-ms-source-range", "bytes=0-3"), ("x-ms-source-content-md5", "62L2uTBttXXC1ZaxJ5YnpA==")], ""),
    ("PUT", "/box/append?comp=seal", &[V, ("x-ms-blob-condition-appendpos", "0")], ""),
    // Page blobs.
    ("PUT", "/box/page", &[V, PAGE, ("x-ms-blob-content-length", "4096"), ("x-ms-blob-sequence-number", "7")], ""),
    ("PUT", "/box/page?comp=page", &[V, ("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511"), ("x-ms-if-sequence-number-le", "9"), ("x-ms-if-sequence-number-lt", "9"), ("x-ms-if-sequence-number-eq", "0")], "{page}"),
    ("PUT", "/box/page?comp=page", &[V, ("x-ms-page-write", "clear"), ("Range", "bytes=512-1023")], ""),
    ("PUT", "/box/page?comp=page", &[V, ("x-ms-page-write", "update"), ("x-ms-copy-source", "{blobs}/box/page?{token}"), ("x-ms-source-range", "bytes=512-1535"), ("x-ms-range", "bytes=4096-5119")], ""),
    ("GET", "/box/page?comp=pagelist&maxresults=2", &[V, ("x-ms-range", "bytes=0-4095")], ""),
    ("GET", "/box/page?comp=pagelist&prevsnapshot={pages-before}", &[V, ("Range", "bytes=0-8191")], ""),
    ("GET", "/box/page?snapshot={pages-before}&comp=pagelist&marker=&maxresults=1", &[V, ("If-Match", "*")], ""),
    ("PUT", "/box/page?comp=properties", &[V, ("x-ms-blob-content-length", "1024"), ("x-ms-sequence-number-action", "max"), ("x-ms-blob-sequence-number", "12")], ""),
    // Reads.
    ("GET", "/box/block", &[V, ("x-ms-range", "bytes=2-5"), ("x-ms-range-get-content-md5", "true"), ("If-None-Match", "\"0x1\""), ("Origin", "http://a")], ""),
    ("GET", "/box/block?snapshot={snapshot}", &[V, ("Range", "bytes=3-"), ("If-Match", "{etag}"), ("If-Unmodified-Since", "Wed, 01 Jan 2070 00:00:00 GMT")], ""),
    ("GET", "/box/page", &[V, ("x-ms-range", "bytes=500-600"), ("x-ms-range-get-content-crc64", "true")], ""),
    ("HEAD", "/box/block", &[V, ("If-Modified-Since", "Mon, 01 Jan 2018 00:00:00 GMT"), ("x-ms-if-tags", "kind='x y' and n<>'3'")], ""),
    ("GET", "/box/block", &[V, ("If-None-Match", "{etag}")], ""),
    ("GET", "/box/block?comp=metadata", &[V], ""),
    ("GET", "/box/block?comp=tags", &[V], ""),
    ("OPTIONS", "/box/block", &[("Origin", "http://a"), ("Access-Control-Request-Method", "PUT"), ("Access-Control-Request-Headers", "x-ms-blob-type")], ""),
    // Changes.
    ("PUT", "/box/block?comp=metadata", &[V, ("x-ms-meta-Case", "x"), ("x-ms-meta-b_c", "")], ""),
    ("PUT", "/box/block?comp=properties", &[V, ("x-ms-blob-content-type", "text/x"), ("x-ms-blob-content-md5", "6y+Zi35VUD6uV9+51zqXsw=="), ("x-ms-blob-cache-control", "x"), ("x-ms-blob-content-disposition", "attachment; filename=\"a\"")], ""),
    ("PUT", "/box/block?comp=tags", &[V, ("x-ms-if-tags", "\"n\">'0'")], TAGS),
    ("PUT", "/loose/cold?comp=tier", &[V, ("x-ms-access-tier", "Archive"), ("x-ms-rehydrate-priority", "High")], ""),
    ("PUT", "/loose/cold?comp=tier", &[V, ("x-ms-access-tier", "Hot")], ""),
    ("PUT", "/box/block?comp=snapshot", &[V, ("x-ms-meta-s", "1"), ("If-Match", "*")], ""),
    ("PUT", "/box/held?comp=lease", &[V, ("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "60"), ("x-ms-proposed-lease-id", "{lease}")], ""),
    ("PUT", "/box/held?comp=lease", &[V, ("x-ms-lease-action", "renew"), ("x-ms-lease-id", "{lease}")], ""),
    ("PUT", "/box/held?comp=lease", &[V, ("x-ms-lease-action", "change"), ("x-ms-lease-id", "{lease}"), ("x-ms-proposed-lease-id", "00000000-1111-2222-3333-555555555555")], ""),
    ("PUT", "/box/held?comp=lease", &[V, ("x-ms-lease-action", "release"), ("x-ms-lease-id", "{lease}")], ""),
    ("PUT", "/box/held?comp=lease", &[V, ("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "60")], ""),
    ("PUT", "/box/held?comp=metadata", &[V, ("x-ms-lease-id", "{lease}")], ""),
    // Copies.
    ("PUT", "/box/copy", &[V, SOURCE, ("x-ms-meta-a", "1"), ("x-ms-source-if-match", "{etag}"), ("x-ms-source-if-tags", "n='1'"), ("x-ms-tags", "c=d"), ("x-ms-access-tier", "Cool"), ("x-ms-requires-sync", "false")], ""),
    ("PUT", "/box/copy", &[V, SOURCE, ("x-ms-requires-sync", "true"), ("x-ms-copy-source-tag-option", "COPY"), ("x-ms-source-content-md5", "eB5eJF1ptWaXm4bijSPyxw==")], ""),
    ("PUT", "/box/copy", &[V, BLOCK, SOURCE, ("x-ms-copy-source-blob-properties", "true"), ("x-ms-source-if-none-match", "\"0x1\"")], ""),
    ("PUT", "/box/copy", &[V, ("x-ms-copy-source", "{blobs}/box/block?snapshot={snapshot}"), ("x-ms-source-if-modified-since", "Mon, 01 Jan 2018 00:00:00 GMT"), ("x-ms-source-if-unmodified-since", "Wed, 01 Jan 2070 00:00:00 GMT")], ""),
    ("PUT", "/box/copied", &[V, ("x-ms-copy-source", "{blobs}/box/page")], ""),
    ("PUT", "/box/sealed", &[V, ("x-ms-copy-source", "{blobs}/box/append"), ("x-ms-seal-blob", "true")], ""),
    ("PUT", "/box/block?comp=copy&copyid=00000000-1111-2222-3333-444444444444", &[V, ("x-ms-copy-action", "abort")], ""),
    // Ends.
    ("DELETE", "/box/block", &[V, ("x-ms-delete-snapshots", "include"), ("If-Match", "{etag}")], ""),
    ("DELETE", "/box/block?snapshot={snapshot}", &[V], ""),
    ("DELETE", "/box/a/b?deletetype=", &[V, ("x-ms-delete-snapshots", "only")], ""),
    ("PUT", "/box/gone?comp=undelete", &[V], ""),
];
