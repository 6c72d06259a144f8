//! Whether a real small model says rightly what a task wants: a table of tasks in four languages, questions, orders, pasted
//! issues and tracebacks, with what Qwen2.5-Coder-1.5B behind llama.cpp replied to each. A sample goes to the real model
//! where its address is in `GIMLET_TEST_QWEN`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "the counts are worth reading in the log of a real run")]

use std::sync::Arc;

use gimlet::guided::{Aim, ask};
use gimlet::message::Message;
use gimlet::model::{Model, Request, Sampling};
use gimlet_models::HttpModel;
use gimlet_models::transport::{Timeouts, Transport};
use gimlet_models::wire::{Wire, WireOptions};
use serde::Deserialize;

/// Every so many tasks of the table are asked of the real model.
const SAMPLE: usize = 5;

#[derive(Deserialize)]
struct Row {
    /// What the task wants, as a person reads it.
    aim: Aim,
    task: String,
    /// What the model replied.
    reply: String,
}

fn table() -> Vec<Row> {
    include_str!("data/aim.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Tasks that a reply sorts wrongly.
fn wrong<'a>(rows: impl IntoIterator<Item = (&'a Row, String)>) -> Vec<&'a str> {
    let rows = rows.into_iter();
    rows.filter(|(row, reply)| ask::read_aim(reply) != Some(row.aim))
        .map(|(row, _)| row.task.as_str())
        .collect()
}

#[test]
fn the_recorded_replies_sort_tasks_of_every_language() {
    let table = table();
    assert!(table.len() >= 60, "{}", table.len());
    let wrong = wrong(table.iter().map(|row| (row, row.reply.clone())));
    // A question about a fault is at times taken for a report of it; an order is never taken for a question.
    assert!(wrong.len() <= 3, "{wrong:?}");
    let orders: Vec<&Row> = table.iter().filter(|row| row.aim == Aim::Change).collect();
    assert!(orders.iter().all(|row| !wrong.contains(&row.task.as_str())), "{wrong:?}");
}

#[test]
fn no_task_of_the_table_is_an_example_in_the_question() {
    let (messages, _) = ask::aim("the task itself");
    for row in table() {
        let is_example = messages.iter().any(|message| match message {
            Message::User { text } => *text == row.task,
            Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. } => false,
        });
        assert!(!is_example, "{}", row.task);
    }
}

mod real {
    use super::*;

    #[tokio::test]
    #[ignore = "needs llama.cpp with Qwen2.5-Coder-1.5B, its address in GIMLET_TEST_QWEN"]
    async fn a_sample_is_sorted_by_the_model_itself() {
        let address =
            std::env::var("GIMLET_TEST_QWEN").unwrap_or_else(|_| panic!("GIMLET_TEST_QWEN is not set"));
        let base: reqwest::Url = address.parse().unwrap();
        let transport = Transport::new(&base, Timeouts::LOCAL, None, None).unwrap();
        let options = WireOptions::new("qwen");
        let model: Arc<dyn Model> = Arc::new(HttpModel::new("qwen", Wire::OpenAi, &base, transport, options));
        let table = table();
        let mut asked = Vec::new();
        for row in table.iter().step_by(SAMPLE) {
            let (messages, schema) = ask::aim(&row.task);
            let sampling = Sampling {
                schema: Some(Arc::new(schema)),
                max_tokens: Some(120),
                temperature: Some(0.0),
                ..Sampling::default()
            };
            let messages = messages.into_iter().map(Arc::new).collect();
            let request = Request { messages, sampling, ..Request::default() };
            asked.push((row, model.complete(request).await.unwrap().text));
        }
        let all = asked.len();
        let wrong = wrong(asked);
        eprintln!("{} of {all} sorted wrongly: {wrong:?}", wrong.len());
        assert!(wrong.len() <= 2, "{wrong:?}");
    }
}
