use super::super::Sas;
use super::super::tests::EMULATOR;
use super::*;
use crate::signing::AccountKey;

/// `address` is `container` or `container/blob`.
fn read(address: &str, token: &str) -> Result<Sas, SasFormatError> {
    let (container, blob) = address.split_once('/').map_or((address, None), |(c, b)| (c, Some(b)));
    let query = QueryString::parse(&format!("{token}&sig=x")).unwrap();
    Ok(Sas::read_blob(&query, BlobTarget { container, blob })?.unwrap().0)
}

/// S1 to S7 (blob-operations 8.3) and the account's token of 8.2.
#[test]
fn tokens_are_the_specifications_both_ways() {
    let (account, key) = EMULATOR;
    let key = AccountKey::parse(key).unwrap();
    let expiry = "se=2030-01-01T00%3A00%3A00Z";
    let check = |address: &str, token: &str, expected: &str| {
        let sas = read(address, token).unwrap();
        assert_eq!(sas.sign(account, &key), expected, "{token} {:?}", sas.string_to_sign(account));
        // The snapshot is part of the address, not of the token.
        let (written, snapshot) = (sas.to_query(""), token.split_once("&snapshot="));
        assert_eq!(written, snapshot.map_or(token, |(token, _)| token));
    };
    check(
        "c1/b1",
        &format!("sv=2021-08-06&sr=b&sp=r&{expiry}"),
        "1HWHsJ3uTgqqHAEaGcseDFgMDZHgZTWFq/l6udu4zAA=",
    );
    check(
        "c1/any",
        &format!(
            "sv=2021-08-06&sr=c&sp=racwdl&st=2024-11-15T00%3A00%3A00Z&{expiry}&sip=127.0.0.1&spr=https%2Chttp"
        ),
        "J/0HJtGc5u3AkiTkaKUZeVGFQWeORJLeySQ3xwUjAEg=",
    );
    check("c1", "sv=2021-08-06&sr=c&si=policy-1", "mS6N/gwdPuBjnsRlRXc7LQT+S9bx7K/KOTiINC15xP8=");
    check(
        "c1/a b.txt",
        &format!(
            "sv=2021-08-06&sr=b&sp=r&{expiry}&rscc=no-cache&rscd=attachment%3B%20filename%3D%22x%22&rsce=gzip&rscl=en&rsct=text%2Fplain"
        ),
        "GBUspgE3XHrunPyFbEI6ICKBH2wcg63if43LkfsEFI4=",
    );
    check(
        "c1/b1",
        &format!("sv=2021-08-06&sr=bs&sp=r&{expiry}&snapshot=2024-11-15T12%3A00%3A00.1234567Z"),
        "WOYT4xKr7n9itHIMTfbw4FKOwNLFRmffKpOIdxnWL1g=",
    );
    check(
        "c1/b1",
        &format!("sv=2019-12-12&sr=b&sp=r&{expiry}"),
        "Q1gzRJ4PgR4S2Q86zWavCoxBL9ac/OyxZtFGZNG7xDE=",
    );
    check(
        "c1/b1",
        &format!("sv=2017-07-29&sr=b&sp=r&{expiry}"),
        "yKn5gWJYBOPyZIKvsuc4SSHJTOoX33AsNtyk2veEpmw=",
    );
    check(
        "",
        &format!("sv=2021-08-06&ss=b&srt=sco&sp=rwdlacup&{expiry}&spr=https%2Chttp"),
        "/jo85Y8SUaFT7/XabTDedQyDBbn/Gf1M64aWERMtB+8=",
    );
}

#[test]
fn each_version_signs_its_own_fields() {
    let check = |token: &str, expected: &str| {
        let token =
            format!("sv={token}&sp=r&se=9&sip=i&spr=p&si=d&ses=e&rscc=1&rscd=2&rsce=3&rscl=4&rsct=5&sr=b");
        assert_eq!(read("c/a/b", &token).unwrap().string_to_sign("shop"), expected, "{token}");
    };
    check("2012-02-12", "r\n\n9\n/shop/c/a/b\nd\n2012-02-12");
    check("2013-08-15", "r\n\n9\n/shop/c/a/b\nd\n2013-08-15\n1\n2\n3\n4\n5");
    check("2015-02-21", "r\n\n9\n/blob/shop/c/a/b\nd\n2015-02-21\n1\n2\n3\n4\n5");
    check("2015-04-05", "r\n\n9\n/blob/shop/c/a/b\nd\ni\np\n2015-04-05\n1\n2\n3\n4\n5");
    check("2018-11-09", "r\n\n9\n/blob/shop/c/a/b\nd\ni\np\n2018-11-09\nb\n\n1\n2\n3\n4\n5");
    check("2020-12-06", "r\n\n9\n/blob/shop/c/a/b\nd\ni\np\n2020-12-06\nb\n\ne\n1\n2\n3\n4\n5");
    check("2026-04-06", "r\n\n9\n/blob/shop/c/a/b\nd\ni\np\n2026-04-06\nb\n\ne\n1\n2\n3\n4\n5");
}

