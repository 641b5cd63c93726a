//! Why a filter is refused, in the service's words.
//!
//! The texts are those of the OData library that the service uses: recorded or quoted where the specification says so
//! (5.4), otherwise taken from the library. Its positions are 0-based and count UTF-16 units.

use model::{EdmType, Refusal};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The text is not a filter. Contains the service's message.
    #[error("{0}")]
    Syntax(String),
    /// OData that the Table service does not have: functions, arithmetic, comparing two properties.
    #[error("{}", Refusal::Shared(common::Refusal::NotImplemented))]
    NotImplemented,
    /// A comparison with `null`.
    #[error("{}", Refusal::Shared(common::Refusal::InputNotValid))]
    NotValid,
}

impl FilterError {
    /// An unexpected token; `end` is the offset just after it.
    pub(crate) fn unexpected(text: &str, end: usize) -> Self {
        Self::Syntax(format!("Syntax error at position {} in '{text}'.", position(text, end)))
    }

    pub(crate) fn character(text: &str, at: usize, character: char) -> Self {
        let position = position(text, at);
        Self::Syntax(format!(
            "Syntax error: character '{character}' is not valid at position {position} in '{text}'."
        ))
    }

    /// The library reports the end of the text as the position.
    pub(crate) fn unterminated_string(text: &str) -> Self {
        let end = position(text, text.len());
        Self::Syntax(format!("There is an unterminated string literal at position {end} in '{text}'."))
    }

    pub(crate) fn unterminated_literal(text: &str) -> Self {
        let end = position(text, text.len());
        Self::Syntax(format!("There is an unterminated literal at position {end} in '{text}'."))
    }

    /// Another token instead of `what`; `at` is the start of that token.
    pub(crate) fn expected(what: &str, text: &str, at: usize) -> Self {
        Self::Syntax(format!("{what} expected at position {} in '{text}'.", position(text, at)))
    }

    pub(crate) fn digit(text: &str, at: usize) -> Self {
        Self::Syntax(format!("A digit was expected at position {} in '{text}'.", position(text, at)))
    }

    pub(crate) fn literal(kind: EdmType, literal: &str, text: &str, at: usize) -> Self {
        let position = position(text, at);
        Self::Syntax(format!("Unrecognized '{kind}' literal '{literal}' at '{position}' in '{text}'."))
    }

    pub(crate) fn binary_operands(operator: &str, left: EdmType, right: EdmType) -> Self {
        Self::Syntax(format!(
            "A binary operator with incompatible types was detected. \
             Found operand types '{left}' and '{right}' for operator kind '{operator}'."
        ))
    }

    pub(crate) fn not_operand(operand: EdmType) -> Self {
        Self::Syntax(format!(
            "A unary operator with an incompatible type was detected. \
             Found operand type '{operand}' for operator kind 'Not'."
        ))
    }

    pub(crate) fn not_boolean() -> Self {
        Self::Syntax("The $filter expression must evaluate to a single boolean value.".to_owned())
    }

    pub(crate) fn too_deep() -> Self {
        Self::Syntax("Recursion depth exceeded allowed limit.".to_owned())
    }
}

/// A byte offset as the service would count it.
fn position(text: &str, at: usize) -> usize {
    text[..at].encode_utf16().count()
}
