//! The tables of an account: which there are, and that one is there.

use std::time::Duration;

use connection::Request;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::session::Session;
use model::TableName;

const HEADERS: &str = "Accept: application/json;odata=nometadata\r\nContent-Type: application/json\r\n\
                       Prefer: return-no-content\r\n";
/// The cloud takes half a minute or more to delete a table, and until then there can be no other of its name.
const DELETION_ATTEMPTS: u32 = 30;
const DELETION_PAUSE: Duration = Duration::from_secs(4);

#[derive(Deserialize)]
struct Tables {
    value: Vec<Table>,
}

#[derive(Deserialize)]
struct Table {
    #[serde(rename = "TableName")]
    name: String,
}

pub async fn list(session: &mut Session) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut query = String::new();
    loop {
        let request = Request { method: "GET", path: "/Tables", query: &query, headers: HEADERS, body: None };
        let answer = session.send(request).await?;
        if answer.status != 200 {
            return Err(format!("can't list the tables: {}", answer.explain()));
        }
        let page: Tables = serde_json::from_slice(&answer.body)
            .map_err(|error| format!("the list of tables is no JSON that is understood here: {error}"))?;
        for Table { name } in page.value {
            // Names become names of files here: whatever is listed, nothing but a table's name may.
            let parsed = TableName::parse(&name).map_err(|_| {
                format!("the list of tables has {name:?} in it, which can't be a table's name")
            })?;
            names.push(parsed.as_str().to_owned());
        }
        match answer.next_table_name {
            Some(next) => query = format!("NextTableName={}", utf8_percent_encode(&next, NON_ALPHANUMERIC)),
            None => return Ok(names),
        }
    }
}

/// Makes a table unless it is there.
pub async fn create(session: &mut Session, name: &str) -> Result<(), String> {
    let mut body = b"{\"TableName\":".to_vec();
    crate::entity::write_text(&mut body, name);
    body.push(b'}');
    for _ in 0..DELETION_ATTEMPTS {
        let request =
            Request { method: "POST", path: "/Tables", query: "", headers: HEADERS, body: Some(&body) };
        let answer = session.send(request).await?;
        match (answer.status, answer.code().as_str()) {
            (201 | 204, _) | (409, "TableAlreadyExists") => return Ok(()),
            // A shared access signature need not allow this. Whether the table is there the first write will tell.
            (403, _) => return Ok(()),
            (409, "TableBeingDeleted") => tokio::time::sleep(DELETION_PAUSE).await,
            _ => return Err(format!("can't make the table {name}: {}", answer.explain())),
        }
    }
    Err(format!("can't make the table {name}: the one before it is still being deleted"))
}
