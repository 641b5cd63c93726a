//! Method and resource to operation.

use http::Method;
use model::{EntityKey, Key, KeyFault, Refusal, TableName};
use wire::names;
use wire::url::{QueryString, Resource};

use crate::headers::X_HTTP_METHOD;
use crate::operation::Operation;
use front::headers::Headers;

/// The name of the table of hourly metrics before 2013-08-15, and since.
const OLD_HOUR_METRICS: &str = "$MetricsTransactionsTable";
const HOUR_METRICS: &str = "$MetricsHourPrimaryTransactionsTable";

/// The method of the request: with `X-HTTP-Method`, a POST has another method.
pub fn effective_method(method: &Method, headers: Headers<'_>) -> Result<Method, Refusal> {
    let mut tunnelled = headers.all(&X_HTTP_METHOD);
    let Some(first) = tunnelled.next() else { return Ok(method.clone()) };
    if method != Method::POST {
        return Err(Refusal::XMethodNotUsingPost);
    }
    if tunnelled.next().is_some() {
        return Err(Refusal::XMethodIncorrectCount);
    }
    match first.trim_ascii() {
        b"MERGE" | b"PATCH" => Ok(Method::PATCH),
        b"PUT" => Ok(Method::PUT),
        b"DELETE" => Ok(Method::DELETE),
        _ => Err(Refusal::XMethodIncorrectValue),
    }
}

/// The operations of `comp` and `restype`; `None` if the query has neither. They use XML.
pub fn resolve_service(
    method: &Method,
    query: &QueryString,
    resource: &Result<Resource, Refusal>,
    secondary: bool,
) -> Option<Result<Operation, Refusal>> {
    let (comp, restype) = (query.get_ignoring_case(names::COMP), query.get_ignoring_case(names::RESTYPE));
    let reads = *method == Method::GET || *method == Method::HEAD;
    let writes = *method == Method::PUT;
    let operation = match (comp, restype, resource) {
        (None, None, _) => return None,
        (Some("properties"), Some("service"), Ok(Resource::Service)) if reads => Ok(Operation::GetProperties),
        (Some("properties"), Some("service"), Ok(Resource::Service)) if writes => {
            Ok(Operation::SetProperties)
        }
        // Only the secondary has statistics of replication.
        (Some("stats"), Some("service"), Ok(Resource::Service)) if reads && secondary => {
            Ok(Operation::GetStatistics)
        }
        (
            Some("acl"),
            None,
            Ok(Resource::EntitySet(name) | Resource::Beneath { table: name, .. } | Resource::Deeper(name)),
        ) => match TableName::parse(name) {
            Ok(name) if reads => Ok(Operation::GetPolicies(name)),
            Ok(name) if writes => Ok(Operation::SetPolicies(name)),
            Ok(_) => Err(Refusal::MethodNotAllowed),
            Err(refusal) => Err(refusal),
        },
        (Some("properties"), Some("service"), Ok(Resource::Service)) => Err(Refusal::MethodNotAllowed),
        _ => Err(common::Refusal::QueryParameterValueInvalid.into()),
    };
    Some(operation)
}

/// The dispatch matrix (spec: table-operations 1.5). The method is checked before the names.
pub fn resolve(method: &Method, resource: Resource, account: &str) -> Result<Operation, Refusal> {
    let is_merge = *method == Method::PATCH || method.as_str() == "MERGE";
    match resource {
        Resource::Service if *method == Method::GET => Err(common::Refusal::NotImplemented.into()),
        Resource::Service => Err(Refusal::MethodNotAllowed),
        Resource::Batch if *method == Method::POST => Ok(Operation::Batch),
        Resource::Batch => Err(Refusal::MethodNotAllowed),
        Resource::Tables => match *method {
            Method::GET => Ok(Operation::QueryTables),
            Method::POST => Ok(Operation::CreateTable),
            _ => Err(Refusal::MethodNotAllowed),
        },
        Resource::Table(name) => match *method {
            // The old name works only for entities: the service shows no table of that name.
            Method::GET if name.eq_ignore_ascii_case(OLD_HOUR_METRICS) => {
                Err(common::Refusal::ResourceNotFound.into())
            }
            Method::GET => Ok(Operation::GetTable(TableName::parse(&name)?)),
            Method::DELETE => Ok(Operation::DeleteTable(TableName::parse(&name)?)),
            _ => Err(Refusal::MethodNotAllowed),
        },
        Resource::EntitySet(table) => match *method {
            Method::GET => Ok(Operation::QueryEntities(entity_table(&table)?)),
            Method::POST => Ok(Operation::InsertEntity(TableName::parse(&table)?)),
            _ => Err(Refusal::MethodNotAllowed),
        },
        Resource::Entity { table, partition, row } => {
            let make: fn(TableName, EntityKey) -> Operation = match *method {
                Method::GET => Operation::GetEntity,
                Method::PUT => Operation::PutEntity,
                Method::DELETE => Operation::DeleteEntity,
                _ if is_merge => Operation::MergeEntity,
                _ => return Err(Refusal::MethodNotAllowed),
            };
            let table = entity_table(&table)?;
            Ok(make(table, EntityKey { partition: url_key(partition)?, row: url_key(row)? }))
        }
        Resource::OneKey(table) => {
            let refusal = Refusal::KeyCount { resource: format!("{account}.{table}") };
            Ok(Operation::RefuseIn(TableName::parse(&table)?, refusal))
        }
        Resource::Deeper(table) => {
            TableName::parse(&table)?;
            Err(Refusal::QuerySyntax)
        }
        Resource::Beneath { table, has_key } => {
            let name = TableName::parse(&table)?;
            match *method {
                Method::POST if !has_key => Ok(Operation::InsertEntity(name)),
                _ if has_key => {
                    let refusal = Refusal::KeyCount { resource: format!("{account}.{table}") };
                    Ok(Operation::RefuseIn(name, refusal))
                }
                Method::GET => Ok(Operation::RefuseIn(name, common::Refusal::NotImplemented.into())),
                _ => Err(Refusal::MethodNotAllowed),
            }
        }
    }
}

