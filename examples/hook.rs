//! Looking in on a run: a hook that counts calls and refuses one, and a check that sends a lazy answer back.
#![expect(clippy::print_stdout, reason = "it shows its answer")]

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::hook::{Check, Facts, Flow, Hook, HookError};
use gimlet::message::ToolCall;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet::{Agent, Ending};
use gimlet_models::{Script, ScriptedModel};

/// Look something up.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// What to look up.
    word: String,
}

struct LookUp;

impl TypedTool for LookUp {
    const NAME: &'static str = "look_up";
    type Input = Input;
    type Output = String;

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<String, ToolError> {
        Ok(format!("{}: a small hand tool for boring holes", input.word))
    }
}

struct NoSecrets;

impl Hook for NoSecrets {
    fn name(&self) -> &str {
        "no secrets"
    }

    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Result<Flow, HookError>> {
        let secret = call.args["word"] == "password";
        let flow =
            if secret { Flow::Refuse("that word is not looked up here".into()) } else { Flow::Continue };
        std::future::ready(Ok(flow)).boxed()
    }
}

struct MustLook;

impl Check for MustLook {
    fn check<'a>(&'a self, _answer: &'a str, facts: Facts<'a>) -> BoxFuture<'a, Result<(), String>> {
        let looked = facts.calls.iter().any(|call| call.error.is_none());
        std::future::ready(if looked { Ok(()) } else { Err("look it up before you answer".into()) }).boxed()
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let script: Script = toml::from_str(
        r#"
        [[reply]]
        text = "A gimlet is a drink."
        [[reply]]
        expect = ["look it up"]
        calls = [{ name = "look_up", args = { word = "password" } }]
        [[reply]]
        expect = ["HOOK_REFUSED"]
        calls = [{ name = "look_up", args = { word = "gimlet" } }]
        [[reply]]
        text = "A gimlet is a small hand tool."
        "#,
    )?;
    let model = Arc::new(ScriptedModel::new("scripted", script));
    let agent = Agent::builder(model).tool(LookUp).hook(NoSecrets).check(MustLook).build()?;
    match agent.run("What is a gimlet?").await? {
        Ending::Finished(finished) => println!("{} ({} steps)", finished.answer, finished.steps),
        other => anyhow::bail!("it did not finish: {other:?}"),
    }
    Ok(())
}
