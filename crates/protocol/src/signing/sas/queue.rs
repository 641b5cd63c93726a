//! The SAS of a queue (spec: queue-operations 7.3).

use super::{ACCOUNT_SAS, Fields, SERVICE_IN_RESOURCE, SasFormatError, Terms, UserDelegation, text};
use crate::QueryString;

/// Grants access to messages of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSas {
    pub terms: Terms,
    /// From the address: the token signs it, but does not name it.
    pub queue: String,
    /// `si`: the stored access policy that provides the terms which the token does not have.
    pub identifier: String,
    pub delegation: Option<UserDelegation>,
}

/// The first version in which a user delegation key may sign a queue's token.
const DELEGATION: &str = "2025-07-05";

impl QueueSas {
    pub(super) fn read(terms: Terms, query: &QueryString, queue: &str) -> Result<Self, SasFormatError> {
        let delegation = UserDelegation::read(query);
        if delegation.is_some() && terms.version.as_str() < DELEGATION {
            return Err(SasFormatError::Version(terms.version));
        }
        Ok(Self { terms, queue: queue.to_owned(), identifier: text(query, "si"), delegation })
    }

    pub(super) fn string_to_sign(&self, account: &str) -> String {
        let terms = &self.terms;
        let version = terms.version.as_str();
        let service = if version >= SERVICE_IN_RESOURCE { "/queue" } else { "" };
        let resource = format!("{service}/{account}/{}", self.queue);
        let mut fields = vec![terms.permissions.as_str(), &terms.start, &terms.expiry, &resource];
        match &self.delegation {
            Some(user) => {
                fields.extend(user.key());
                fields.extend([user.delegated_tenant.as_str(), &user.delegated_user]);
            }
            None => fields.push(&self.identifier),
        }
        if version >= ACCOUNT_SAS {
            fields.extend([terms.ip.as_str(), &terms.protocol]);
        }
        fields.push(version);
        fields.join("\n")
    }

    pub(super) fn fields(&self) -> (Fields<'_>, Fields<'_>) {
        let mut after = vec![("si", self.identifier.as_str())];
        after.extend(self.delegation.iter().flat_map(UserDelegation::fields));
        (Vec::new(), after)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sas;
    use super::super::tests::EMULATOR;
    use super::*;
    use crate::signing::AccountKey;

    fn read(token: &str) -> Result<Option<(Sas, String)>, SasFormatError> {
        Sas::read_queue(&QueryString::parse(token).unwrap(), "myqueue")
    }

    /// S1 to S3 (queue-operations 7.3), then A1 and A2 (7.4).
    #[test]
    fn tokens_are_the_specifications_both_ways() {
        let (account, key) = EMULATOR;
        let key = AccountKey::parse(key).unwrap();
        for token in [
            "sv=2021-02-12&sp=raup&se=2099-01-01T00%3A00%3A00Z&sig=2TE2Igx6DYCaDF9uspjSYcJwPtRb2QxYcp0H%2FE98QxM%3D",
            "sv=2021-02-12&spr=https%2Chttp&si=policy1&sig=Cm4nmrUKwAmRoeB6zIkdXRe2jljV5HmSjvBLwW56g%2FA%3D",
            "sv=2014-02-14&sp=r&se=2099-01-01&sig=r3Ia7DSpkzybNOYmxYE6qMKQktA12hdNkYwqu%2F2MpA8%3D",
            "sv=2021-02-12&ss=q&srt=sco&sp=rwdlacup&se=2099-01-01T00%3A00%3A00Z&spr=https%2Chttp&sig=LJ7ys9LS12cnHQvvjl9r3rbB2lsSPPZwjg2T01mXrTU%3D",
            "sv=2018-03-28&ss=q&srt=sco&sp=rwdlacup&se=2099-01-01T00%3A00%3A00Z&spr=https%2Chttp&sig=nQliu2M%2FUH66diuTorF7wRMjfYchelqZ95F1vqfMV3o%3D",
        ] {
            let (sas, signature) = read(token).unwrap().unwrap();
            assert!(key.verifies(&sas.string_to_sign(account), &signature), "{token}");
            assert_eq!(sas.to_query(&sas.sign(account, &key)), token);
        }
    }

    #[test]
    fn a_token_of_2015_02_21_names_the_service_but_neither_address_nor_protocol() {
        let (sas, _) = read("sv=2015-02-21&sp=r&se=2099-01-01&sip=1.2.3.4&spr=https&sig=x").unwrap().unwrap();
        assert_eq!(sas.string_to_sign("shop"), "r\n\n2099-01-01\n/queue/shop/myqueue\n\n2015-02-21");
    }

    #[test]
    fn a_users_delegation_key_is_part_of_what_it_signs() {
        let key = "skoid=O&sktid=T&skt=S&ske=E&sks=q&skv=V&skdutid=DT&sduoid=DU";
        let (sas, _) = read(&format!("sv=2026-02-06&sp=r&se=9&spr=https&{key}&sig=x")).unwrap().unwrap();
        assert_eq!(
            sas.string_to_sign("shop"),
            "r\n\n9\n/queue/shop/myqueue\nO\nT\nS\nE\nq\nV\nDT\nDU\n\nhttps\n2026-02-06"
        );
        assert_eq!(sas.delegation().map(|user| user.key_user.as_str()), Some("O"));
        let again = sas.to_query("x");
        assert_eq!(read(&again).unwrap().unwrap().0, sas, "{again}");
        let old = read(&format!("sv=2021-02-12&sp=r&{key}&sig=x"));
        assert_eq!(old, Err(SasFormatError::Version("2021-02-12".to_owned())));
    }

    #[test]
    fn a_field_that_comes_twice_is_refused() {
        let twice = read("sv=2026-02-06&sp=r&skoid=a&skoid=b&sig=x");
        assert_eq!(twice, Err(SasFormatError::Repeated("skoid")));
    }
}
