//! Shared access signatures: what a token says, and the string it signs. Whether it grants anything is decided
//! elsewhere, by whoever knows the time, the caller's address and the stored policies.

use common::Version;

use crate::Query;
use crate::signing::AccountKey;

/// A token, read out of a query string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sas {
    Table(TableSas),
    Account(AccountSas),
}

/// The fields both kinds have. Each is as it was sent: what is signed is the text, not its meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// `sv`
    pub version: String,
    /// `sp`
    pub permissions: String,
    /// `st`
    pub start: String,
    /// `se`
    pub expiry: String,
    /// `sip`
    pub ip: String,
    /// `spr`
    pub protocol: String,
}

/// Grants access to entities of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSas {
    pub terms: Terms,
    /// `tn`
    pub table: String,
    /// `si`: a stored access policy that holds what the token leaves out.
    pub identifier: String,
    /// `spk`, `srk`, `epk`, `erk`. An empty bound is no bound, as the signed text can't tell them apart.
    pub start_partition: String,
    pub start_row: String,
    pub end_partition: String,
    pub end_row: String,
}

/// Grants access to services, tables and entities of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountSas {
    pub terms: Terms,
    /// `ss`
    pub services: String,
    /// `srt`
    pub resource_types: String,
    /// `ses`: of no meaning to tables, but signed.
    pub encryption_scope: String,
}

/// Why a query string that looks like a token is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("{0} is given more than once")]
    Repeated(&'static str),
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("sv is {0:?}, which is no version that has this kind of signature")]
    Version(String),
}

const FIELDS: [&str; 17] = [
    "sv", "sp", "st", "se", "sip", "spr", "tn", "si", "spk", "srk", "epk", "erk", "ss", "srt", "ses", "sig",
    "sr",
];

/// First versions of the layouts (spec: access-and-service 2.3, 2.7).
const TABLE_SAS: &str = "2012-02-12";
const SERVICE_IN_RESOURCE: &str = "2015-02-21";
const ACCOUNT_SAS: &str = "2015-04-05";
const ENCRYPTION_SCOPE: &str = "2020-12-06";

impl Sas {
    /// The token and its signature; `None` if the query holds none.
    pub fn read(query: &Query) -> Result<Option<(Self, String)>, Malformed> {
        let Some(signature) = query.get("sig") else { return Ok(None) };
        for field in FIELDS {
            if query.names().filter(|name| *name == field).count() > 1 {
                return Err(Malformed::Repeated(field));
            }
        }
        let text = |name: &str| query.get(name).unwrap_or_default().to_owned();
        let terms = Terms {
            version: text("sv"),
            permissions: text("sp"),
            start: text("st"),
            expiry: text("se"),
            ip: text("sip"),
            protocol: text("spr"),
        };
        if terms.version.is_empty() {
            return Err(Malformed::Missing("sv"));
        }
        let is_account = query.get("ss").is_some() && query.get("srt").is_some();
        let first = if is_account { ACCOUNT_SAS } else { TABLE_SAS };
        if Version::parse(&terms.version).is_none() || terms.version.as_str() < first {
            return Err(Malformed::Version(terms.version));
        }
        // A `+` that was not encoded has become a space on its way here; Base64 has no spaces.
        let signature = signature.replace(' ', "+");
        let sas = if is_account {
            Self::Account(AccountSas {
                terms,
                services: text("ss"),
                resource_types: text("srt"),
                encryption_scope: text("ses"),
            })
        } else {
            let table = text("tn");
            if table.is_empty() {
                return Err(Malformed::Missing("tn"));
            }
            Self::Table(TableSas {
                terms,
                table,
                identifier: text("si"),
                start_partition: text("spk"),
                start_row: text("srk"),
                end_partition: text("epk"),
                end_row: text("erk"),
            })
        };
        Ok(Some((sas, signature)))
    }

    pub fn terms(&self) -> &Terms {
        match self {
            Self::Table(sas) => &sas.terms,
            Self::Account(sas) => &sas.terms,
        }
    }

    pub fn string_to_sign(&self, account: &str) -> String {
        match self {
            Self::Table(sas) => sas.string_to_sign(account),
            Self::Account(sas) => sas.string_to_sign(account),
        }
    }

    pub fn sign(&self, account: &str, key: &AccountKey) -> String {
        key.sign(&self.string_to_sign(account))
    }

