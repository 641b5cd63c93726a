//! Short texts in headers and options. Seven lines: version, `$format`, Accept, Content-Type, If-Match, and both data
//! service versions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{ETag, IfMatch};
use wire::Version;
use wire::format::{negotiate, of_body, speaks_odata_3};

fuzz_target!(|text: &str| {
    let [version, format, accept, content_type, if_match, speaks, may_speak] = fuzz::lines(text);
    match IfMatch::parse(if_match) {
        Ok(IfMatch::Version(time)) => {
            assert_eq!(IfMatch::parse(&ETag(time).text()), Ok(IfMatch::Version(time)), "{if_match}");
        }
        Ok(IfMatch::Any | IfMatch::Foreign) => {}
        Err(refusal) => fuzz::check_refusal(&refusal),
    }
    let odata_3 = speaks_odata_3(|| Some(speaks), Some(may_speak));
    let Some(version) = Version::parse(version) else { return };
    assert_eq!(Version::parse(version.as_str()), Some(version));
    if let Err(refusal) = of_body(Some(content_type), version) {
        fuzz::check_refusal(&refusal);
    }
    // The option wins over the header, whatever its value.
    let asked = negotiate(Some(format), Some(accept), version, odata_3);
    assert_eq!(asked, negotiate(Some(format), None, version, odata_3));
    if let Err(refusal) = negotiate(None, Some(accept), version, odata_3) {
        fuzz::check_refusal(&refusal);
    }
});
