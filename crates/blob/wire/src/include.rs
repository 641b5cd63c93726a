//! What a list shows beside names and properties: the parameter `include`.

use blob_model::Refusal;

macro_rules! includes {
    ($(#[$doc:meta])* $name:ident { $($field:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $(pub $field: bool,)*
        }

        impl $name {
            /// Words between commas, in any case; an empty one is as good as none.
            pub fn parse(text: &str) -> Result<Self, Refusal> {
                let mut include = Self::default();
                for word in text.split(',').map(str::trim_ascii).filter(|word| !word.is_empty()) {
                    match word.to_ascii_lowercase().as_str() {
                        $($text => include.$field = true,)*
                        _ => {
                            let (name, value) = ("include", text.to_owned());
                            let reason = Some("Invalid query parameter value.");
                            return Err(Refusal::ParameterInvalid { name, value, reason });
                        }
                    }
                }
                Ok(include)
            }
        }
    };
}

includes!(
    /// Of List Containers.
    ContainerInclude {
        metadata = "metadata",
        deleted = "deleted",
        system = "system",
    }
);

includes!(
    /// Of List Blobs.
    BlobInclude {
        snapshots = "snapshots",
        metadata = "metadata",
        uncommitted = "uncommittedblobs",
        copy = "copy",
        deleted = "deleted",
        tags = "tags",
        versions = "versions",
        deleted_with_versions = "deletedwithversions",
        immutability_policy = "immutabilitypolicy",
        legal_hold = "legalhold",
        permissions = "permissions",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: blob-operations 0.3 fact 20, 4.1, 5.1.
    #[test]
    fn words_count_in_any_case() {
        let all = "snapshots,metadata,uncommittedblobs,copy,deleted,tags,versions,deletedwithversions,immutabilitypolicy,legalhold,permissions";
        let include = BlobInclude::parse(all).unwrap();
        assert!(include.snapshots && include.permissions && include.uncommitted);
        assert_eq!(BlobInclude::parse(&all.to_uppercase()), Ok(include));
        assert_eq!(BlobInclude::parse(""), Ok(BlobInclude::default()));
        assert!(ContainerInclude::parse("Metadata, system").unwrap().system);
        for text in ["everything", "metadata,none", "metadata;copy"] {
            assert_eq!(BlobInclude::parse(text).unwrap_err().code(), "InvalidQueryParameterValue", "{text}");
        }
    }
}