    /// The query string that carries the token, in the order SDKs write it.
    pub fn to_query(&self, signature: &str) -> String {
        let terms = self.terms();
        let mut fields = vec![("sv", terms.version.as_str())];
        match self {
            Self::Table(sas) => fields.push(("tn", &sas.table)),
            Self::Account(sas) => {
                fields.extend([("ss", sas.services.as_str()), ("srt", &sas.resource_types)]);
            }
        }
        fields.extend([
            ("sp", terms.permissions.as_str()),
            ("st", &terms.start),
            ("se", &terms.expiry),
            ("sip", &terms.ip),
            ("spr", &terms.protocol),
        ]);
        match self {
            Self::Table(sas) => fields.extend([
                ("si", sas.identifier.as_str()),
                ("spk", &sas.start_partition),
                ("srk", &sas.start_row),
                ("epk", &sas.end_partition),
                ("erk", &sas.end_row),
            ]),
            Self::Account(sas) => fields.push(("ses", &sas.encryption_scope)),
        }
        fields.push(("sig", signature));
        let encode = |text: &str| {
            percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
                .to_string()
                .replace("%2D", "-")
                .replace("%2E", ".")
                .replace("%5F", "_")
                .replace("%7E", "~")
        };
        let pairs = fields.into_iter().filter(|(_, value)| !value.is_empty());
        pairs.map(|(name, value)| format!("{name}={}", encode(value))).collect::<Vec<_>>().join("&")
    }
}

impl TableSas {
    fn string_to_sign(&self, account: &str) -> String {
        let version = self.terms.version.as_str();
        let service = if version >= SERVICE_IN_RESOURCE { "/table" } else { "" };
        let resource = format!("{service}/{account}/{}", self.table.to_lowercase());
        let mut fields = vec![
            self.terms.permissions.as_str(),
            &self.terms.start,
            &self.terms.expiry,
            &resource,
            &self.identifier,
        ];
        if version >= ACCOUNT_SAS {
            fields.extend([self.terms.ip.as_str(), &self.terms.protocol]);
        }
        fields.extend([version, &self.start_partition, &self.start_row, &self.end_partition, &self.end_row]);
        fields.join("\n")
    }
}

impl AccountSas {
    /// Every field ends its line, the last one too.
    fn string_to_sign(&self, account: &str) -> String {
        let terms = &self.terms;
        let mut fields = vec![
            account,
            &terms.permissions,
            &self.services,
            &self.resource_types,
            &terms.start,
            &terms.expiry,
            &terms.ip,
            &terms.protocol,
            &terms.version,
        ];
        if terms.version.as_str() >= ENCRYPTION_SCOPE {
            fields.push(&self.encryption_scope);
        }
        fields.iter().flat_map(|field| [*field, "\n"]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMULATOR: (&str, &str) = (
        "devstoreaccount1",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    );
    const COUNTING: (&str, &str) = (
        "myaccount",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==",
    );

    /// The worked tokens of the specification (access-and-service 2.10): T1 to T9, A1 to A4.
    const VECTORS: [((&str, &str), &str); 13] = [
        (
            EMULATOR,
            "sv=2019-02-02&tn=MyTable&sp=raud&se=2030-01-01T00%3A00%3A00Z&sig=VH1kJ2dMcGJPJnFMefVZ3HMd1fedSci%2F031kWIgJz0w%3D",
        ),
        (
            EMULATOR,
            "sv=2019-02-02&tn=MyTable&sp=r&st=2024-11-15T00%3A00%3A00Z&se=2030-01-01T00%3A00%3A00Z&sip=127.0.0.1-127.0.0.10&spr=https%2Chttp&spk=Coho%20Winery&srk=Auburn&epk=Coho%20Winery&erk=Seattle&sig=f374aSyMOcrtk1hW8OHbHMdx%2B7S%2FsFG%2BE3zfAia2ti4%3D",
        ),
        (
            EMULATOR,
            "sv=2019-02-02&tn=MyTable&si=policy-1&sig=gbGxlt0mn5mBdpbur0AIDWPd2Jus77%2B6s0VB%2BLs43Uo%3D",
        ),
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
            let (sas, signature) = Sas::read(&Query::parse(token).unwrap()).unwrap().unwrap();
            assert!(key.verifies(&sas.string_to_sign(account), &signature), "{token}");
            assert_eq!(sas.to_query(&sas.sign(account, &key)), token);
        }
    }

    #[test]
    fn a_plus_that_became_a_space_is_one_again() {
        let query = Query::parse("sv=2019-02-02&tn=t&sig=a+b/c=").unwrap();
        assert_eq!(Sas::read(&query).unwrap().unwrap().1, "a+b/c=");
    }

    fn check(query: &str, expected: &str) {
        let shown = match Sas::read(&Query::parse(query).unwrap()) {
            Ok(Some((Sas::Table(_), _))) => "table".to_owned(),
            Ok(Some((Sas::Account(_), _))) => "account".to_owned(),
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
        check(
            "sv=2011-08-18&tn=t&sig=x",
            "sv is \"2011-08-18\", which is no version that has this kind of signature",
        );
        check(
            "sv=2014-02-14&ss=t&srt=o&sig=x",
            "sv is \"2014-02-14\", which is no version that has this kind of signature",
        );
        check("sv=x&tn=t&sig=x", "sv is \"x\", which is no version that has this kind of signature");
    }
}