fn entity_table(name: &str) -> Result<TableName, Refusal> {
    let is_old = name.eq_ignore_ascii_case(OLD_HOUR_METRICS);
    TableName::parse(if is_old { HOUR_METRICS } else { name })
}

/// A key in a URL, for which the service has other refusals than for a key in a body.
fn url_key(text: String) -> Result<Key, Refusal> {
    Key::parse(text).map_err(|fault| match fault {
        KeyFault::Forbidden => common::Refusal::InputOutOfRange.into(),
        KeyFault::TooLong => Refusal::PropertyValueTooLarge,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, path: &str, expected: &str) {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let resource = Resource::parse(path).unwrap();
        let shown = match resolve(&method, resource, "acct") {
            Ok(operation) => format!("{operation:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
            Err(refusal) => refusal.code().to_owned(),
        };
        assert_eq!(shown, expected, "{method} {path}");
    }

    #[test]
    fn the_dispatch_matrix() {
        let rows = [
            (
                "/Tables",
                ["QueryTables", "CreateTable", "MethodNotAllowed", "MethodNotAllowed", "MethodNotAllowed"],
            ),
            (
                "/Tables('abc')",
                ["GetTable", "MethodNotAllowed", "MethodNotAllowed", "MethodNotAllowed", "DeleteTable"],
            ),
            (
                "/abc()",
                ["QueryEntities", "InsertEntity", "MethodNotAllowed", "MethodNotAllowed", "MethodNotAllowed"],
            ),
            (
                "/abc(PartitionKey='p',RowKey='r')",
                ["GetEntity", "MethodNotAllowed", "PutEntity", "MergeEntity", "DeleteEntity"],
            ),
            (
                "/$batch",
                ["MethodNotAllowed", "Batch", "MethodNotAllowed", "MethodNotAllowed", "MethodNotAllowed"],
            ),
            (
                "/",
                [
                    "NotImplemented",
                    "MethodNotAllowed",
                    "MethodNotAllowed",
                    "MethodNotAllowed",
                    "MethodNotAllowed",
                ],
            ),
        ];
        for (path, expected) in rows {
            for (method, expected) in ["GET", "POST", "PUT", "MERGE", "DELETE"].into_iter().zip(expected) {
                check(method, path, expected);
            }
            check("PATCH", path, expected[3]);
            check("HEAD", path, "MethodNotAllowed");
        }
    }

    #[test]
    fn names_and_keys_are_judged_after_the_method() {
        check("GET", "/ab", "OutOfRangeInput");
        check("GET", "/a-b-c", "InvalidResourceName");
        check("PUT", "/a-b-c", "MethodNotAllowed");
        check("GET", "/abc(PartitionKey='a%23',RowKey='')", "OutOfRangeInput");
        check("GET", "/Tables('$MetricsTransactionsTable')", "ResourceNotFound");
        check("GET", "/Tables('$MetricsHourPrimaryTransactionsTable')", "GetTable");
        check("GET", "/$MetricsTransactionsTable()", "QueryEntities");
        check("POST", "/abc/abc", "InsertEntity");
        check("GET", "/abc/Tables", "RefuseIn");
        check("DELETE", "/abc/Tables('abc')", "RefuseIn");
    }
}
