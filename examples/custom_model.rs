//! A model of your own: anything that can stream a reply. This one repeats the task in capitals.
#![expect(clippy::print_stdout, reason = "it shows its answer")]

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use gimlet::message::{Finish, Message};
use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};
use gimlet::{Agent, Ending};

struct Shout;

impl Model for Shout {
    fn id(&self) -> &str {
        "shout"
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let task = request.messages.iter().find_map(|message| match message.as_ref() {
            Message::User { text } => Some(text.to_uppercase()),
            Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
        });
        let events = [ModelEvent::Text(task.unwrap_or_default()), ModelEvent::Done(Finish::Stop)];
        std::future::ready(Ok(stream::iter(events.map(Ok)).boxed())).boxed()
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let agent = Agent::builder(Arc::new(Shout)).build()?;
    match agent.run("hello").await? {
        Ending::Finished(finished) => println!("{}", finished.answer),
        other => anyhow::bail!("it did not finish: {other:?}"),
    }
    Ok(())
}
