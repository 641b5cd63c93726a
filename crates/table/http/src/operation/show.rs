//! Writes entities and tables in the format of the answer.

use model::{DateTime, ETag, TableName, UnreadName as _, UnreadProperties, UnreadValue, ValueRef, limits};
use store::StoredName;
use wire::atom::{self, AtomContext, AtomDialect, AtomEntry, AtomValue, FeedWriter};
use wire::entity_json::{self, EntityContext, EntityView, EntityWriter};
use wire::{Format, MetadataLevel, Select, TableVersion, Version, names, url};

use super::Context;
use crate::answer::Content;
use front::MemoryShare;

/// How the entities of one table are shown.
pub struct EntityFormat<'a> {
    pub context: &'a Context<'a>,
    pub format: Format,
    /// As the request's URL has it.
    pub table: &'a StoredName,
    pub select: Option<&'a Select>,
    /// The names of times that are shown with an offset, because the insert has them so.
    pub offset_times: &'a [String],
}

/// How many bytes of an answer a stored byte can become. In JSON, a control character becomes six. In Atom, a Boolean with
/// a name of one letter, four bytes in the store, gets two tags.
const WRITTEN_PER_STORED_JSON: usize = 7;
const WRITTEN_PER_STORED_ATOM: usize = 12;

impl EntityFormat<'_> {
    /// The most memory that writing an entity of so many stored bytes takes.
    pub fn bytes_to_write(&self, stored: usize) -> usize {
        let absent =
            self.select.and_then(Select::names).map_or(0, |names| names.iter().map(String::len).sum());
        match self.format {
            Format::Json(_) => (stored + absent) * WRITTEN_PER_STORED_JSON,
            Format::Atom => (stored + absent) * WRITTEN_PER_STORED_ATOM,
        }
    }

    pub fn one<'e, I>(&self, entity: EntityView<'e, I>) -> Content
    where
        I: UnreadProperties<'e>,
    {
        let mut out = Vec::with_capacity(2048);
        match self.format {
            Format::Json(level) => entity_json::write_entity(&mut out, &self.json(level), entity),
            Format::Atom => {
                let (link, etag, properties) = self.atom_entry(entity);
                let entry = AtomEntry { relative_url: &link, etag: Some(etag), properties };
                atom::write_entry(&mut out, &atom_context(self.context, self.table.as_str()), entry);
            }
        }
        content(self.context.version, self.format, false, out)
    }

    /// Writes as many entities as there is memory for, but at least one. Returns the page and their number. The memory of
    /// the stored entities, `stored` bytes, is already held.
    pub fn set<'e, I>(
        &self,
        entities: impl Iterator<Item = EntityView<'e, I>>,
        stored: usize,
        held: &mut MemoryShare,
    ) -> (Content, usize)
    where
        I: UnreadProperties<'e>,
    {
        let mut out = Vec::with_capacity(16 * 1024);
        let mut shown = 0;
        let count = entities.size_hint().0;
        // When the buffer grows next, it needs memory for the old one and the new one.
        let mut has_room = |out: &Vec<u8>, capacity: usize| {
            out.len() < limits::PAGE_WRITTEN_BYTES_MAX && held.resize(stored + 3 * capacity)
        };
        match self.format {
            Format::Json(level) => {
                let context = self.json(level);
                let mut writer = EntityWriter::new(&context);
                entity_json::write_entity_set_start(&mut out, &context);
                for entity in entities {
                    if shown == 1 {
                        // Most pages have entities of one size. A buffer that grows step by step would be copied as often.
                        let whole = (out.len() * count).min(2 * stored).min(limits::PAGE_WRITTEN_BYTES_MAX);
                        if whole > out.capacity() && has_room(&out, whole) {
                            out.reserve_exact(whole - out.len());
                        }
                    }
                    if shown > 0 {
                        if !has_room(&out, out.capacity()) {
                            break;
                        }
                        out.push(b',');
                    }
                    writer.write(&mut out, entity);
                    shown += 1;
                }
                entity_json::write_entity_set_end(&mut out);
            }
            Format::Atom => {
                let context = atom_context(self.context, self.table.as_str());
                let mut feed = FeedWriter::start(&mut out, &context);
                for entity in entities {
                    if shown > 0 && !has_room(feed.written(), feed.written().capacity()) {
                        break;
                    }
                    let (link, etag, properties) = self.atom_entry(entity);
                    feed.entry(AtomEntry { relative_url: &link, etag: Some(etag), properties });
                    shown += 1;
                }
                feed.finish();
            }
        }
        (content(self.context.version, self.format, true, out), shown)
    }

    fn json(&self, level: MetadataLevel) -> EntityContext<'_> {
        EntityContext {
            level,
            base: &self.context.site.base,
            account: self.context.site.account.as_str(),
            table: self.table.as_str(),
            select: self.select,
            etag_in_minimal: self.context.version.has_etag_in_minimal(),
            offset_times: self.offset_times,
        }
    }

    /// The link, the ETag and the chosen properties: system properties first, then the rest.
    fn atom_entry<'r, 'e: 'r, I>(
        &'r self,
        entity: EntityView<'e, I>,
    ) -> (String, String, Vec<(&'r str, AtomValue<'r>)>)
    where
        I: UnreadProperties<'e>,
    {
        let link = url::entity_link(self.table.as_str(), entity.partition, entity.row);
        let etag = ETag(entity.timestamp).to_string();
        let system = [
            (names::PARTITION_KEY, ValueRef::String(entity.partition)),
            (names::ROW_KEY, ValueRef::String(entity.row)),
            (names::TIMESTAMP, ValueRef::DateTime(entity.timestamp)),
        ];
        let shown = |(name, value)| (name, AtomValue::Value(value));
        let properties: Vec<(&'r str, AtomValue<'r>)> = match self.select.and_then(Select::names) {
            None => {
                let custom = entity.properties.filter_map(|(name, value)| name.text().zip(value.value()));
                system.into_iter().chain(custom).map(shown).collect()
            }
            Some(chosen) => {
                let is_system = |name: &str| system.iter().any(|(known, _)| *known == name);
                let mut values = vec![None; chosen.len()];
                Select::pick(chosen, entity.properties, &mut values);
                let rest = chosen.iter().zip(values).filter(|(name, _)| !is_system(name));
                let rest = rest.map(|(name, value)| {
                    let value = value.and_then(UnreadValue::value);
                    (name.as_str(), value.map_or(AtomValue::Null, AtomValue::Value))
                });
                let is_chosen = |name: &str| self.select.is_none_or(|select| select.shows(name));
                let system = system.into_iter().filter(|(name, _)| is_chosen(name));
                system.map(shown).chain(rest).collect()
            }
        };
        (link, etag, properties)
    }
}

