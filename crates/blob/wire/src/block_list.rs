//! Block lists: the body of Put Block List, and the answer of Get Block List (spec: blob-operations 7.1).

use std::str::FromStr;

use blob_model::{BlockChoice, BlockId, BlockIdFault, ListedBlock, Refusal, limits};
use common::xml_character::find_forbidden;
use protocol::xml_fault::XmlFault;
use protocol::xml_text;
use protocol::xml_tree::Element;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::listed;
use crate::xml::{Writer, Xml};

const ROOT: &str = "BlockList";

/// The body of Put Block List, as a client writes it.
pub fn write_chosen(blocks: &[(BlockChoice, BlockId)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + blocks.len() * 64);
    out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for (choice, id) in blocks {
        let name = choice.name();
        // Base64 has nothing that XML would read.
        out.extend_from_slice(format!("<{name}>{id}</{name}>").as_bytes());
    }
    out.extend_from_slice(b"</BlockList>");
    out
}

/// The blocks that Put Block List names, in their order. The document is read without a tree: it may have 50,000 of them.
pub fn read_chosen(body: &[u8]) -> Result<Vec<(BlockChoice, BlockId)>, Refusal> {
    let (document, is_whole) = match std::str::from_utf8(body) {
        Ok(document) => (document, true),
        // What comes before is UTF-8.
        Err(error) => (std::str::from_utf8(&body[..error.valid_up_to()]).unwrap_or_default(), false),
    };
    let document = document.strip_prefix('\u{feff}').unwrap_or(document);
    if !is_whole {
        return Err(fault(document, document.len()));
    }
    Walk::new(document).run()
}

fn fault(document: &str, at: usize) -> Refusal {
    let XmlFault { line, position, reason } = match document.trim_ascii().is_empty() {
        true => XmlFault { line: 0, position: 0, ..XmlFault::not_well_formed(document, 0) },
        false => XmlFault::not_well_formed(document, at),
    };
    Refusal::XmlNotValid { line, position, reason: reason.into() }
}

/// A walk over a document, from tag to tag.
struct Walk<'d> {
    document: &'d str,
    reader: Reader<&'d [u8]>,
    blocks: Vec<(BlockChoice, BlockId)>,
    place: Place,
}

/// Where the walk is.
enum Place {
    Before,
    InList,
    /// Within a block, with what was read of its id.
    InBlock(BlockChoice, String),
    Behind,
}

impl<'d> Walk<'d> {
    fn new(document: &'d str) -> Self {
        let reader = Reader::from_str(document.trim_ascii_start());
        Self { document, reader, blocks: Vec::new(), place: Place::Before }
    }

    fn run(mut self) -> Result<Vec<(BlockChoice, BlockId)>, Refusal> {
        loop {
            self.take_text()?;
            let at = self.at();
            let broken = || fault(self.document, at);
            match self.reader.read_event().map_err(|_| broken())? {
                Event::Start(tag) => self.enter(&tag, at)?,
                Event::Empty(tag) => {
                    self.enter(&tag, at)?;
                    self.leave()?;
                }
                Event::End(_) => self.leave()?,
                Event::CData(data) => {
                    let data = data.xml10_content().map_err(|_| broken())?.into_owned();
                    self.add(&data, at)?;
                }
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                // Text was taken before. A document type could define entities without end.
                Event::DocType(_) | Event::Text(_) | Event::GeneralRef(_) => return Err(broken()),
            }
        }
        match self.place {
            Place::Behind => Ok(self.blocks),
            Place::Before | Place::InList | Place::InBlock(..) => Err(fault(self.document, self.at())),
        }
    }

    /// How far the document was read.
    fn at(&self) -> usize {
        self.document.len() - self.reader.get_ref().len()
    }

    /// The text up to the next tag.
    fn take_text(&mut self) -> Result<(), Refusal> {
        let at = self.at();
        let document = self.document;
        let broken = || fault(document, at);
        let written = xml_text::take(self.reader.get_mut()).ok_or_else(broken)?;
        if written.is_empty() {
            return Ok(());
        }
        let text = xml_text::decode(written).ok_or_else(broken)?;
        if find_forbidden(&text).is_some() {
            return Err(broken());
        }
        self.add(&text, at)
    }

    fn add(&mut self, piece: &str, at: usize) -> Result<(), Refusal> {
        match &mut self.place {
            Place::InBlock(_, id) => {
                // Blanks around an id may be many; the id itself is short.
                id.push_str(if id.is_empty() { piece.trim_ascii_start() } else { piece });
                Ok(())
            }
            _ if piece.trim_ascii().is_empty() => Ok(()),
            _ => Err(fault(self.document, at)),
        }
    }

