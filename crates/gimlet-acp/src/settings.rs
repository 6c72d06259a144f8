//! What a person may set in a session: the approval mode, the model, and how the agent acts.

use std::collections::BTreeSet;
use std::sync::Arc;

use gimlet_runtime::Session;
use gimlet_runtime::options::{Action, ApproveMode, Choice};
use serde_json::{Value, json};

use crate::chat::Chat;
use crate::params::named;
use crate::wire::RpcError;

/// The approval modes as an editor names them.
const MODES: [(ApproveMode, &str, &str); 6] = [
    (ApproveMode::Ask, "Ask", "Ask before files change and before commands that need it"),
    (ApproveMode::Edits, "Accept edits", "Apply edits to the project's files; ask about commands"),
    (ApproveMode::Plan, "Plan", "Read only: nothing may be changed or run"),
    (ApproveMode::Auto, "Auto", "Also run commands that only change the project inside the jail"),
    (ApproveMode::Never, "Never", "Refuse whatever would have to be asked"),
    (ApproveMode::All, "All", "Agree to whatever may be agreed to; what is forbidden stays forbidden"),
];

/// The modes of a session.
pub(crate) fn modes(session: &Session) -> Value {
    let mode = |(mode, name, about): &(ApproveMode, &str, &str)| json!({ "id": mode.name(), "name": name, "description": about });
    json!({
        "currentModeId": session.approve().name(),
        "availableModes": MODES.iter().map(mode).collect::<Vec<_>>(),
    })
}

/// The options of a session.
pub(crate) fn options(session: &Session) -> Value {
    let approve = |(mode, name, about): &(ApproveMode, &str, &str)| json!({ "value": mode.name(), "name": name, "description": about });
    let action = |(_, name, about): &(Action, &str, &str)| json!({ "value": name, "name": name, "description": about });
    let current = session.model_name();
    let known = session
        .settings()
        .named_models()
        .map(|models| models.names().into_iter().map(str::to_owned).collect::<BTreeSet<_>>());
    let mut models = known.unwrap_or_default();
    models.insert(current.clone());
    let model = |name: &String| json!({ "value": name, "name": name });
    json!([
        select("approve", "Approvals", "mode", session.approve().name(), MODES.iter().map(approve)),
        select("model", "Model", "model", &current, models.iter().map(model)),
        select(
            "action",
            "Action",
            "_action",
            Action::from(session.action()).name(),
            Action::ALL.iter().map(action)
        ),
    ])
}

fn select(
    id: &str,
    name: &str,
    category: &str,
    current: &str,
    options: impl Iterator<Item = Value>,
) -> Value {
    let mut option = json!({
        "id": id,
        "name": name,
        "type": "select",
        "currentValue": current,
        "options": options.collect::<Vec<_>>(),
    });
    // The protocol knows categories of its own only.
    if !category.starts_with('_') {
        option["category"] = json!(category);
    }
    option
}

/// Sets the mode, and tells the client of it.
pub(crate) fn set_mode(chat: &Chat, mode: &str) -> Result<(), RpcError> {
    let mode = named::<ApproveMode>("mode", Some(mode))?.unwrap_or_default();
    chat.session().set_approve(mode);
    chat.view.update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode.name() }));
    Ok(())
}

/// Sets an option.
pub(crate) async fn set(chat: &Arc<Chat>, id: &str, value: &Value) -> Result<(), RpcError> {
    let Some(value) = value.as_str() else { return Err(RpcError::params("the value must be a text")) };
    match id {
        "approve" => set_mode(chat, value),
        "model" => Ok(chat.session().change_model(value).await?),
        "action" => {
            let action = named::<Action>("action", Some(value))?;
            if action == Some(chat.session().action().into()) {
                return Ok(());
            }
            chat.begin_again(|options| options.action = action).await
        }
        _ => Err(RpcError::params(format!("there is no option `{id}`"))),
    }
}
