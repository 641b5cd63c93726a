//! A text in several properties, if it is too long for one.

use model::limits::PROPERTY_VALUE_BYTES_MAX;

use partita_client::{Entity, Error, Result};

/// UTF-16 units of one property: 64 KiB.
const PIECE_UNITS_MAX: usize = PROPERTY_VALUE_BYTES_MAX / 2;
/// The number of such properties for which an entity has room.
const PIECES_MAX: usize = 14;

/// Whether there is room for a text in an entity.
pub fn fits(text: &str) -> bool {
    pieces(text).len() <= PIECES_MAX
}

/// Writes a text to the properties `Name00`, `Name01` and so on. `None` if it is too long.
pub fn write(entity: &mut Entity, name: &str, text: &str) -> Option<()> {
    let pieces = pieces(text);
    if pieces.len() > PIECES_MAX {
        return None;
    }
    for (number, piece) in pieces.into_iter().enumerate() {
        entity.set(format!("{name}{number:02}"), piece);
    }
    Some(())
}

/// The text that [`write`] wrote.
pub fn read(entity: &Entity, name: &str) -> Result<String> {
    let mut text = String::new();
    for number in 0..PIECES_MAX {
        match entity.text(&format!("{name}{number:02}")) {
            Some(piece) => text.push_str(piece),
            None if number == 0 => {
                return Err(Error::Unreadable(format!(
                    "the row {:?} of partition {:?} has no {name}00, so it is not one of this pattern",
                    entity.row_key, entity.partition_key
                )));
            }
            None => break,
        }
    }
    Ok(text)
}

fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut units) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        if units + character.len_utf16() > PIECE_UNITS_MAX {
            pieces.push(&text[start..at]);
            (start, units) = (at, 0);
        }
        units += character.len_utf16();
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_length_comes_back_or_is_refused() {
        let check = |text: &str, pieces: usize| {
            let mut entity = Entity::new("p", "r");
            write(&mut entity, "Body", text).unwrap();
            assert_eq!(entity.properties.len(), pieces);
            assert_eq!(read(&entity, "Body").unwrap(), text);
            for value in entity.properties.values() {
                assert!(value.as_ref().payload_bytes() <= PROPERTY_VALUE_BYTES_MAX);
            }
        };
        check("", 1);
        check("a", 1);
        check(&"a".repeat(PIECE_UNITS_MAX), 1);
        check(&"a".repeat(PIECE_UNITS_MAX + 1), 2);
        // Surrogate pairs are not split.
        check(&format!("a{}", "𝄞".repeat(PIECE_UNITS_MAX)), 3);
        check(&"a".repeat(PIECE_UNITS_MAX * PIECES_MAX), PIECES_MAX);
        assert_eq!(
            write(&mut Entity::default(), "Body", &"a".repeat(PIECE_UNITS_MAX * PIECES_MAX + 1)),
            None
        );
    }

    #[test]
    fn a_row_without_a_text_is_named() {
        let fault = read(&Entity::new("p", "r"), "Body").unwrap_err().to_string();
        assert_eq!(fault, "the row \"r\" of partition \"p\" has no Body00, so it is not one of this pattern");
    }
}
