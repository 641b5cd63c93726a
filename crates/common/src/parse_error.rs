//! The error of parsing a time or a GUID.

/// The text is not a DateTime or not a Guid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an {kind}; write it like {example}")]
pub struct ParseValueError {
    pub(crate) text: String,
    pub(crate) kind: &'static str,
    pub(crate) example: &'static str,
}

#[cfg(test)]
mod tests {
    use crate::{DateTime, Guid};

    #[test]
    fn text_that_is_none_is_told_how_it_is_written() {
        assert_eq!("2021-05-06".parse(), Ok(DateTime::parse("2021-05-06").unwrap()));
        assert_eq!(
            "soon".parse::<DateTime>().unwrap_err().to_string(),
            "'soon' is not an Edm.DateTime; write it like 2021-05-06T07:08:09.1234567Z"
        );
        assert_eq!(
            "1".parse::<Guid>().unwrap_err().to_string(),
            "'1' is not an Edm.Guid; write it like 0f8fad5b-d9cb-469f-a165-70867728950e"
        );
    }
}