#[test]
fn a_users_delegation_key_is_part_of_what_it_signs() {
    let user = "skoid=O&sktid=T&skt=S&ske=E&sks=b&skv=V&saoid=A&suoid=U&scid=C&skdutid=DT&sduoid=DU";
    let check = |version: &str, expected: &str| {
        let token = format!("sv={version}&sr=c&sp=r&se=9&ses=e&rsct=5&{user}");
        let sas = read("c/b", &token).unwrap();
        let start = "r\n\n9\n/blob/shop/c\nO\nT\nS\nE\nb\nV";
        assert_eq!(sas.string_to_sign("shop"), format!("{start}\n{expected}\n\n\n\n\n5"), "{token}");
        assert_eq!(sas.delegation().map(|user| user.key_tenant.as_str()), Some("T"));
        let again = sas.to_query("x");
        assert_eq!(read("c/b", again.trim_end_matches("&sig=x")), Ok(sas), "{again}");
    };
    check("2018-11-09", "\n\n2018-11-09\nc\n");
    check("2020-02-10", "A\nU\nC\n\n\n2020-02-10\nc\n");
    check("2020-12-06", "A\nU\nC\n\n\n2020-12-06\nc\n\ne");
    check("2025-07-05", "A\nU\nC\nDT\nDU\n\n\n2025-07-05\nc\n\ne");
    check("2026-04-06", "A\nU\nC\nDT\nDU\n\n\n2026-04-06\nc\n\ne\n\n");
    let old = read("c/b", &format!("sv=2018-03-28&sr=c&sp=r&{user}"));
    assert_eq!(old, Err(SasFormatError::Version("2018-03-28".to_owned())));
}

#[test]
fn a_directory_is_as_deep_as_it_says() {
    let string = |address: &str, depth: &str| {
        let token = format!("sv=2020-02-10&sr=d&sdd={depth}&sp=r");
        read(address, &token).map(|sas| sas.string_to_sign("shop").lines().nth(3).unwrap().to_owned())
    };
    assert_eq!(string("c/a/b/x.txt", "2").as_deref(), Ok("/blob/shop/c/a/b"));
    assert_eq!(string("c/a/b/", "2").as_deref(), Ok("/blob/shop/c/a/b"));
    assert_eq!(string("c/a", "0").as_deref(), Ok("/blob/shop/c"));
    assert_eq!(string("c", "0").as_deref(), Ok("/blob/shop/c"));
    assert_eq!(string("c/a", "2"), Err(SasFormatError::Level("d")));
    assert_eq!(string("c", "1"), Err(SasFormatError::Level("d")));
    assert_eq!(string("c/a", "-1"), Err(SasFormatError::Depth("-1".to_owned())));
}

#[test]
fn what_is_no_token_for_the_address_is_refused() {
    let check = |address: &str, token: &str, expected: &str| {
        assert_eq!(read(address, token).unwrap_err().to_string(), expected, "{token}");
    };
    check("c/b", "sv=2021-08-06&sp=r", "sr is missing");
    check("c/b", "sv=2021-08-06&sr=q&sp=r", "sr is \"q\", not a kind of resource");
    check("c", "sv=2021-08-06&sr=b&sp=r", "sr is \"b\", but the address is not such a resource");
    // This version does not sign `sr`: a blob's token would be valid for its snapshot.
    check("c/b", "sv=2017-07-29&sr=bs&sp=r&snapshot=x", "sr is \"bs\", not a kind of resource");
    check("c/b", "sv=2021-08-06&sr=bs&snapshot=x&snapshot=y", "snapshot is given more than once");
    check("c/b", "sv=2021-08-06&sr=bs&Snapshot=&snapshot=y", "snapshot is given more than once");
    check("c/b", "sv=2021-08-06&sr=c&SES=&ses=mine", "ses is given more than once");
    check("c/b", "sv=2026-04-06&sr=b&sp=r&skoid=O&srh=x-ms-a", "srh is not supported");
}
