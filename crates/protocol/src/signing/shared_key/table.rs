//! The string that a request to tables signs: the method, three headers, the path, and `comp` of the query (spec:
//! access-and-service 1.2).

use super::Scheme;

/// The parts of a request that are signed, each as sent.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    pub method: &'a str,
    pub content_md5: &'a str,
    pub content_type: &'a str,
    /// `x-ms-date` if it is sent, else `Date`.
    pub date: &'a str,
    /// Without `-secondary`.
    pub account: &'a str,
    /// Undecoded; in path style it begins with the account.
    pub path: &'a str,
    pub comp: Option<&'a str>,
}

impl SignedRequest<'_> {
    pub fn string_to_sign(&self, scheme: Scheme) -> String {
        let lines = [self.method, "\n", self.content_md5, "\n", self.content_type, "\n"];
        let head: &[&str] = match scheme {
            Scheme::SharedKey => &lines,
            Scheme::SharedKeyLite => &[],
        };
        let path = if self.path.is_empty() { "/" } else { self.path };
        let resource = [self.date, "\n/", self.account, path];
        let comp = self.comp.map(|comp| ["?comp=", comp]);
        // Runs for every request, so it allocates once.
        let pieces = || head.iter().chain(&resource).chain(comp.iter().flatten());
        let mut string = String::with_capacity(pieces().map(|piece| piece.len()).sum());
        string.extend(pieces().copied());
        string
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signing::AccountKey;

    const DATE: &str = "Fri, 15 Nov 2024 12:00:00 GMT";
    const EMULATOR_KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    const COUNTING_KEY: &str =
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";

    struct Vector {
        key: &'static str,
        account: &'static str,
        method: &'static str,
        content_md5: &'static str,
        content_type: &'static str,
        path: &'static str,
        comp: Option<&'static str>,
        shared_key: &'static str,
        shared_key_lite: &'static str,
    }

    const GET: Vector = Vector {
        key: EMULATOR_KEY,
        account: "devstoreaccount1",
        method: "GET",
        content_md5: "",
        content_type: "",
        path: "",
        comp: None,
        shared_key: "",
        shared_key_lite: "",
    };

    /// The worked signatures of the specification (access-and-service 1.8), K1 to K10.
    const VECTORS: [Vector; 11] = [
        Vector {
            path: "/devstoreaccount1/Tables",
            shared_key: "D37nUoTuIdZKzDa4CuSALxDCBY/Z/EXSbx4AhvREOio=",
            shared_key_lite: "9I7q41/TX7+ofrbqvFEw1vBCpu/Q7WyEpM49qDS+uUI=",
            ..GET
        },
        Vector {
            method: "POST",
            content_type: "application/json;odata=nometadata",
            path: "/devstoreaccount1/Tables",
            shared_key: "jLyrM4UzwhyNxNvk4pllTRPdC3OvYP61hL1/SbBU9JQ=",
            shared_key_lite: "9I7q41/TX7+ofrbqvFEw1vBCpu/Q7WyEpM49qDS+uUI=",
            ..GET
        },
        Vector {
            path: "/devstoreaccount1/mytable()",
            shared_key: "dMqQwlWVcNuedhxLlvRcBrgAhXrODhsRcApEOUxOOHA=",
            shared_key_lite: "qqoYOXfUf/DkN6x5zVoAcb/P3VZYPTNY/eQx3lsfJtg=",
            ..GET
        },
        Vector {
            method: "PUT",
            content_type: "application/json",
            path: "/devstoreaccount1/mytable(PartitionKey='a%20b',RowKey='%C3%A9~1')",
            shared_key: "byF7JpUqmpCEDvjBNgm/Dvv6gfLa40jzlsBCMwfrzK8=",
            shared_key_lite: "psr31aS4t1Mozu3h6qtLnbhFRXDaGWInMqNM3Cyc/NI=",
            ..GET
        },
        Vector {
            path: "/devstoreaccount1/mytable",
            comp: Some("acl"),
            shared_key: "218sGs5DSjVhB/hprRMuSAJQyDvxRdNsi7niJmv0O8Q=",
            shared_key_lite: "Hs4pO24ChG83hTzQvXGrdO7PEROPtPSViuONFpmpils=",
            ..GET
        },
        Vector {
            method: "PUT",
            content_type: "application/xml",
            path: "/devstoreaccount1/",
            comp: Some("properties"),
            shared_key: "5i0sWIxIU/ZXxWPpGquFzSDGxGvclg1A6QxSYGt6bdE=",
            shared_key_lite: "zaz9HXOXa7iGdgD9C1GkCr/Nx7pbZekBKAQAlJ86j/w=",
            ..GET
        },
        Vector {
            method: "POST",
            content_type: "multipart/mixed; boundary=batch_a1e9d677-b28b-435e-a89e-87e6a768a431",
            path: "/devstoreaccount1/$batch",
            shared_key: "gw6Uz5DPwXZiMArZWG6yRgWvoxav5Ro3K+TSrHD1wLY=",
            shared_key_lite: "ouEqsrbDwOAAcyoTgP6vfpwrE5f1jXWQwwJMMUkGTEk=",
            ..GET
        },
        Vector {
            key: COUNTING_KEY,
            account: "myaccount",
            method: "POST",
            content_md5: "XrY7u+Ae7tCTyyK7j1rNww==",
            content_type: "application/json",
            path: "/mytable",
            shared_key: "doOYbV5vojes9O4DYM22UPx3BZHABoA5XnvbiuHmiAw=",
            shared_key_lite: "Nmgc20965NMEpReX7x3fWhMlLX1bwHU5gA1zftqQqSs=",
            ..GET
        },
        Vector {
            key: COUNTING_KEY,
            account: "myaccount",
            path: "/",
            comp: Some("stats"),
            shared_key: "16CnWtixzRstzQk0+62dHDlouxNfPpuHLVjuAwANeL4=",
            shared_key_lite: "saIHtXs6gcVzxZmV+qk17d8MNCxLt2dRDJ1ajHPdMwY=",
            ..GET
        },
        Vector {
            path: "/devstoreaccount1/",
            comp: Some("stats"),
            shared_key: "V9qKVhEjlkN12SSkMGWJScP2RS7DyuXPyXdQhvaxEJc=",
            shared_key_lite: "tCw6fVuKmTV7vrryfZ/jCZQ+Lhpxab2uZvw5riZ/NTU=",
            ..GET
        },
        Vector {
            path: "/devstoreaccount1-secondary/",
            comp: Some("stats"),
            shared_key: "XDei2v+PjuAE3zc0H0XIcklRfWYvUrN6SaVWOUd5fN4=",
            shared_key_lite: "0A83Kfp4WYLMRBe0LpTrc6QCgGYgoH84oe4siVdKuU4=",
            ..GET
        },
    ];

    #[test]
    fn signatures_are_the_specifications() {
        for vector in VECTORS {
            let key = AccountKey::parse(vector.key).unwrap();
            let request = SignedRequest {
                method: vector.method,
                content_md5: vector.content_md5,
                content_type: vector.content_type,
                date: DATE,
                account: vector.account,
                path: vector.path,
                comp: vector.comp,
            };
            for (scheme, expected) in
                [(Scheme::SharedKey, vector.shared_key), (Scheme::SharedKeyLite, vector.shared_key_lite)]
            {
                let string = request.string_to_sign(scheme);
                assert_eq!(key.sign(&string), expected, "{string}");
                assert!(key.verifies(&string, expected));
                assert!(!key.verifies(&format!("{string} "), expected));
            }
        }
    }

    #[test]
    fn the_specifications_wrong_signatures_are_wrong() {
        let key = AccountKey::parse(EMULATOR_KEY).unwrap();
        let request = SignedRequest {
            method: "GET",
            content_md5: "",
            content_type: "",
            date: DATE,
            account: "devstoreaccount1",
            path: "/devstoreaccount1/Tables",
            comp: None,
        };
        for signature in [
            "BalfFkTqyWz+hUb0YHOFCcHD6VgWVL/Nv7bVfZ7jCGI=",
            "gu74Zduzo3PK+XehOKMFDDgCEQAOFZEIFgy6T3FhXOQ=",
            "",
            "x",
            "%%%",
        ] {
            assert!(!key.verifies(&request.string_to_sign(Scheme::SharedKey), signature));
        }
    }
}
