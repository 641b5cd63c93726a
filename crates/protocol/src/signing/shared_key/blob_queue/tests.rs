//! The worked signatures of the specifications.

use super::*;
use crate::signing::AccountKey;

const EMULATOR: (&str, &str) = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
);
const COUNTING: (&str, &str) =
    ("myaccount", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==");

struct Vector {
    signer: (&'static str, &'static str),
    version: &'static str,
    request: &'static str,
    headers: &'static [(&'static str, &'static str)],
    shared_key: &'static str,
    /// Empty where the specification has none.
    shared_key_lite: &'static str,
}

const QUEUE: Vector = Vector {
    signer: EMULATOR,
    version: "2021-02-12",
    request: "",
    headers: &[],
    shared_key: "",
    shared_key_lite: "",
};
const BLOB: Vector = Vector { version: "2021-08-06", ..QUEUE };

/// Q1 to Q7 (queue-operations 7.2), then B1 to B7 (blob-operations 8.1).
const VECTORS: [Vector; 14] = [
    Vector {
        request: "GET /devstoreaccount1/?comp=list",
        shared_key: "HFLyv4mAnmJGbrJAIUVxWzQlU10Rh0Im5TVfmpGQ7Y8=",
        shared_key_lite: "BrLa1a1GDI2Arhh+I4mj5CHZfHMwaa75a95hZBWjeQc=",
        ..QUEUE
    },
    Vector {
        request: "PUT /devstoreaccount1/myqueue",
        headers: &[("x-ms-meta-b", "2"), ("x-ms-meta-a", "1")],
        shared_key: "9PF3jjwtbQIOPTNV0RHxDohqPKYXVWrFYDC6qSExJ1I=",
        shared_key_lite: "HhW4JSsL8SWt8jdOpvRt5tBwlnUmnbg4ijfOhJLYvBg=",
        ..QUEUE
    },
    Vector {
        request: "POST /devstoreaccount1/myqueue/messages?visibilitytimeout=5&messagettl=60",
        headers: &[("Content-Type", "application/xml"), ("Content-Length", "64")],
        shared_key: "j7Fq94FjQUEerNA+YQBa0DGW1lr2rAEv2KnEe3M/MIQ=",
        shared_key_lite: "4r1ACtt7mS8dx8JfSQ/9hm9aQl5DiwUzf23FZkeQK2I=",
        ..QUEUE
    },
    Vector {
        request: "GET /devstoreaccount1/myqueue/messages?numofmessages=4&visibilitytimeout=20",
        shared_key: "f/g6SvGQSIXWYWlQN4GLSK2tzIQprwsnMn3fDEyBnzE=",
        shared_key_lite: "jXYLu4uVMyg9WeHEFM1Qh9iu89vspSw5c1NQc34xoNY=",
        ..QUEUE
    },
    Vector {
        request: "DELETE /devstoreaccount1/myqueue/messages/0a1b2c3d-0000-4000-8000-0123456789ab?popreceipt=AgAAAAMAAAAAAAAAO0dZ7P5O1QE%3D",
        shared_key: "ybkH4WB0pxFMVuQZcSyD1hSvFe//9/N13u3H4ThnXnk=",
        shared_key_lite: "EsIBXGyUeleyvA78vEFUEPOYjB7PXqWgVg0HHIuvjWM=",
        ..QUEUE
    },
    Vector {
        request: "GET /devstoreaccount1/myqueue?comp=metadata&timeout=30",
        shared_key: "/l33oeh06XQsGuje0TDfdKioqqrh3ZMFedplUvUibcI=",
        shared_key_lite: "uSBGg3nlc1prBPztjzcer1e2sMCgHGTUqIQgdzLKfOM=",
        ..QUEUE
    },
    Vector {
        signer: COUNTING,
        request: "GET /?comp=list&prefix=q%20x",
        shared_key: "l9f453U/pWNKm230Qf0cUCSS2Fy41axFHqKG6fc9j6g=",
        shared_key_lite: "cpfW67bCS+mRzKaADzvYzq4FfaoyIr5ow5VinlyIGHE=",
        ..QUEUE
    },
    Vector {
        request: "GET /devstoreaccount1/?comp=list",
        shared_key: "odM28pmjSoPblQWy3UrhBVJPD3/iv2bGKNm/kjjBdTk=",
        ..BLOB
    },
    Vector {
        request: "PUT /devstoreaccount1/c1?restype=container",
        headers: &[("content-length", "0")],
        shared_key: "7hdNDt6eO4Nkj86JepGnOnZXbXU8togp3ww/S7hV/cQ=",
        ..BLOB
    },
    Vector {
        request: "PUT /devstoreaccount1/c1/b1",
        headers: &[
            ("content-length", "11"),
            ("content-type", "application/octet-stream"),
            ("x-ms-blob-type", "BlockBlob"),
        ],
        shared_key: "GEY2V85zp0TKsvdMLV75xqtkTI0nZuYk21R94MMv87A=",
        ..BLOB
    },
    Vector {
        request: "GET /devstoreaccount1/c1/b%201",
        headers: &[("x-ms-lease-id", "00000000-1111-2222-3333-444444444444"), ("x-ms-range", "bytes=0-511")],
        shared_key: "uZNfEIO2eApzWWmMHYABAXV7axOsKUAArPuBKhtteik=",
        ..BLOB
    },
    Vector {
        request: "GET /devstoreaccount1/c1?restype=container&comp=list&prefix=a%20b&include=metadata,snapshots",
        shared_key: "UXNGgn8NB59j+B5BkfOlEVtYJJwa06p74mzQYDQtKzQ=",
        ..BLOB
    },
    Vector {
        request: "PUT /devstoreaccount1/c1/b1",
        headers: &[
            ("content-length", "0"),
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-meta-a1", "d"),
            ("x-ms-meta-a_1", "u"),
        ],
        shared_key: "bVIzlyR4G4FVaIDCC1WyXnXS/ovfJWPonBrbwtevIbI=",
        ..BLOB
    },
    Vector {
        request: "GET /devstoreaccount1/c1?restype=container&comp=list",
        shared_key_lite: "7S0dlrPNMGgfDhK3PMOtTaTY4r5e6gmI76a4W/zQpMs=",
        ..BLOB
    },
];

impl Vector {
    fn with<T>(&self, check: impl FnOnce(BlobQueueRequest<'_>, AccountKey) -> T) -> T {
        let (method, target) = self.request.split_once(' ').unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let own = [("x-ms-version", self.version), ("X-Ms-Date", "Fri, 15 Nov 2024 12:00:00 GMT")];
        let headers: Vec<(&str, &str)> = own.iter().chain(self.headers).copied().collect();
        let (account, key) = self.signer;
        let request = BlobQueueRequest { method, account, path, query, headers: &headers };
        check(request, AccountKey::parse(key).unwrap())
    }
}

#[test]
fn signatures_are_the_specifications() {
    for vector in VECTORS {
        vector.with(|request, key| {
            for (scheme, expected) in
                [(Scheme::SharedKey, vector.shared_key), (Scheme::SharedKeyLite, vector.shared_key_lite)]
            {
                let string = request.string_to_sign(scheme);
                if !expected.is_empty() {
                    assert_eq!(key.sign(&string), expected, "{string}");
                }
                assert_eq!(request.strings_to_sign(scheme).next(), Some(string));
            }
        });
    }
}

#[test]
fn headers_sorted_by_their_bytes_are_accepted_too() {
    let ascii = "k0babYW9Pl448qO4nX7gky5G2WQiCYsynbLapXkTInA=";
    VECTORS[12].with(|request, key| {
        let strings: Vec<String> = request.strings_to_sign(Scheme::SharedKey).collect();
        assert_eq!(strings.len(), 2, "{strings:?}");
        assert_eq!(key.sign(&strings[1]), ascii);
    });
}

fn string(method: &str, query: &str, headers: &[(&str, &str)]) -> String {
    let request = BlobQueueRequest { method, account: "shop", path: "", query, headers };
    request.string_to_sign(Scheme::SharedKey)
}

#[test]
fn the_date_is_signed_only_where_nothing_replaces_it() {
    let date = ("Date", "Fri, 15 Nov 2024 12:00:00 GMT");
    assert!(string("GET", "", &[date]).starts_with("GET\n\n\n\n\n\nFri, 15 Nov 2024 12:00:00 GMT\n\n"));
    assert!(
        string("GET", "", &[date, ("x-ms-date", "x")])
            .starts_with("GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:x\n/")
    );
}

#[test]
fn a_length_of_zero_was_signed_once() {
    let length = ("content-length", "0");
    assert!(string("PUT", "", &[length, ("x-ms-version", "2014-02-14")]).starts_with("PUT\n\n\n0\n"));
    assert!(string("PUT", "", &[length, ("x-ms-version", "2015-02-21")]).starts_with("PUT\n\n\n\n"));
    assert!(string("PUT", "", &[length]).starts_with("PUT\n\n\n\n"));
}

#[test]
fn what_comes_more_than_once_is_joined() {
    let headers = [("x-ms-meta-a", " 2 "), ("X-MS-Meta-A", "1"), ("x-other", "0")];
    let signed = string("GET", "b=2&A=%26&b=1&&c", &headers);
    assert!(signed.ends_with("\nx-ms-meta-a:2,1\n/shop/\na:&\nb:1,2\nc:"), "{signed}");
}

#[test]
fn a_plus_may_have_been_signed_as_a_space() {
    let (query, headers) = ("popreceipt=a+b", &[("x-ms-date", "x")]);
    let request = BlobQueueRequest { method: "GET", account: "shop", path: "/q", query, headers };
    let strings: Vec<String> = request.strings_to_sign(Scheme::SharedKey).collect();
    assert_eq!(strings.len(), 2, "{strings:?}");
    assert!(strings[0].ends_with("popreceipt:a+b") && strings[1].ends_with("popreceipt:a b"), "{strings:?}");
}
