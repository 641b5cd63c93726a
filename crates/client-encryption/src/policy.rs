//! Which properties are encrypted, and by which key. Encrypts and decrypts entities; sends nothing.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use model::limits::{CUSTOM_PROPERTIES_MAX, PROPERTY_VALUE_BYTES_MAX};

use crate::cipher::{EntityCipher, IV_BYTES};
use crate::key::fill_random;
use crate::metadata::{Dialect, KEY_DETAILS, Metadata, PROPERTY_DETAILS, format_names};
use crate::{ContentKey, KeyEncryptionKey, KeyResolver, KeyRing};
use partita_client::{Entity, Error, Result, Value};

/// The service must be able to read them.
const NEVER_ENCRYPTED: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];
const PROPERTIES_MAX: usize = CUSTOM_PROPERTIES_MAX - 2;

type Rule = dyn Fn(&str, &str, &str) -> bool + Send + Sync;

/// Which properties are encrypted and by which key. [The crate](crate) has examples.
///
/// A property is encrypted if one of these says so: its name ([`encrypt_properties`](Self::encrypt_properties)), a rule
/// ([`encrypt_if`](Self::encrypt_if)), or its type ([`Encrypted`](crate::Encrypted)).
#[derive(Clone)]
pub struct EncryptionPolicy {
    /// `None`: the policy can only decrypt.
    ring: Option<KeyRing>,
    resolver: Option<Arc<dyn KeyResolver>>,
    properties: BTreeSet<String>,
    rule: Option<Arc<Rule>>,
    required: bool,
}

impl EncryptionPolicy {
    /// With a [`KeyRing`], or with one key.
    pub fn new(keys: impl Into<KeyRing>) -> Self {
        Self {
            ring: Some(keys.into()),
            resolver: None,
            properties: BTreeSet::new(),
            rule: None,
            required: false,
        }
    }

    /// A policy that only decrypts. It gets keys from the resolver when it needs them.
    pub fn read_only(resolver: impl KeyResolver + 'static) -> Self {
        Self {
            ring: None,
            resolver: Some(Arc::new(resolver)),
            properties: BTreeSet::new(),
            rule: None,
            required: false,
        }
    }

    /// Finds keys that are not on the ring.
    #[must_use]
    pub fn resolver(mut self, resolver: impl KeyResolver + 'static) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// Encrypts properties with these names, in all entities.
    #[must_use]
    pub fn encrypt_properties<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.properties.extend(names.into_iter().map(Into::into));
        self
    }