    fn enter(&mut self, tag: &BytesStart<'_>, at: usize) -> Result<(), Refusal> {
        let name = tag.local_name();
        self.place = match self.place {
            Place::Before if name.as_ref() == ROOT.as_bytes() => Place::InList,
            Place::InList => {
                let choice = BlockChoice::ALL.into_iter().find(|c| c.name().as_bytes() == name.as_ref());
                let choice = choice.ok_or_else(|| fault(self.document, at))?;
                if self.blocks.len() == limits::COMMITTED_BLOCKS_MAX {
                    return Err(Refusal::BlockListTooLong);
                }
                Place::InBlock(choice, String::new())
            }
            _ => return Err(fault(self.document, at)),
        };
        Ok(())
    }

    /// The reader has seen a start for every end.
    fn leave(&mut self) -> Result<(), Refusal> {
        self.place = match std::mem::replace(&mut self.place, Place::InList) {
            Place::InBlock(choice, id) => {
                let id = BlockId::parse(id.trim_ascii()).map_err(|fault| match fault {
                    BlockIdFault::NotBase64 => Refusal::BlockIdInvalid,
                    BlockIdFault::Length => Refusal::BlockListInvalid,
                })?;
                self.blocks.push((choice, id));
                Place::InList
            }
            _ => Place::Behind,
        };
        Ok(())
    }
}

/// Which lists Get Block List asks for: `blocklisttype`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockListType {
    #[default]
    Committed,
    Uncommitted,
    All,
}

impl FromStr for BlockListType {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        match text.to_ascii_lowercase().as_str() {
            "" | "committed" => Ok(Self::Committed),
            "uncommitted" => Ok(Self::Uncommitted),
            "all" => Ok(Self::All),
            _ => Err(Refusal::ParameterInvalid {
                name: "blocklisttype",
                value: text.to_owned(),
                reason: Some(""),
            }),
        }
    }
}

/// The answer of Get Block List: only the lists that were asked for.
pub fn write(committed: Option<&[ListedBlock]>, uncommitted: Option<&[ListedBlock]>) -> Vec<u8> {
    let blocks = committed.map_or(0, <[_]>::len) + uncommitted.map_or(0, <[_]>::len);
    let mut xml = Xml::new(Writer::Old, 256 + blocks * 96);
    xml.open(ROOT);
    for (name, blocks) in [("CommittedBlocks", committed), ("UncommittedBlocks", uncommitted)] {
        match blocks {
            None => {}
            Some([]) => xml.empty(name),
            Some(blocks) => {
                xml.open(name);
                for block in blocks {
                    xml.open("Block");
                    xml.element("Name", &block.id.to_string());
                    xml.element("Size", &block.bytes.to_string());
                    xml.close("Block");
                }
                xml.close(name);
            }
        }
    }
    xml.close(ROOT);
    xml.finish()
}

/// The same as a client reads it: the committed blocks and the uncommitted ones, each if it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockLists {
    pub committed: Option<Vec<ListedBlock>>,
    pub uncommitted: Option<Vec<ListedBlock>>,
}

/// `None` if it is no such list.
pub fn read(document: &[u8]) -> Option<BlockLists> {
    let tags_max = 16 + 3 * (limits::COMMITTED_BLOCKS_MAX + limits::UNCOMMITTED_BLOCKS_MAX);
    let root = Element::parse_list(document, tags_max).filter(|root| root.name == ROOT)?;
    let blocks = |name| match listed::child(&root, name) {
        Some(list) => list.children.iter().map(block).collect::<Option<_>>().map(Some),
        None => Some(None),
    };
    Some(BlockLists { committed: blocks("CommittedBlocks")?, uncommitted: blocks("UncommittedBlocks")? })
}

