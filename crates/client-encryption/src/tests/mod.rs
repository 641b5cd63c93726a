//! The policy: which properties it encrypts, what it refuses, which key it uses.

mod damage;
mod libraries;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt;

use crate::metadata::{KEY_DETAILS, Metadata, PROPERTY_DETAILS};
use crate::*;
use partita_client::{Entity, Error, Result, Value};

const KEY: &str = "local:kek1";

/// Local keys never make a future wait.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("no key here waits")
}

fn bytes<const N: usize>(first: u8) -> [u8; N] {
    std::array::from_fn(|index| first + index as u8)
}

fn local_key(id: &str) -> LocalKey {
    LocalKey::new(id, &bytes::<32>(0x80)).unwrap()
}

fn policy() -> EncryptionPolicy {
    EncryptionPolicy::new(local_key(KEY)).encrypt_properties(["secret", "other"])
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

fn plain() -> Entity {
    Entity::new("Coho", "42").with("secret", "h\u{e9}llo").with("age", 7)
}

fn error<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result.unwrap_err() {
        Error::Encryption(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_entity_is_never_encrypted_the_same_way_twice() {
    let stored = || now(policy().encrypt(plain())).unwrap();
    let metadata = |entity: &Entity| Metadata::parse(entity.text(KEY_DETAILS).unwrap()).unwrap();
    let (one, two) = (stored(), stored());
    assert_ne!(one.get("secret"), two.get("secret"));
    // Wrapping is deterministic, so these are two different keys.
    assert_ne!(metadata(&one).wrapped_key, metadata(&two).wrapped_key);
    assert_ne!(metadata(&one).entity_iv, metadata(&two).entity_iv);
}

#[test]
fn names_rules_and_marks_choose_what_is_encrypted() {
    let entity = || Entity::new("p", "r").with("a", "1").with("b", "2").with("c", "3").with("d", "4");
    let policy = EncryptionPolicy::new(local_key(KEY))
        .encrypt_properties(["a", "absent"])
        .encrypt_if(|partition_key, row_key, name| (partition_key, row_key, name) == ("p", "r", "b"));
    let stored = now(policy.encrypt_marked(entity(), &names(&["c", "absent"]))).unwrap();
    let encrypted: Vec<bool> =
        ["a", "b", "c", "d"].iter().map(|name| matches!(stored.get(name), Some(Value::Binary(_)))).collect();
    assert_eq!(encrypted, [true, true, true, false]);
    assert_eq!(now(policy.decrypt(stored)).unwrap(), entity());
}

#[test]
fn a_rule_for_everything_does_not_encrypt_the_keys() {
    let policy = EncryptionPolicy::new(local_key(KEY)).encrypt_if(|_, _, _| true);
    let entity = Entity::new("p", "r").with("a", "1").with("Timestamp", "now");
    let stored = now(policy.encrypt(entity.clone())).unwrap();
    assert_eq!(stored.text("Timestamp"), Some("now"));
    assert_eq!((stored.partition_key.as_str(), stored.row_key.as_str()), ("p", "r"));
    assert_eq!(now(policy.decrypt(stored)).unwrap(), entity);
}

#[test]
fn an_error_names_the_property_that_cannot_be_encrypted() {
    let check = |policy: EncryptionPolicy, entity: Entity, words: &str| {
        let why = error(now(policy.encrypt(entity)));
        assert!(why.starts_with(r#"entity ("Coho", "42"): "#) && why.contains(words), "{why}");
    };
    check(policy(), plain().with("other", 5), r#"property "other" is Edm.Int32"#);
    check(policy(), plain().with("other", vec![1]), "Edm.Binary");
    check(policy().encrypt_properties(["RowKey"]), plain(), "RowKey is for the service");
    check(
        policy(),
        plain().with("secret", "\u{4e2d}".repeat(21_846)),
        r#"property "secret" takes 65552 bytes"#,
    );
    check(policy(), now(policy().encrypt(plain())).unwrap(), "encrypted already");
    check(EncryptionPolicy::read_only(local_ring()).encrypt_properties(["secret"]), plain(), "only reads");
    check(policy().require_encryption(true), Entity::new("Coho", "42").with("age", 7), "requires encryption");
    let full = (0..249).fold(plain(), |entity, index| entity.with(format!("p{index}"), index));
    check(policy(), full, "251 properties");
}

#[test]
fn an_entity_with_every_property_it_may_have_is_encrypted() {
    let full = (0..248).fold(plain(), |entity, index| entity.with(format!("p{index}"), index));
    let longest = full.with("secret", "x".repeat(65_535));
    let stored = now(policy().encrypt(longest.clone())).unwrap();
    assert_eq!(stored.properties.len(), 252);
    assert_eq!(now(policy().decrypt(stored)).unwrap(), longest);
}

fn local_ring() -> KeyRing {
    KeyRing::new(local_key(KEY))
}

#[test]
fn an_error_names_the_property_that_cannot_be_decrypted() {
    let stored = now(policy().encrypt(plain())).unwrap();
    let check = |policy: EncryptionPolicy, entity: Entity, words: &str| {
        let why = error(now(policy.decrypt(entity)));
        assert!(why.starts_with(r#"entity ("Coho", "#) && why.contains(words), "{why}");
        assert!(!why.contains("llo"), "{why}");
    };
    let without = |name: &str| {
        let mut entity = stored.clone();
        entity.remove(name);
        entity
    };
    let details = |from: &str, to: &str| {
        let text = stored.text(KEY_DETAILS).unwrap();
        assert!(text.contains(from));
        stored.clone().with(KEY_DETAILS, text.replace(from, to))
    };
    let damaged = r#"property "secret" can't be decrypted"#;
    check(policy(), stored.clone().with("secret", vec![0; 16]), damaged);
    check(policy(), stored.clone().with("secret", vec![0; 15]), damaged);
    check(policy(), stored.clone().with("secret", Vec::new()), damaged);
    check(policy(), stored.clone().with("secret", "text"), "should be Edm.Binary and is Edm.String");
    check(policy(), without("secret"), r#"encrypted property "secret" is missing"#);
    check(policy(), without(KEY_DETAILS), "one is missing");
    check(policy(), without(PROPERTY_DETAILS), "one is missing");
    check(policy(), stored.clone().with(PROPERTY_DETAILS, "text"), "should be a String");
    let list = format!("property {PROPERTY_DETAILS:?} can't be decrypted");
    check(policy(), stored.clone().with(PROPERTY_DETAILS, vec![0; 16]), &list);
    check(policy(), Entity { row_key: "43".into(), ..stored.clone() }, &list);
    check(policy(), stored.clone().with(KEY_DETAILS, "{"), "_ClientEncryptionMetadata1 can't be read");
    check(policy(), details("1.0", "2.0"), r#"protocol "2.0""#);
    check(policy(), details("AES_CBC_256", "AES_GCM_256"), r#"algorithm "AES_GCM_256""#);
    check(policy(), details("A256KW", "RSA-OAEP"), r#"not "RSA-OAEP""#);
    check(policy(), details(KEY, "gone"), r#"its key "gone" is not among those"#);
    let impostor = EncryptionPolicy::new(LocalKey::new(KEY, &[1; 32]).unwrap());
    check(impostor, stored.clone(), "another one than the content key was wrapped by");
    check(policy().require_encryption(true), plain(), "not encrypted");
}

#[test]
fn a_plain_entity_is_left_as_it_is() {
    assert_eq!(now(policy().decrypt(plain())).unwrap(), plain());
    let nothing_to_hide = Entity::new("Coho", "42").with("age", 7);
    assert_eq!(now(policy().encrypt(nothing_to_hide.clone())).unwrap(), nothing_to_hide);
}

#[test]
fn entities_of_older_keys_are_still_read() {
    let (old, new) = (|| LocalKey::new("old", &[1; 16]).unwrap(), || LocalKey::new("new", &[2; 32]).unwrap());
    let before = EncryptionPolicy::new(old()).encrypt_properties(["secret"]);
    let after = EncryptionPolicy::new(KeyRing::new(new()).with(old())).encrypt_properties(["secret"]);
    let by_old = now(before.encrypt(plain())).unwrap();
    let by_new = now(after.encrypt(plain())).unwrap();
    assert!(by_new.text(KEY_DETAILS).unwrap().contains(r#""KeyId":"new""#));
    assert_eq!(now(after.decrypt(by_old.clone())).unwrap(), plain());
    assert_eq!(now(after.decrypt(by_new.clone())).unwrap(), plain());
    assert!(error(now(before.decrypt(by_new))).contains(r#""new""#));

    // The same with a resolver, which is called for keys that are not on the ring.
    let found: Arc<dyn KeyEncryptionKey> = Arc::new(old());
    let resolver = move |id: &str| (id == "old").then(|| Arc::clone(&found));
    for policy in
        [EncryptionPolicy::new(new()).resolver(resolver.clone()), EncryptionPolicy::read_only(resolver)]
    {
        assert_eq!(now(policy.decrypt(by_old.clone())).unwrap(), plain());
    }
}

#[test]
fn an_older_key_with_the_same_id_does_not_replace_the_current_one() {
    let ring = KeyRing::new(local_key(KEY)).with(LocalKey::new(KEY, &[1; 16]).unwrap());
    let stored =
        now(EncryptionPolicy::new(ring.clone()).encrypt_properties(["secret"]).encrypt(plain())).unwrap();
    assert_eq!(now(EncryptionPolicy::new(ring).decrypt(stored.clone())).unwrap(), plain());
    assert_eq!(now(policy().decrypt(stored)).unwrap(), plain());
}

#[derive(Debug)]
struct VaultThatIsDown;

#[async_trait]
impl KeyEncryptionKey for VaultThatIsDown {
    fn key_id(&self) -> &str {
        KEY
    }

    fn algorithm(&self) -> &str {
        "RSA-OAEP"
    }

    async fn wrap(&self, _: &ContentKey) -> Result<Vec<u8>> {
        Err(Error::Unanswered("the vault".into()))
    }

    async fn unwrap_key(&self, _: &[u8], _: &str) -> Result<ContentKey> {
        Err(Error::Unanswered("the vault".into()))
    }
}

#[test]
fn the_error_of_an_unreachable_key_is_returned_unchanged() {
    let down = EncryptionPolicy::new(VaultThatIsDown).encrypt_properties(["secret"]);
    let stored = now(policy().encrypt(plain())).unwrap();
    for result in [now(down.encrypt(plain())), now(down.decrypt(stored))] {
        assert!(matches!(result, Err(Error::Unanswered(_))), "{result:?}");
    }
}

#[test]
fn a_projection_is_extended_by_what_decryption_needs() {
    let mut select = vec!["age".to_owned(), "RowKey".to_owned()];
    policy().extend_select(&mut select);
    policy().extend_select(&mut select);
    assert_eq!(select, ["age", "RowKey", "PartitionKey", KEY_DETAILS, PROPERTY_DETAILS]);
    let mut everything = Vec::new();
    policy().extend_select(&mut everything);
    assert!(everything.is_empty());
}

#[test]
fn a_projection_may_leave_out_encrypted_properties() {
    let mut stored = now(policy().encrypt(plain().with("other", "x"))).unwrap();
    stored.remove("secret");
    let selected = ["age".to_owned(), "other".to_owned()];
    let read = now(policy().decrypt_selected(stored.clone(), &selected)).unwrap();
    assert_eq!(read, Entity::new("Coho", "42").with("age", 7).with("other", "x"));
    assert!(error(now(policy().decrypt_selected(stored, &["secret".to_owned()]))).contains("missing"));
}

#[test]
fn a_merge_that_would_need_the_stored_key_is_refused() {
    let harmless = Entity::new("Coho", "42").with("age", 8);
    assert!(policy().check_merge(&harmless).is_ok());
    assert!(error(policy().check_merge(&plain())).contains(r#""secret" is to be encrypted"#));
    assert!(error(policy().check_merge_marked(&harmless, &names(&["age"]))).contains(r#""age""#));
    assert!(error(policy().require_encryption(true).check_merge(&harmless)).contains("replace the whole"));
}

#[test]
fn debug_shows_no_secret() {
    let content_key = ContentKey::try_from(vec![0xAB; 32]).unwrap();
    assert_eq!(format!("{content_key:?}"), "ContentKey(..)");
    assert_eq!(format!("{:?}", Encrypted("4000 1234")), "Encrypted(..)");
    let shown = format!("{:?}", policy());
    assert!(shown.contains(r#"LocalKey { id: "local:kek1", .. }"#) && !shown.contains("128"), "{shown}");
}

#[test]
fn futures_of_a_policy_are_send() {
    fn sent<T: Send>(future: impl Future<Output = T> + Send) -> T {
        now(future)
    }
    let (writer, reader) = (policy(), policy());
    let stored = sent(async move { writer.encrypt(plain()).await.unwrap() });
    assert_eq!(sent(async move { reader.decrypt(stored).await.unwrap() }), plain());
}

#[test]
fn a_content_key_has_32_bytes() {
    for length in [0, 16, 31, 33] {
        assert!(error(ContentKey::try_from(vec![0; length])).contains("32 bytes"));
    }
}

#[test]
fn other_formats_see_the_plain_value_of_an_encrypted_field() {
    let field: Encrypted<String> = "4000".into();
    assert_eq!(serde_json::to_string(&field).unwrap(), r#""4000""#);
    assert_eq!(serde_json::from_str::<Encrypted<String>>(r#""4000""#).unwrap(), field);
    assert_eq!(serde_json::from_str::<Option<Encrypted<String>>>("null").unwrap(), None);
    assert_eq!(Encrypted::NAME, "$Encrypted");
}