    /// Encrypts properties for which this function of partition key, row key and property name returns true. A second call
    /// replaces the function.
    ///
    /// ```
    /// # use partita_client_encryption::{EncryptionPolicy, LocalKey};
    /// # fn main() -> partita_client::Result<()> {
    /// let policy = EncryptionPolicy::new(LocalKey::new("local:2026", &[7; 32])?)
    ///     .encrypt_if(|partition_key, _row_key, property| partition_key == "patients" && property != "Ward");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn encrypt_if(mut self, rule: impl Fn(&str, &str, &str) -> bool + Send + Sync + 'static) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Refuses to write, and to read, entities without any encrypted property. By default they are not changed.
    #[must_use]
    pub fn require_encryption(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Encrypts an entity, with a new content key for each call.
    pub async fn encrypt(&self, entity: Entity) -> Result<Entity> {
        self.encrypt_marked(entity, &BTreeSet::new()).await
    }

    /// As [`encrypt`](Self::encrypt); also encrypts the `marked` properties.
    pub(crate) async fn encrypt_marked(&self, entity: Entity, marked: &BTreeSet<String>) -> Result<Entity> {
        let names = self.choose(&entity, marked)?;
        if names.is_empty() {
            return match self.required {
                true => {
                    Err(about(&entity, "the policy requires encryption and chooses none of its properties"))
                }
                false => Ok(entity),
            };
        }
        let Some(key) = self.ring.as_ref().map(KeyRing::current) else {
            return Err(about(&entity, "the policy only reads; it needs a key to encrypt by"));
        };
        let content_key = ContentKey::random()?;
        let mut entity_iv = [0; IV_BYTES];
        fill_random(&mut entity_iv)?;
        let wrapped_key = key.wrap(&content_key).await.map_err(|why| in_entity(&entity, why))?;
        let metadata = Metadata {
            key_id: key.key_id().to_owned(),
            wrap_algorithm: key.algorithm().to_owned(),
            wrapped_key,
            entity_iv,
            dialect: Dialect::Common,
        };
        seal(entity, &names, &content_key, &metadata)
    }

    /// Decrypts an entity that this or another library has encrypted. An unencrypted entity is returned unchanged, unless
    /// encryption is required.
    pub async fn decrypt(&self, entity: Entity) -> Result<Entity> {
        self.decrypt_selected(entity, &[]).await
    }

    /// As [`decrypt`](Self::decrypt), for an entity that was read with a projection: encrypted properties outside of
    /// `selected` may be missing. An empty list selects everything.
    pub async fn decrypt_selected(&self, mut entity: Entity, selected: &[String]) -> Result<Entity> {
        let (metadata, list) = match (entity.remove(KEY_DETAILS), entity.remove(PROPERTY_DETAILS)) {
            (None, None) if self.required => {
                return Err(about(&entity, "it is not encrypted and the policy requires it"));
            }
            (None, None) => return Ok(entity),
            (Some(Value::String(metadata)), Some(Value::Binary(list))) => (metadata, list),
            (Some(_), Some(_)) => {
                let why = format!("{KEY_DETAILS} should be a String and {PROPERTY_DETAILS} Binary");
                return Err(about(&entity, why));
            }
            (Some(_), None) | (None, Some(_)) => {
                let why = format!(
                    "of {KEY_DETAILS} and {PROPERTY_DETAILS} one is missing; a projection needs both"
                );
                return Err(about(&entity, why));
            }
        };
        let metadata =
            Metadata::parse(&metadata).map_err(|why| about(&entity, format!("{KEY_DETAILS} {why}")))?;
        let key = self.find_key(&metadata.key_id).await.map_err(|why| in_entity(&entity, why))?;
        let content_key = key
            .unwrap_key(&metadata.wrapped_key, &metadata.wrap_algorithm)
            .await
            .map_err(|why| in_entity(&entity, why))?;
        open(entity, &list, selected, &content_key, &metadata)
    }

    /// Whether an entity may be merged into a stored one. It may not if it has a property to encrypt: that needs the stored
    /// entity's content key, which a merge does not read. It may not if encryption is required: the merge may create an
    /// entity, which would not be encrypted. Replace the whole entity instead.
    pub fn check_merge(&self, entity: &Entity) -> Result<()> {
        self.check_merge_marked(entity, &BTreeSet::new())
    }

    /// As [`check_merge`](Self::check_merge); `marked` properties must be encrypted, too.
    pub(crate) fn check_merge_marked(&self, entity: &Entity, marked: &BTreeSet<String>) -> Result<()> {
        if let Some(name) = self.choose(entity, marked)?.first() {
            let why = format!(
                "property {name:?} is to be encrypted and can't be merged: its key is with the stored entity, \
                 which a merge does not read; replace the whole entity"
            );
            return Err(about(entity, why));
        }
        match self.required {
            true => Err(about(
                entity,
                "a merge can't be encrypted, and the policy requires it; replace the whole entity",
            )),
            false => Ok(()),
        }
    }

    /// Adds to a projection what decryption needs: both metadata properties and the entity's keys. An empty projection
    /// selects everything and stays empty.
    pub fn extend_select(&self, names: &mut Vec<String>) {
        if names.is_empty() {
            return;
        }
        for needed in ["PartitionKey", "RowKey", KEY_DETAILS, PROPERTY_DETAILS] {
            if !names.iter().any(|name| name == needed) {
                names.push(needed.to_owned());
            }
        }
    }

    /// The properties to encrypt.
    fn choose(&self, entity: &Entity, marked: &BTreeSet<String>) -> Result<BTreeSet<String>> {
        for name in [KEY_DETAILS, PROPERTY_DETAILS] {
            if entity.properties.contains_key(name) {
                return Err(about(
                    entity,
                    format!("it has {name}, so it is encrypted already; decrypt it first"),
                ));
            }
        }
        if let Some(key) =
            NEVER_ENCRYPTED.iter().find(|name| self.properties.contains(**name) || marked.contains(**name))
        {
            return Err(about(entity, format!("{key} is for the service to read and can't be encrypted")));
        }
        let by_rule = |name: &str| match &self.rule {
            Some(rule) => {
                !NEVER_ENCRYPTED.contains(&name) && rule(&entity.partition_key, &entity.row_key, name)
            }
            None => false,
        };
        let chosen =
            |name: &&String| self.properties.contains(*name) || marked.contains(*name) || by_rule(name);
        Ok(entity.properties.keys().filter(chosen).cloned().collect())
    }

    async fn find_key(&self, id: &str) -> Result<Arc<dyn KeyEncryptionKey>> {
        if let Some(key) = self.ring.as_ref().and_then(|ring| ring.find(id)) {
            return Ok(Arc::clone(key));
        }
        let found = match &self.resolver {
            Some(resolver) => resolver.resolve(id).await?,
            None => None,
        };
        found.ok_or_else(|| Error::Encryption(format!("its key {id:?} is not among those of the policy")))
    }
}

impl fmt::Debug for EncryptionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ring, resolver, properties, rule, required } = self;
        f.debug_struct("EncryptionPolicy")
            .field("ring", ring)
            .field("resolver", &resolver.is_some())
            .field("properties", properties)
            .field("rule", &rule.is_some())
            .field("required", required)
            .finish()
    }
}

