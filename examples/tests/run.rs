//! Every example runs to its end, and the custom tool stays as short as promised.

#[path = "../custom_model.rs"]
mod custom_model;
#[path = "../custom_tool.rs"]
mod custom_tool;
#[path = "../hook.rs"]
mod hook;

#[test]
fn custom_tool_runs() {
    custom_tool::main().unwrap();
}

#[test]
fn hook_runs() {
    hook::main().unwrap();
}

#[test]
fn custom_model_runs() {
    custom_model::main().unwrap();
}

#[test]
fn a_tool_takes_at_most_25_lines() {
    let source = include_str!("../custom_tool.rs");
    let from = source.find("/// Count the words").unwrap();
    let to = source.find("#[tokio::main").unwrap();
    let lines = source[from..to].lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 25, "{lines} lines");
}