fn block(element: &Element) -> Option<ListedBlock> {
    let id = BlockId::parse(listed::text(element, "Name")?).ok()?;
    Some(ListedBlock { id, bytes: listed::number(element, "Size")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> BlockId {
        BlockId::parse(text).unwrap()
    }

    fn check(body: &str, expected: &str) {
        let shown = match read_chosen(body.as_bytes()) {
            Ok(blocks) => blocks.iter().map(|(choice, id)| format!("{} {id};", choice.name())).collect(),
            Err(Refusal::XmlNotValid { line, position, .. }) => format!("{line}/{position}"),
            Err(refusal) => refusal.code().to_owned(),
        };
        assert_eq!(shown, expected, "{body:.200}");
    }

    #[test]
    fn every_clients_list_is_read() {
        check(
            "<BlockList><Latest>MQ==</Latest><Latest>Mg==</Latest></BlockList>",
            "Latest MQ==;Latest Mg==;",
        );
        check(
            "\u{feff}<?xml version='1.0' encoding='utf-8'?>\n<BlockList>\n <Committed>MQ==</Committed>\r\n <Uncommitted> MQ== </Uncommitted><Latest><![CDATA[MQ==]]></Latest><!-- x -->\n</BlockList>\n",
            "Committed MQ==;Uncommitted MQ==;Latest MQ==;",
        );
        check("<BlockList />", "");
        check("<BlockList></BlockList>", "");
        check("<b:BlockList xmlns:b='x'><b:Latest>M&#x51;==</b:Latest></b:BlockList>", "Latest MQ==;");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        check("", "0/0");
        check("x", "1/1");
        check("<BlockList>", "1/12");
        check("<Blocks/>", "1/1");
        check("<BlockList><Newest>MQ==</Newest></BlockList>", "1/12");
        check("<BlockList>MQ==</BlockList>", "1/12");
        check("<BlockList/><BlockList/>", "1/13");
        check("<BlockList/>x", "1/13");
        check("<BlockList><Latest>MQ==<a/></Latest></BlockList>", "1/24");
        check("<BlockList><Latest>\u{1}</Latest></BlockList>", "1/20");
        check("<!DOCTYPE a [<!ENTITY b \"bbb\">]><BlockList/>", "1/1");
        check("<BlockList><Latest>&b;</Latest></BlockList>", "1/20");
        assert!(read_chosen(b"<BlockList>\xff</BlockList>").is_err());
        // An id that can be none.
        for (id, code) in [
            ("", "InvalidBlockList"),
            (&"A".repeat(92), "InvalidBlockList"),
            ("a", "InvalidBlockId"),
            ("MQ", "InvalidBlockId"),
            ("=", "InvalidBlockId"),
        ] {
            check(&format!("<BlockList><Latest>{id}</Latest></BlockList>"), code);
        }
    }

    #[test]
    fn a_list_has_at_most_fifty_thousand_blocks() {
        let longest = BlockId::of_bytes(&[0xfb; limits::BLOCK_ID_BYTES_MAX]).unwrap();
        let blocks = vec![(BlockChoice::Uncommitted, longest); limits::COMMITTED_BLOCKS_MAX];
        let body = write_chosen(&blocks);
        assert!(body.len() <= limits::BLOCK_LIST_BYTES_MAX, "{}", body.len());
        assert_eq!(read_chosen(&body), Ok(blocks));
        let more = format!("<BlockList>{}</BlockList>", "<Latest>MQ==</Latest>".repeat(50_001));
        check(&more, "BlockListTooLong");
    }

    #[test]
    fn lists_are_the_services_to_the_byte() {
        let check = |committed: Option<&[ListedBlock]>,
                     uncommitted: Option<&[ListedBlock]>,
                     expected: &str| {
            let document = String::from_utf8(write(committed, uncommitted)).unwrap();
            let start = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>";
            assert_eq!(document.strip_prefix(start), Some(expected));
            let lists = read(document.as_bytes()).unwrap();
            assert_eq!((lists.committed.as_deref(), lists.uncommitted.as_deref()), (committed, uncommitted));
        };
        let one = [ListedBlock { id: id("MQ=="), bytes: 3 }];
        check(
            Some(&one),
            Some(&[]),
            "<BlockList><CommittedBlocks><Block><Name>MQ==</Name><Size>3</Size></Block></CommittedBlocks><UncommittedBlocks /></BlockList>",
        );
        check(Some(&[]), None, "<BlockList><CommittedBlocks /></BlockList>");
        check(
            None,
            Some(&one),
            "<BlockList><UncommittedBlocks><Block><Name>MQ==</Name><Size>3</Size></Block></UncommittedBlocks></BlockList>",
        );
        assert_eq!(read(b"<Error/>"), None);
    }

    #[test]
    fn a_type_is_named_in_any_case() {
        for (text, expected) in [
            ("", BlockListType::Committed),
            ("All", BlockListType::All),
            ("uncommitted", BlockListType::Uncommitted),
        ] {
            assert_eq!(text.parse(), Ok(expected));
        }
        assert_eq!("some".parse::<BlockListType>().unwrap_err().code(), "InvalidQueryParameterValue");
    }
}