/// Encrypts these properties and adds the metadata.
pub(crate) fn seal(
    mut entity: Entity,
    names: &BTreeSet<String>,
    content_key: &ContentKey,
    metadata: &Metadata,
) -> Result<Entity> {
    let count = entity.properties.len();
    if count > PROPERTIES_MAX {
        let why = format!(
            "it has {count} properties; an encrypted one can have {PROPERTIES_MAX}, two being metadata"
        );
        return Err(about(&entity, why));
    }
    let cipher = cipher(&entity, content_key, metadata);
    let mut encrypted = Vec::with_capacity(names.len() + 1);
    for name in names {
        match entity.get(name) {
            Some(Value::String(text)) => encrypted.push((name.as_str(), cipher.encrypt(name, text))),
            Some(value) => {
                let kind = value.edm_type();
                let why = format!("property {name:?} is {kind}; only Edm.String can be encrypted");
                return Err(about(&entity, why));
            }
            None => return Err(about(&entity, format!("it has no property {name:?} to encrypt"))),
        }
    }
    encrypted.push((PROPERTY_DETAILS, cipher.encrypt(PROPERTY_DETAILS, &format_names(names))));
    for (name, bytes) in encrypted {
        // The limit applies to the encrypted bytes, which are UTF-8 with padding; plain text counts as UTF-16.
        if bytes.len() > PROPERTY_VALUE_BYTES_MAX {
            let why = format!(
                "property {name:?} takes {} bytes encrypted; {PROPERTY_VALUE_BYTES_MAX} can be stored",
                bytes.len()
            );
            return Err(about(&entity, why));
        }
        entity.set(name, bytes);
    }
    entity.set(KEY_DETAILS, metadata.format());
    Ok(entity)
}

/// Decrypts the properties that the encrypted list names. The metadata properties are already removed.
fn open(
    mut entity: Entity,
    list: &[u8],
    selected: &[String],
    content_key: &ContentKey,
    metadata: &Metadata,
) -> Result<Entity> {
    let cipher = cipher(&entity, content_key, metadata);
    let names = cipher.decrypt(PROPERTY_DETAILS, list).and_then(|text| metadata.dialect.parse_names(&text));
    let names = names.ok_or_else(|| undecryptable(&entity, PROPERTY_DETAILS))?;
    let mut decrypted = Vec::with_capacity(names.len());
    for name in names {
        match entity.get(&name) {
            Some(Value::Binary(bytes)) => match cipher.decrypt(&name, bytes) {
                Some(text) => decrypted.push((name, text)),
                None => return Err(undecryptable(&entity, &name)),
            },
            Some(value) => {
                let why =
                    format!("encrypted property {name:?} should be Edm.Binary and is {}", value.edm_type());
                return Err(about(&entity, why));
            }
            None if !selected.is_empty() && !selected.contains(&name) => {}
            None => return Err(about(&entity, format!("encrypted property {name:?} is missing"))),
        }
    }
    for (name, text) in decrypted {
        entity.set(name, text);
    }
    Ok(entity)
}

fn cipher<'a>(entity: &'a Entity, content_key: &'a ContentKey, metadata: &'a Metadata) -> EntityCipher<'a> {
    EntityCipher {
        content_key,
        entity_iv: &metadata.entity_iv,
        partition_key: &entity.partition_key,
        row_key: &entity.row_key,
        order: metadata.dialect.key_order(),
    }
}

/// The same text for every reason, so that it reveals nothing about the plaintext.
fn undecryptable(entity: &Entity, name: &str) -> Error {
    about(
        entity,
        format!("property {name:?} can't be decrypted: it, its metadata or the entity's keys were changed"),
    )
}

fn about(entity: &Entity, why: impl fmt::Display) -> Error {
    Error::Encryption(format!("entity ({:?}, {:?}): {why}", entity.partition_key, entity.row_key))
}

/// Adds the entity to an encryption error. Other errors, such as those of an unreachable vault, stay unchanged.
fn in_entity(entity: &Entity, error: Error) -> Error {
    match error {
        Error::Encryption(why) => about(entity, why),
        other => other,
    }
}
