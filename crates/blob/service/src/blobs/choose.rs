//! Which block each entry of a block list means.

use blob_model::{BlockChoice, BlockId, Refusal};

use crate::content::Extent;

/// Is offered the uncommitted blocks first, and then the blob's own. The first that fits an entry is its block.
pub struct BlockChooser<'l> {
    list: &'l [(BlockChoice, BlockId)],
    /// The entries by their ids, so that a block finds those that ask for it.
    order: Vec<usize>,
    extents: Vec<Option<Extent>>,
    /// Ids by the place of their first entry in the order. A list may have an id 50,000 times, and so may the blob: only the
    /// first of its blocks is compared with the entries.
    offered: Vec<bool>,
    has_committed: bool,
    #[cfg(test)]
    looks: usize,
}

/// The blocks of a list that has all of them.
#[derive(Debug)]
pub struct Chosen {
    /// In the order of the list, with their ids.
    pub extents: Vec<Extent>,
    /// One of them is the blob's own.
    pub has_committed: bool,
}

impl<'l> BlockChooser<'l> {
    pub fn new(list: &'l [(BlockChoice, BlockId)]) -> Self {
        let mut order: Vec<usize> = (0..list.len()).collect();
        order.sort_unstable_by(|one, other| list[*one].1.cmp(&list[*other].1));
        Self {
            list,
            order,
            extents: vec![None; list.len()],
            offered: vec![false; list.len()],
            has_committed: false,
            #[cfg(test)]
            looks: 0,
        }
    }

    pub fn wants_uncommitted(&self) -> bool {
        self.list.iter().any(|(choice, _)| *choice != BlockChoice::Committed)
    }

    pub fn wants_committed(&self) -> bool {
        self.list.iter().any(|(choice, _)| *choice != BlockChoice::Uncommitted)
    }

    /// Every id at most once.
    pub fn offer_uncommitted(&mut self, id: &BlockId, extent: &Extent) {
        self.offer(id, extent, BlockChoice::Committed);
    }

    /// In the order of the blob, in which an id may come again.
    pub fn offer_committed(&mut self, id: &BlockId, extent: &Extent) {
        let first = self.first(id);
        if let Some(offered) = self.offered.get_mut(first)
            && !std::mem::replace(offered, self.list[self.order[first]].1 == *id)
        {
            self.has_committed |= self.offer(id, extent, BlockChoice::Uncommitted);
        }
    }

    /// Refused if an entry has no block.
    pub fn finish(self) -> Result<Chosen, Refusal> {
        let found = self.list.iter().zip(self.extents);
        let extents = found.map(|((_, id), extent)| Some(Extent { block: Some(id.clone()), ..extent? }));
        let extents: Option<Vec<Extent>> = extents.collect();
        Ok(Chosen { extents: extents.ok_or(Refusal::BlockListInvalid)?, has_committed: self.has_committed })
    }

    /// The place in the order of the first entry with this id, if there is one.
    fn first(&self, id: &BlockId) -> usize {
        self.order.partition_point(|at| self.list[*at].1 < *id)
    }

    /// Whether an entry takes it.
    fn offer(&mut self, id: &BlockId, extent: &Extent, not: BlockChoice) -> bool {
        let mut taken = false;
        let first = self.first(id);
        for at in self.order[first..].iter().take_while(|at| self.list[**at].1 == *id) {
            #[cfg(test)]
            {
                self.looks += 1;
            }
            if self.list[*at].0 != not && self.extents[*at].is_none() {
                self.extents[*at] = Some(Extent { block: None, ..extent.clone() });
                taken = true;
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blob_model::{Crc64, DateTime};
    use store::ObjectId;

    fn id(text: &str) -> BlockId {
        BlockId::of_bytes(text.as_bytes()).unwrap()
    }

    fn extent(number: u8) -> Extent {
        let object = ObjectId::new(DateTime::MIN_STORED, [number; 8]);
        Extent { object, start: 0, length: 1, crc64: Crc64(0), block: None }
    }

    #[test]
    fn an_entry_is_the_block_that_its_choice_says() {
        use BlockChoice::{Committed, Latest, Uncommitted};
        let list = [
            (Latest, id("a")),
            (Committed, id("a")),
            (Uncommitted, id("a")),
            (Latest, id("b")),
            (Latest, id("a")),
        ];
        let mut chooser = BlockChooser::new(&list);
        assert!(chooser.wants_committed() && chooser.wants_uncommitted());
        chooser.offer_uncommitted(&id("a"), &extent(1));
        chooser.offer_uncommitted(&id("c"), &extent(2));
        for (name, number) in [("a", 3), ("b", 4), ("a", 5), ("0", 6), ("d", 7)] {
            chooser.offer_committed(&id(name), &extent(number));
        }
        let chosen = chooser.finish().unwrap();
        assert!(chosen.has_committed);
        let expected = [("a", 1), ("a", 3), ("a", 1), ("b", 4), ("a", 1)];
        let expected = expected.map(|(name, number)| Extent { block: Some(id(name)), ..extent(number) });
        assert_eq!(chosen.extents, expected);
    }

    #[test]
    fn a_list_with_an_entry_that_no_block_fits_is_refused() {
        for choice in [BlockChoice::Committed, BlockChoice::Latest] {
            let list = [(choice, id("a")), (BlockChoice::Uncommitted, id("a"))];
            let mut chooser = BlockChooser::new(&list);
            chooser.offer_committed(&id("a"), &extent(1));
            assert!(chooser.finish().is_err());
        }
        let empty = BlockChooser::new(&[]);
        assert!(!empty.wants_committed() && !empty.wants_uncommitted());
        assert_eq!(empty.finish().unwrap().extents, []);
    }

    #[test]
    fn one_id_a_thousand_times_on_both_sides_is_compared_once_with_each_entry() {
        let list = vec![(BlockChoice::Latest, id("a")); 1000];
        let mut chooser = BlockChooser::new(&list);
        (0..1000).for_each(|_| chooser.offer_committed(&id("a"), &extent(1)));
        assert!(chooser.looks <= 1000, "{} looks", chooser.looks);
        assert_eq!(chooser.finish().unwrap().extents.len(), 1000);
    }
}
