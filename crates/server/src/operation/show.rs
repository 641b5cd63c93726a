//! Entities and tables in the format that was asked for.

use model::{DateTime, ETag, TableName, ValueRef};
use wire::atom::{self, AtomContext, AtomDialect, AtomEntry, AtomValue, FeedWriter};
use wire::entity_json::{self, EntityContext, EntityView};
use wire::{Format, MetadataLevel, Select, Version, names, url};

use super::Context;
use crate::answer::Content;

/// Entities of one table, shown one way.
pub struct EntityFormat<'a> {
    pub context: &'a Context<'a>,
    pub format: Format,
    /// As the request spells it.
    pub table: &'a TableName,
    pub select: Option<&'a Select>,
}

impl EntityFormat<'_> {
    pub fn one<'e, I>(&self, entity: EntityView<'e, I>) -> Content
    where
        I: Iterator<Item = (&'e str, ValueRef<'e>)> + Clone,
    {
        let mut out = Vec::with_capacity(2048);
        match self.format {
            Format::Json(level) => entity_json::write_entity(&mut out, &self.json(level), entity, true),
            Format::Atom => {
                let (link, etag, properties) = self.atom_entry(entity);
                let entry = AtomEntry { relative_url: &link, etag: Some(etag), properties };
                atom::write_entry(&mut out, &atom_context(self.context, self.table.as_str()), entry);
            }
        }
        content(self.context.version, self.format, false, out)
    }

    pub fn set<'e, I>(&self, entities: impl Iterator<Item = EntityView<'e, I>>) -> Content
    where
        I: Iterator<Item = (&'e str, ValueRef<'e>)> + Clone,
    {
        let mut out = Vec::with_capacity(16 * 1024);
        match self.format {
            Format::Json(level) => {
                let context = self.json(level);
                entity_json::write_entity_set_start(&mut out, &context);
                for (index, entity) in entities.enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    entity_json::write_entity(&mut out, &context, entity, false);
                }
                entity_json::write_entity_set_end(&mut out);
            }
            Format::Atom => {
                let context = atom_context(self.context, self.table.as_str());
                let mut feed = FeedWriter::start(&mut out, &context);
                for entity in entities {
                    let (link, etag, properties) = self.atom_entry(entity);
                    feed.entry(AtomEntry { relative_url: &link, etag: Some(etag), properties });
                }
                feed.finish();
            }
        }
        content(self.context.version, self.format, true, out)
    }

    fn json(&self, level: MetadataLevel) -> EntityContext<'_> {
        EntityContext {
            level,
            base: &self.context.site.base,
            account: self.context.site.account.as_str(),
            table: self.table.as_str(),
            select: self.select,
            etag_in_minimal: self.context.version.has_etag_in_minimal(),
        }
    }

    /// The link, the ETag and the chosen properties: system properties first, then the rest.
    fn atom_entry<'r, 'e: 'r, I>(
        &'r self,
        entity: EntityView<'e, I>,
    ) -> (String, String, Vec<(&'r str, AtomValue<'r>)>)
    where
        I: Iterator<Item = (&'e str, ValueRef<'e>)> + Clone,
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
            None => system.into_iter().chain(entity.properties).map(shown).collect(),
            Some(chosen) => {
                let is_system = |name: &str| system.iter().any(|(known, _)| *known == name);
                let rest = chosen.iter().filter(|name| !is_system(name)).map(|name| {
                    let value = entity.properties.clone().find(|(found, _)| found == name);
                    value.map_or((name.as_str(), AtomValue::Null), shown)
                });
                let system = system.into_iter().filter(|(name, _)| chosen.iter().any(|c| c == name));
                system.map(shown).chain(rest).collect()
            }
        };
        (link, etag, properties)
    }
}

pub fn table(context: &Context<'_>, format: Format, table: &TableName) -> Content {
    let mut out = Vec::with_capacity(512);
    match format {
        Format::Json(level) => {
            let account = context.site.account.as_str();
            entity_json::write_table(&mut out, level, &context.site.base, account, table.as_str());
        }
        Format::Atom => {
            let link = url::table_link(table.as_str());
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
                feed.entry(table_entry(&url::table_link(table.as_str()), table));
            }
            feed.finish();
        }
    }
    content(context.version, format, true, out)
}

fn table_entry<'a>(link: &'a str, table: &'a TableName) -> AtomEntry<'a, [(&'a str, AtomValue<'a>); 1]> {
    let name = AtomValue::Value(ValueRef::String(table.as_str()));
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
