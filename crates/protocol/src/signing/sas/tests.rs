//! The example tokens of the specifications, and malformed ones.

use super::*;

pub(super) const EMULATOR: (&str, &str) = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
);
const COUNTING: (&str, &str) =
    ("myaccount", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==");

/// The example tokens of the specification (access-and-service 2.10): T1 to T9, A1 to A4.
const VECTORS: [((&str, &str), &str); 13] = [
    (
        EMULATOR,
        "sv=2019-02-02&tn=MyTable&sp=raud&se=2030-01-01T00%3A00%3A00Z&sig=VH1kJ2dMcGJPJnFMefVZ3HMd1fedSci%2F031kWIgJz0w%3D",
    ),
    (
        EMULATOR,
        "sv=2019-02-02&tn=MyTable&sp=r&st=2024-11-15T00%3A00%3A00Z&se=2030-01-01T00%3A00%3A00Z&sip=127.0.0.1-127.0.0.10&spr=https%2Chttp&spk=Coho%20Winery&srk=Auburn&epk=Coho%20Winery&erk=Seattle&sig=f374aSyMOcrtk1hW8OHbHMdx%2B7S%2FsFG%2BE3zfAia2ti4%3D",
    ),
    (EMULATOR, "sv=2019-02-02&tn=MyTable&si=policy-1&sig=gbGxlt0mn5mBdpbur0AIDWPd2Jus77%2B6s0VB%2BLs43Uo%3D"),
    (
        EMULATOR,
        "sv=2019-02-02&tn=MyTable&se=2030-01-01T00%3A00%3A00Z&si=policy-1&sig=KS1K0yzG%2FRzxj%2FEmcdpj87sWUVyODSbNDLz1c6ZRyRU%3D",
    ),
    (
        EMULATOR,
        "sv=2019-02-02&tn=MyTable&sp=ra&se=2030-01-01T00%3A00%3A00Z&spk=%C3%A9&sig=J9ryfflkQjS96DwDbS0NZgae6uP98jnEKYbWeYM07%2FM%3D",
    ),
    (
        EMULATOR,
        "sv=2020-12-06&tn=MyTable&sp=au&se=2030-01-01T00%3A00%3A00Z&sig=Sb6Pa%2BNVr8B83NxjUfVbRja7q4%2FPwWEyIXz%2F%2Fc3cafI%3D",
    ),
    (
        EMULATOR,
        "sv=2015-02-21&tn=MyTable&sp=raud&se=2030-01-01T00%3A00%3A00Z&sig=3UHVsm9PuASFBuDV7u0FaLJb9puTnz2XzB3NyB6W0iw%3D",
    ),
    (
        EMULATOR,
        "sv=2013-08-15&tn=MyTable&sp=raud&se=2030-01-01T00%3A00%3A00Z&sig=EA0lJS4cQKLIexF28yw%2Fyu34ZWSh8LTCyf5WwfYN4HI%3D",
    ),
    (
        COUNTING,
        "sv=2019-02-02&tn=Employees&sp=rau&se=2030-01-01&spk=Jeff&epk=Jeff&sig=XanlJUbodxmi1q3h0Z14epKTGrG8LHTqxnsO6XTsdEs%3D",
    ),
    (
        EMULATOR,
        "sv=2019-02-02&ss=t&srt=sco&sp=rwdlacu&se=2030-01-01T00%3A00%3A00Z&sig=Sf6ztOvy1ckXMaWcI5xoOPCUz6txhdW%2BqY5V7MM9DMY%3D",
    ),
    (
        EMULATOR,
        "sv=2019-02-02&ss=t&srt=sc&sp=rl&st=2024-11-15T00%3A00%3A00Z&se=2030-01-01T00%3A00%3A00Z&sip=127.0.0.1&spr=https&sig=ysz14gKtQx%2FCfrGc8c%2Bpl5uYtS24lAbwM2mZBJ%2F9xcI%3D",
    ),
    (
        EMULATOR,
        "sv=2020-12-06&ss=t&srt=sco&sp=rwdlacu&se=2030-01-01T00%3A00%3A00Z&sig=mkX9joa5HxyiuCxzA090YZ5rIl1lVWCHUPrO7Y8D2xU%3D",
    ),
    (
        EMULATOR,
        "sv=2023-11-03&ss=bfqt&srt=sco&sp=rwdlacup&se=2030-01-01T00%3A00%3A00Z&spr=https%2Chttp&sig=0isK%2BwBGxvwwOHCwu%2FzBmvLyb%2Bvb74dKA2FjjQzlvIY%3D",
    ),
];

#[test]
fn tokens_are_the_specifications_both_ways() {
    for ((account, key), token) in VECTORS {
        let key = AccountKey::parse(key).unwrap();
        let (sas, signature) = Sas::read(&QueryString::parse(token).unwrap()).unwrap().unwrap();
        assert!(key.verifies(&sas.string_to_sign(account), &signature), "{token}");
        assert_eq!(sas.to_query(&sas.sign(account, &key)), token);
    }
}

#[test]
fn a_plus_that_became_a_space_is_one_again() {
    let query = QueryString::parse("sv=2019-02-02&tn=t&sig=a+b/c=").unwrap();
    assert_eq!(Sas::read(&query).unwrap().unwrap().1, "a+b/c=");
}

fn check(query: &str, expected: &str) {
    let shown = match Sas::read(&QueryString::parse(query).unwrap()) {
        Ok(Some((Sas::Table(_), _))) => "table".to_owned(),
        Ok(Some((Sas::Account(_), _))) => "account".to_owned(),
        Ok(Some((other, _))) => format!("{other:?}"),
        Ok(None) => "none".to_owned(),
        Err(malformed) => malformed.to_string(),
    };
    assert_eq!(shown, expected, "{query}");
}

#[test]
fn tokens_are_told_apart_and_refused() {
    check("$top=5", "none");
    check("sv=2019-02-02&tn=t&sig=x", "table");
    check("sv=2019-02-02&ss=t&srt=o&sig=x", "account");
    check("tn=t&sig=x", "sv is missing");
    check("sv=2019-02-02&sig=x", "tn is missing");
    check("sv=2019-02-02&tn=t&sp=r&sp=raud&sig=x", "sp is given more than once");
    check("sv=2019-02-02&tn=t&sig=x&sig=y", "sig is given more than once");
    check("sv=2011-08-18&tn=t&sig=x", "sv is \"2011-08-18\", not a version that has this kind of token");
    check(
        "sv=2014-02-14&ss=t&srt=o&sig=x",
        "sv is \"2014-02-14\", not a version that has this kind of token",
    );
    check("sv=x&tn=t&sig=x", "sv is \"x\", not a version that has this kind of token");
}