pub fn table(context: &Context<'_>, format: Format, table: &str) -> Content {
    let mut out = Vec::with_capacity(512);
    match format {
        Format::Json(level) => {
            let account = context.site.account.as_str();
            entity_json::write_table(&mut out, level, &context.site.base, account, table);
        }
        Format::Atom => {
            let link = url::table_link(table);
            atom::write_entry(&mut out, &atom_context(context, names::TABLES), table_entry(&link, table));
        }
    }
    content(context.version, format, false, out)
}

pub fn tables(context: &Context<'_>, format: Format, tables: &[TableName]) -> Content {
    let mut out = Vec::with_capacity(4096);
    match format {
        Format::Json(level) => {
            let account = context.site.account.as_str();
            let tables = tables.iter().map(TableName::as_str);
            entity_json::write_table_set(&mut out, level, &context.site.base, account, tables);
        }
        Format::Atom => {
            let atom = atom_context(context, names::TABLES);
            let mut feed = FeedWriter::start(&mut out, &atom);
            for table in tables {
                feed.entry(table_entry(&url::table_link(table.as_str()), table.as_str()));
            }
            feed.finish();
        }
    }
    content(context.version, format, true, out)
}

fn table_entry<'a>(link: &'a str, table: &'a str) -> AtomEntry<'a, [(&'a str, AtomValue<'a>); 1]> {
    let name = AtomValue::Value(ValueRef::String(table));
    AtomEntry { relative_url: link, etag: None, properties: [(names::TABLE_NAME, name)] }
}

fn atom_context<'a>(context: &'a Context<'_>, set: &'a str) -> AtomContext<'a> {
    AtomContext {
        dialect: dialect(context.version),
        spatial_namespaces: context.odata_3,
        base: &context.site.base,
        account: context.site.account.as_str(),
        set,
        now: DateTime::now(),
    }
}

fn dialect(version: Version) -> AtomDialect {
    if version.writes_old_xml() { AtomDialect::V2011 } else { AtomDialect::V2014 }
}

fn content(version: Version, format: Format, set: bool, out: Vec<u8>) -> Content {
    let content_type = match format {
        Format::Json(level) => level.content_type(),
        Format::Atom => atom::content_type(dialect(version), set),
    };
    Content { content_type: content_type.into(), bytes: out.into() }
}
