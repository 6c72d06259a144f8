//! A tool of your own. The doc comments are what the model reads; the guard does the rest.
#![expect(clippy::print_stdout, reason = "it shows its answer")]

use std::sync::Arc;

use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet::{Agent, Ending};
use gimlet_models::{Script, ScriptedModel};

/// Count the words of a text.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The text to count.
    text: String,
}

struct CountWords;

impl TypedTool for CountWords {
    const NAME: &'static str = "count_words";
    type Input = Input;
    type Output = usize;

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<usize, ToolError> {
        Ok(input.text.split_whitespace().count())
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let script: Script = toml::from_str(
        r#"
        [[reply]]
        calls = [{ name = "count_words", args = { text = "small and sharp" } }]
        [[reply]]
        text = "It has three words."
        expect = ["3"]
        "#,
    )?;
    let agent = Agent::builder(Arc::new(ScriptedModel::new("scripted", script))).tool(CountWords).build()?;
    match agent.run("How many words has 'small and sharp'?").await? {
        Ending::Finished(finished) => println!("{}", finished.answer),
        other => anyhow::bail!("it did not finish: {other:?}"),
    }
    Ok(())
}
