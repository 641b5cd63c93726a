//! `partita explain`: what a query reads, and what that would take on Azure.

use serde_json::Value;

use super::command::{ExplainCommand, Words};
use super::layout::{Paint, Screen};
use super::{Chosen, TableError, document};
use crate::progress::grouped;
use crate::queue::fitted;

pub async fn explain(command: &ExplainCommand) -> Result<(), TableError> {
    let of = Chosen::new(&command.connection, &command.table)?;
    let path = format!("/explain/{}", of.table.name());
    let mut query = Vec::new();
    if let Some(filter) = &command.filter {
        query.push(("$filter", filter.clone()));
    }
    if !command.plan {
        query.push(("run", "true".to_owned()));
    }
    let explained = document(&of.service, &path, query).await?;
    let screen = Screen::of_stdout();
    match command.format {
        Words::Json => screen.print(&format!("{explained}\n"))?,
        Words::Text => screen.print(&text(&explained, &screen))?,
    }
    Ok(())
}

fn text(explained: &Value, screen: &Screen) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        out.push_str(&format!("{} {value}\n", screen.painted(&format!("{name:<10}"), Paint::Bold)));
    };
    let number = |value: &Value| value.as_u64().map(grouped);
    let class = explained["class"].as_str().unwrap_or_default();
    let is_bad = matches!(class, "table scan" | "partition scan");
    line("class", screen.painted(&fitted(class, None), if is_bad { Paint::Red } else { Paint::Plain }));
    let ranges: Vec<String> =
        explained["ranges"].as_array().into_iter().flatten().filter_map(text_of).collect();
    for (index, range) in ranges.iter().enumerate() {
        line(if index == 0 { "reads" } else { "" }, range.clone());
    }
    let key_ranges = explained["key_ranges"].as_u64().unwrap_or(0);
    if key_ranges > ranges.len() as u64 {
        line("", format!("and {} more ranges", grouped(key_ranges - ranges.len() as u64)));
    }
    if let (Some(examined), Some(returned)) = (number(&explained["examined"]), number(&explained["returned"]))
    {
        let rest = if explained["complete"] == true { "" } else { ", in this page; there are more" };
        line("examined", format!("{examined} entities to return {returned}{rest}"));
    }
    if let Some(estimated) = number(&explained["estimated_entities"]) {
        line("examines", format!("about {estimated} entities"));
    }
    if let Some(ms) = explained["ms"].as_f64() {
        line("time", format!("{ms} ms"));
    }
    let azure = &explained["azure"];
    if let (Some(entities), Some(seconds), Some(requests)) =
        (number(&azure["entities"]), azure["seconds_at_targets"].as_f64(), number(&azure["requests"]))
    {
        let least = if azure["at_least"] == true { "at least " } else { "" };
        line(
            "on Azure",
            format!("{least}{entities} entities, {seconds} s at its targets, requests billed: {requests}"),
        );
    }
    if let Some(proposal) = text_of(&explained["proposal"]["text"]) {
        line("proposal", proposal);
        line("", text_of(&explained["proposal"]["pattern"]).unwrap_or_default());
    }
    out
}

/// A text of the answer, which comes from a server that may be hostile.
fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(|text| fitted(text, None))
}
