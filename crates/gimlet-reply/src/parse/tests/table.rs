//! One reply per line of the table: what models write, and what it comes to.

use serde_json::{Value, json};

use crate::parse::{Intent, parse, right_shape};
use gimlet_event::event::ActionFormat::{self, Code, Tools};

const KNOWN: [&str; 4] = ["read_file", "list_files", "repo_info", "write_file"];

/// What a reply should come to.
enum Want {
    Calls(Vec<(&'static str, Value)>),
    Code(&'static str),
    Answer(&'static str),
    Empty,
    /// Malformed, for a reason with these words in it.
    Malformed(&'static str),
}

fn read_a() -> Want {
    call("read_file", json!({"path": "a"}))
}

fn call(name: &'static str, args: Value) -> Want {
    Want::Calls(vec![(name, args)])
}

fn read_a_then_list() -> Want {
    Want::Calls(vec![("read_file", json!({"path": "a"})), ("list_files", json!({}))])
}

fn check(table: Vec<(&str, ActionFormat, &str, Want)>) {
    let mut wrong = Vec::new();
    for (name, format, reply, want) in table {
        let intent = parse(reply, format, &KNOWN).intent;
        let right = match (&intent, &want) {
            (Intent::Calls(got), Want::Calls(want)) => {
                got.len() == want.len()
                    && got.iter().zip(want).all(|(got, (name, args))| got.name == *name && got.args == *args)
            }
            (Intent::Code(got), Want::Code(want)) => got == want,
            (Intent::Answer(got), Want::Answer(want)) => got == want,
            (Intent::Empty, Want::Empty) => true,
            (Intent::Malformed(got), Want::Malformed(want)) => got.contains(want),
            _ => false,
        };
        if !right {
            wrong.push(format!("{name}: {reply:?}\n    came to {intent:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
#[rustfmt::skip] // One line per reply.
fn json_calls() {
    check(vec![
        ("bare", Tools, r#"{"name": "read_file", "arguments": {"path": "a"}}"#, read_a()),
        ("bare, in code", Code, r#"{"name": "read_file", "arguments": {"path": "a"}}"#, read_a()),
        ("space around", Tools, "\n\n  {\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}} \n", read_a()),
        ("pretty-printed", Tools, "{\n  \"name\": \"read_file\",\n  \"arguments\": {\n    \"path\": \"a\"\n  }\n}", read_a()),
        ("fenced json", Tools, "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```", read_a()),
        ("fenced plain", Tools, "```\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```", read_a()),
        ("fenced tool_call", Tools, "```tool_call\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```", read_a()),
        ("fenced python", Tools, "```python\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```", read_a()),
        ("fenced python, in code", Code, "```python\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```", read_a()),
        ("fenced json, in code", Code, "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```", read_a()),
        ("fence on one line", Tools, "```json {\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}} ```", read_a()),
        ("fence glued", Tools, "```{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```", read_a()),
        ("fence unclosed", Tools, "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}", read_a()),
        ("tildes", Tools, "~~~json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n~~~", read_a()),
        ("prose before", Tools, "I'll read it.\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}", read_a()),
        ("prose after", Tools, "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\nThen I'll see.", read_a()),
        ("prose around a fence", Tools, "First:\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```\nOK?", read_a()),
        ("braces in prose before", Tools, "In {curly} {braces: {\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}", read_a()),
        ("inside backticks", Tools, "Run `{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}`", read_a()),
        ("imitates the history", Tools, "Calling tools:\n[{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}}]", read_a()),
        ("react", Tools, "Thought: look\nAction:\n{\"action\": \"read_file\", \"action_input\": {\"path\": \"a\"}}", read_a()),
        ("a brace too many", Tools, r#"{"name": "read_file", "arguments": {"path": "a"}}}"#, read_a()),
        ("fence inside a string", Tools, r#"{"name": "write_file", "arguments": {"text": "```python\nx\n```"}}"#, call("write_file", json!({"text": "```python\nx\n```"}))),
        ("fence inside a string, in code", Code, "{\"name\": \"write_file\", \"arguments\": {\"text\": \"```python\\nx = 1\\n```\"}}", call("write_file", json!({"text": "```python\nx = 1\n```"}))),
        ("fence inside a fenced string", Tools, "```json\n{\"name\": \"write_file\", \"arguments\": {\"text\": \"\n```\nx\n```\n\"}}\n```", call("write_file", json!({"text": "\n```\nx\n```\n"}))),
        ("unicode", Tools, r#"Ça va 🦀 {"name": "read_file", "arguments": {"path": "é/🦀"}} 🦀"#, call("read_file", json!({"path": "é/🦀"}))),
    ]);
}

#[test]
#[rustfmt::skip] // One line per reply.
fn shapes_of_a_call() {
    check(vec![
        ("parameters", Tools, r#"{"name": "read_file", "parameters": {"path": "a"}}"#, read_a()),
        ("args", Tools, r#"{"name": "read_file", "args": {"path": "a"}}"#, read_a()),
        ("input", Tools, r#"{"name": "read_file", "input": {"path": "a"}}"#, read_a()),
        ("tool and tool_input", Tools, r#"{"tool": "read_file", "tool_input": {"path": "a"}}"#, read_a()),
        ("action and action_input", Tools, r#"{"action": "read_file", "action_input": {"path": "a"}}"#, read_a()),
        ("tool_call", Tools, r#"{"tool_call": {"name": "read_file", "arguments": {"path": "a"}}}"#, read_a()),
        ("tool_calls", Tools, r#"{"tool_calls": [{"name": "read_file", "arguments": {"path": "a"}}, {"name": "list_files", "arguments": {}}]}"#, read_a_then_list()),
        ("tool_calls with a thought", Tools, r#"{"thought": "hm", "tool_calls": [{"name": "read_file", "arguments": {"path": "a"}}]}"#, read_a()),
        ("function", Tools, r#"{"function": {"name": "read_file", "arguments": {"path": "a"}}}"#, read_a()),
        ("the provider's own shape", Tools, r#"{"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\": \"a\"}"}}]}"#, read_a()),
        ("function as a name", Tools, r#"{"type": "function", "function": "read_file", "arguments": {"path": "a"}}"#, read_a()),
        ("function_call", Tools, r#"{"function_call": {"name": "read_file", "arguments": "{\"path\": \"a\"}"}}"#, read_a()),
        ("action as an object", Tools, r#"{"thought": "x", "action": {"name": "read_file", "arguments": {"path": "a"}}}"#, read_a()),
        ("arguments as a string", Tools, r#"{"name": "read_file", "arguments": "{\"path\": \"a\"}"}"#, read_a()),
        ("arguments as a string twice over", Tools, r#"{"name": "read_file", "arguments": "\"{\\\"path\\\": \\\"a\\\"}\""}"#, read_a()),
        ("arguments as an empty string", Tools, r#"{"name": "repo_info", "arguments": ""}"#, call("repo_info", json!({}))),
        ("arguments null", Tools, r#"{"name": "repo_info", "arguments": null}"#, call("repo_info", json!({}))),
        ("arguments that are text", Tools, r#"{"name": "read_file", "arguments": "a"}"#, call("read_file", json!("a"))),
        ("no arguments", Tools, r#"{"name": "repo_info"}"#, call("repo_info", json!({}))),
        ("arguments beside the name", Tools, r#"{"tool": "read_file", "path": "a"}"#, read_a()),
        ("name as the key", Tools, r#"{"read_file": {"path": "a"}}"#, read_a()),
        ("array", Tools, r#"[{"name": "read_file", "arguments": {"path": "a"}}, {"name": "list_files", "arguments": {}}]"#, read_a_then_list()),
        ("several in sequence", Tools, "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n{\"name\": \"list_files\", \"arguments\": {}}", read_a_then_list()),
        ("several with commas", Tools, "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}},\n{\"name\": \"list_files\", \"arguments\": {}}", read_a_then_list()),
        ("several in one fence", Tools, "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n{\"name\": \"list_files\", \"arguments\": {}}\n```", read_a_then_list()),
        ("several fences", Tools, "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```\nand\n```json\n{\"name\": \"list_files\", \"arguments\": {}}\n```", read_a_then_list()),
        ("unknown tool alone", Tools, r#"{"name": "fly", "arguments": {"to": "moon"}}"#, call("fly", json!({"to": "moon"}))),
        ("unknown tool alone in a fence", Tools, "```json\n{\"name\": \"fly\", \"arguments\": {}}\n```", call("fly", json!({}))),
        ("unknown beside known in an array", Tools, r#"Now [{"name": "read_file", "arguments": {"path": "a"}}, {"name": "fly", "arguments": {}}]"#, Want::Calls(vec![("read_file", json!({"path": "a"})), ("fly", json!({}))])),
    ]);
}

#[test]
#[rustfmt::skip] // One line per reply.
fn marked_calls() {
    check(vec![
        ("tool_call", Tools, "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>", read_a()),
        ("several", Tools, "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>\n<tool_call>{\"name\": \"list_files\", \"arguments\": {}}</tool_call>", read_a_then_list()),
        ("unclosed", Tools, "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}", read_a()),
        ("several unclosed", Tools, "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n<tool_call>{\"name\": \"list_files\", \"arguments\": {}}", read_a_then_list()),
        ("closing tag cut", Tools, "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_ca", read_a()),
        ("several in one", Tools, "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n{\"name\": \"list_files\", \"arguments\": {}}</tool_call>", read_a_then_list()),
        ("fence inside", Tools, "<tool_call>\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```\n</tool_call>", read_a()),
        ("inside a fence", Tools, "```xml\n<tool_call>{\"name\": \"fly\", \"arguments\": {}}</tool_call>\n```", Want::Answer("```xml\n<tool_call>{\"name\": \"fly\", \"arguments\": {}}</tool_call>\n```")),
        ("prose around", Tools, "Reading.\n<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>\nWait.", read_a()),
        ("unknown tool in prose", Tools, "Now <tool_call>{\"name\": \"fly\", \"arguments\": {}}</tool_call> off.", call("fly", json!({}))),
        ("closing tag in a string", Tools, r#"<tool_call>{"name": "write_file", "arguments": {"text": "</tool_call>"}}</tool_call>"#, call("write_file", json!({"text": "</tool_call>"}))),
        ("a brace missing", Tools, "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}</tool_call>", read_a()),
        ("a brace missing in the first of two", Tools, "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}</tool_call>\n<tool_call>{\"name\": \"list_files\", \"arguments\": {}}</tool_call>", read_a_then_list()),
        ("in code", Code, "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>", read_a()),
        ("function_call", Tools, "<function_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</function_call>", read_a()),
        ("TOOL_CALLS", Tools, "[TOOL_CALLS][{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}]", read_a()),
        ("bars", Tools, "<|tool_call|>[{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}]<|/tool_call|>", read_a()),
        ("function tags", Tools, "<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>", read_a()),
        ("function tags alone", Tools, "Ok.\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>", read_a()),
        ("function tag with JSON", Tools, "<function=read_file>{\"path\": \"a\"}</function>", read_a()),
        ("text", Tools, "<tool_call>read the file</tool_call>", Want::Malformed("not a JSON object")),
        ("empty", Tools, "<tool_call></tool_call>", Want::Malformed("empty")),
        ("no name", Tools, "<tool_call>{\"path\": \"a\"}</tool_call>", Want::Malformed("no \"name\"")),
        ("mention", Tools, "Write `<tool_call>` first.", Want::Answer("Write `<tool_call>` first.")),
    ]);
}

#[test]
#[rustfmt::skip] // One line per reply.
fn repairs() {
    check(vec![
        ("trailing commas", Tools, r#"{"name": "read_file", "arguments": {"path": "a",},}"#, read_a()),
        ("single quotes", Tools, r#"{'name': 'read_file', 'arguments': {'path': 'a'}}"#, read_a()),
        ("single quotes around double", Tools, r#"{'name': 'write_file', 'arguments': {'text': 'say "hi" {'}}"#, call("write_file", json!({"text": "say \"hi\" {"}))),
        ("apostrophe in double quotes", Tools, r#"{'name': 'write_file', 'arguments': {'text': "it's"}}"#, call("write_file", json!({"text": "it's"}))),
        ("python literals", Tools, r#"{"name": "list_files", "arguments": {"deep": True, "all": False, "glob": None}}"#, call("list_files", json!({"deep": true, "all": false, "glob": null}))),
        ("raw newlines", Tools, "{\"name\": \"write_file\", \"arguments\": {\"text\": \"a\n\tb\"}}", call("write_file", json!({"text": "a\n\tb"}))),
        ("long string", Tools, "{\"name\": \"write_file\", \"arguments\": {\"text\": \"\"\"a \"b\"\nc\"\"\"}}", call("write_file", json!({"text": "a \"b\"\nc"}))),
        ("lone backslash", Tools, r#"{"name": "list_files", "arguments": {"glob": "\d+"}}"#, call("list_files", json!({"glob": "\\d+"}))),
        ("missing brace", Tools, r#"{"name": "read_file", "arguments": {"path": "a"}"#, read_a()),
        ("missing braces in a fence", Tools, "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"\n```", read_a()),
        ("missing brace after prose", Tools, "Ok: {\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}", read_a()),
        ("repaired arguments string", Tools, r#"{"name": "read_file", "arguments": "{'path': 'a'}"}"#, read_a()),
        ("cut inside a string", Tools, r#"{"name": "write_file", "arguments": {"text": "half a fi"#, Want::Malformed("ends inside a string")),
        ("cut inside a marked string", Tools, r#"<tool_call>{"name": "write_file", "arguments": {"text": "half a fi"#, Want::Malformed("ends inside a string")),
        ("inner quotes", Tools, r#"{"name": "write_file", "arguments": {"text": "print("hi")"}}"#, Want::Malformed("line 1 column")),
        ("missing colon in a fence", Tools, "```json\n{\"name\": \"read_file\", \"arguments\" {\"path\": \"a\"}}\n```", Want::Malformed("expected `:`")),
        ("brackets crossed", Tools, r#"{"name": "read_file", "arguments": {"path": ["a"}}}"#, Want::Malformed("not valid JSON")),
        ("one broken call of two", Tools, "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call><tool_call>{\"name\": \"list_files\" oops}</tool_call>", Want::Malformed("nothing was run")),
        ("broken data", Tools, r#"{"colour": blue}"#, Want::Answer(r#"{"colour": blue}"#)),
    ]);
}

#[test]
#[rustfmt::skip] // One line per reply.
fn answers() {
    check(vec![
        ("prose", Tools, "The answer is 42.", Want::Answer("The answer is 42.")),
        ("prose, in code", Code, "The answer is 42.", Want::Answer("The answer is 42.")),
        ("one word", Code, "Paris", Want::Answer("Paris")),
        ("a number", Code, "42", Want::Answer("42")),
        ("a formula", Code, "x = 4", Want::Answer("x = 4")),
        ("a label", Code, "Answer: 42", Want::Answer("Answer: 42")),
        ("a list", Code, "- one\n- two", Want::Answer("- one\n- two")),
        ("final_answer", Tools, r#"{"name": "final_answer", "arguments": {"answer": "42"}}"#, Want::Answer("42")),
        ("final_answer with any argument", Tools, r#"{"name": "final_answer", "arguments": {"value": 42}}"#, Want::Answer("42")),
        ("final_answer with text", Tools, r#"{"name": "final_answer", "arguments": "done"}"#, Want::Answer("done")),
        ("final_answer with a structure", Tools, r#"{"name": "final_answer", "arguments": {"answer": {"a": [1, 2]}}}"#, Want::Answer(r#"{"a":[1,2]}"#)),
        ("final_answer, marked", Tools, "<tool_call>{\"name\": \"final_answer\", \"arguments\": {\"answer\": \"42\"}}</tool_call>", Want::Answer("42")),
        ("final_answer, in code", Code, r#"{"name": "final_answer", "arguments": {"answer": "42"}}"#, Want::Answer("42")),
        ("final_answer as a key", Tools, r#"{"final_answer": "42"}"#, Want::Answer("42")),
        ("final_answer after prose", Tools, "Done.\n{\"final_answer\": \"42\"}", Want::Answer("42")),
        ("final_answer after a call", Tools, "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n{\"final_answer\": \"made up\"}", read_a()),
        ("final_answer without an answer", Tools, r#"{"name": "final_answer", "arguments": {}}"#, Want::Malformed("no answer")),
        ("fenced code is part of an answer", Tools, "Write:\n```python\nread_file(path=\"a\")\n```", Want::Answer("Write:\n```python\nread_file(path=\"a\")\n```")),
        ("a bare program is an answer to tools", Tools, "print(1)", Want::Answer("print(1)")),
        ("a call in a program is code", Tools, "```python\nx = {\"name\": \"read_file\", \"arguments\": {}}\n```", Want::Answer("```python\nx = {\"name\": \"read_file\", \"arguments\": {}}\n```")),
        ("JSON data", Tools, r#"{"name": "Ada", "born": 1815}"#, Want::Answer(r#"{"name": "Ada", "born": 1815}"#)),
        ("JSON data in a fence", Tools, "Config:\n```json\n{\"port\": 80}\n```", Want::Answer("Config:\n```json\n{\"port\": 80}\n```")),
        ("unknown call in prose", Tools, "Such as {\"name\": \"fly\", \"arguments\": {}}.", Want::Answer("Such as {\"name\": \"fly\", \"arguments\": {}}.")),
        ("known name as data", Tools, "Set {\"read_file\": {\"enabled\": true}} there.", Want::Answer("Set {\"read_file\": {\"enabled\": true}} there.")),
        ("braces in prose", Tools, "Use {x} and { y }.", Want::Answer("Use {x} and { y }.")),
        ("code tags are HTML to tools", Tools, "Wrap it in <code> and go on.", Want::Answer("Wrap it in <code> and go on.")),
        ("inline code tag", Code, "Use <code>ls</code> to list.", Want::Answer("Use <code>ls</code> to list.")),
        ("other language, in code", Code, "Run:\n```bash\nls -l\n```", Want::Answer("Run:\n```bash\nls -l\n```")),
        ("output in a plain fence", Code, "It printed:\n```\n42 apples\n```", Want::Answer("It printed:\n```\n42 apples\n```")),
        ("observation without an action", Tools, "My notes.\nObservation: the sky is blue.", Want::Answer("My notes.\nObservation: the sky is blue.")),
        ("empty", Tools, "", Want::Empty),
        ("space", Code, " \n\t ", Want::Empty),
    ]);
}

#[test]
#[rustfmt::skip] // One line per reply.
fn programs() {
    check(vec![
        ("python", Code, "```python\nx = 1\nprint(x)\n```", Want::Code("x = 1\nprint(x)")),
        ("py", Code, "```py\nx = 1\n```", Want::Code("x = 1")),
        ("Python", Code, "```Python\nx = 1\n```", Want::Code("x = 1")),
        ("python after a space", Code, "``` python\nx = 1\n```", Want::Code("x = 1")),
        ("tool_code", Code, "```tool_code\nprint(1)\n```", Want::Code("print(1)")),
        ("no language", Code, "```\nfinal_answer(1)\n```", Want::Code("final_answer(1)")),
        ("tildes", Code, "~~~python\nx = 1\n~~~", Want::Code("x = 1")),
        ("longer fence", Code, "````python\ns = 1\n````", Want::Code("s = 1")),
        ("code tag", Code, "<code>\nx = 1\n</code>", Want::Code("x = 1")),
        ("Code tag", Code, "<Code>\nx = 1\n</Code>", Want::Code("x = 1")),
        ("code tag on one line", Code, "Thought: done. <code>final_answer(1)</code>", Want::Code("final_answer(1)")),
        ("fence on one line", Code, "```python final_answer(1)```", Want::Code("final_answer(1)")),
        ("code on the first line", Code, "```python import math\nprint(math.pi)\n```", Want::Code("import math\nprint(math.pi)")),
        ("attributes", Code, "```python title=\"a.py\"\nx = 1\n```", Want::Code("x = 1")),
        ("closed without a line break", Code, "```python\nprint(1)```", Want::Code("print(1)")),
        ("opened in a line", Code, "Here: ```python\nprint(1)\n```", Want::Code("print(1)")),
        ("windows line ends", Code, "```python\r\nprint(1)\r\n```\r\n", Want::Code("print(1)")),
        ("indented fence", Code, "1. First:\n   ```python\n   if x:\n       print(1)\n   ```", Want::Code("if x:\n    print(1)")),
        ("unclosed fence", Code, "Ok\n```python\nprint(1)", Want::Code("print(1)")),
        ("unclosed tag", Code, "<code>\nprint(1)", Want::Code("print(1)")),
        ("closing tag cut", Code, "<code>\nprint(1)\n</code", Want::Code("print(1)")),
        ("fence in a tag", Code, "<code>\n```python\nprint(1)\n```\n</code>", Want::Code("print(1)")),
        ("fence in an unclosed tag", Code, "<code>\n```python\nprint(1)\n```", Want::Code("print(1)")),
        ("tag in a fence", Code, "```python\n<code>\nprint(1)\n</code>\n```", Want::Code("print(1)")),
        ("several", Code, "First\n```python\nx = 1\n```\nthen\n```python\nprint(x)\n```", Want::Code("x = 1\n\nprint(x)")),
        ("unclosed before another", Code, "```python\nx = 1\n```python\nprint(x)\n```", Want::Code("x = 1\n\nprint(x)")),
        ("several tags", Code, "<code>x = 1</code>\n<code>print(x)</code>", Want::Code("x = 1\n\nprint(x)")),
        ("beside another language", Code, "```bash\nls\n```\n```python\nprint(1)\n```", Want::Code("print(1)")),
        ("code wins over a call", Code, "{\"name\": \"read_file\", \"arguments\": {}}\n```python\nprint(1)\n```", Want::Code("print(1)")),
        ("closing tag in a string", Code, "<code>\nprint(\"</code>\")\nprint('ok')\n</code>", Want::Code("print(\"</code>\")\nprint('ok')")),
        ("closing tag in a long string", Code, "<code>\ns = '''it's\n</code>\n'''\nprint(s)\n</code>", Want::Code("s = '''it's\n</code>\n'''\nprint(s)")),
        ("fence in a string", Code, "```python\ns = \"\"\"\n```\ntext\n```\n\"\"\"\nprint(s)\n```", Want::Code("s = \"\"\"\n```\ntext\n```\n\"\"\"\nprint(s)")),
        ("fence in an f-string", Code, "```python\nprint(f\"```{x}```\")\n```\nDone.", Want::Code("print(f\"```{x}```\")")),
        ("raw string with a quote", Code, "```python\ns = r\"\\\"```\"\n```", Want::Code("s = r\"\\\"```\"")),
        ("apostrophe in a comment", Code, "```python\n# don't stop\nx = 'a'\n```\nIt's done.", Want::Code("# don't stop\nx = 'a'")),
        ("unclosed string", Code, "```python\nprint(\"oops)\n```\nDone.", Want::Code("print(\"oops)")),
        ("unclosed long string", Code, "```python\ns = \"\"\"oops\n```\nDone.", Want::Code("s = \"\"\"oops")),
        ("syntax error without a language", Code, "```\nx = f(1\n```", Want::Code("x = f(1")),
        ("a list comes first", Code, "```python\n[print(x) for x in range(3)]\n```", Want::Code("[print(x) for x in range(3)]")),
        ("structured output", Code, r#"{"thought": "easy", "code": "x = 1\nfinal_answer(x)"}"#, Want::Code("x = 1\nfinal_answer(x)")),
        ("a field named code", Code, r#"It said {"code": "404"}."#, Want::Answer(r#"It said {"code": "404"}."#)),
        ("bare final_answer", Code, "final_answer(1)", Want::Code("final_answer(1)")),
        ("bare tool", Code, "read_file(path=\"a\")", Want::Code("read_file(path=\"a\")")),
        ("bare assignments", Code, "x = 6 * 7\ny = x + 1", Want::Code("x = 6 * 7\ny = x + 1")),
        ("bare program", Code, "import math\n\n# it's a comment\ndef f(x):\n    \"\"\"Doc string, with words.\"\"\"\n    return x if x > 0 else -x\n\nfor i in range(3):\n    print(f\"{i} times\", math.pi * 1e-3)\nfinal_answer({'a': [1, 2], \"b\": not True})", Want::Code("import math\n\n# it's a comment\ndef f(x):\n    \"\"\"Doc string, with words.\"\"\"\n    return x if x > 0 else -x\n\nfor i in range(3):\n    print(f\"{i} times\", math.pi * 1e-3)\nfinal_answer({'a': [1, 2], \"b\": not True})")),
        ("bare program with a fence in a string", Code, "final_answer(\"\"\"```python\nx\n```\"\"\")", Want::Code("final_answer(\"\"\"```python\nx\n```\"\"\")")),
        ("bare program with a call as data", Code, "x = {\"name\": \"read_file\", \"arguments\": {}}\nprint(x)", Want::Code("x = {\"name\": \"read_file\", \"arguments\": {}}\nprint(x)")),
        ("a call after prose", Code, "I am done.\nfinal_answer(1)", Want::Malformed("final_answer stands outside a code block")),
        ("empty fence", Code, "```python\n```", Want::Answer("```python\n```")),
    ]);
}

#[test]
#[rustfmt::skip] // One line per reply.
fn thinking_and_observations() {
    check(vec![
        ("think", Tools, "<think>hm</think>The answer.", Want::Answer("The answer.")),
        ("think with a call", Tools, "<think>{\"name\": \"list_files\", \"arguments\": {}}</think>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}", read_a()),
        ("think with code", Code, "<think>\n```python\nbad()\n```\n</think>\n```python\ngood()\n```", Want::Code("good()")),
        ("think with an open fence", Code, "<think>use ``` or <code> </think>\n```python\ngood()\n```", Want::Code("good()")),
        ("thinking", Code, "<thinking>bad()</thinking>\n```python\ngood()\n```", Want::Code("good()")),
        ("reasoning", Code, "<Reasoning>bad()</Reasoning>\n```python\ngood()\n```", Want::Code("good()")),
        ("brackets", Code, "[THINK]bad()[/THINK]\n```python\ngood()\n```", Want::Code("good()")),
        ("unclosed", Code, "<think>\n```python\nbad()\n```", Want::Empty),
        ("unclosed after an action", Code, "```python\ngood()\n```\n<think>\n```python\nbad()\n```", Want::Code("good()")),
        ("no opening tag", Code, "I could run\n```python\nbad()\n```\n</think>\n```python\ngood()\n```", Want::Code("good()")),
        ("no opening tag, open fence", Code, "```python\nbad('\n</think>\n```python\ngood()\n```", Want::Code("good()")),
        ("only thinking", Tools, "<think>hm</think>", Want::Empty),
        ("empty think", Tools, "<think>\n\n</think>\n\nHi.", Want::Answer("Hi.")),
        ("several", Tools, "<think>a</think>One. <think>b</think>Two.", Want::Answer("One. Two.")),
        ("nested", Code, "<think>a <think>b</think> ```python\nbad()\n``` </think>\n```python\ngood()\n```", Want::Code("good()")),
        ("names mixed", Tools, "<think>hm</thinking>Hi.", Want::Answer("Hi.")),
        ("inside a program", Code, "```python\n<think>don't</think>\ngood()\n```", Want::Code("good()")),
        ("behind the language", Code, "```python <think>bad()</think>\ngood()\n```", Want::Code("good()")),
        ("in a program's string", Code, "```python\nprint(\"a <think> b\")\n```", Want::Code("print(\"a <think> b\")")),
        ("in a bare program's string", Code, "final_answer('see </think> there')", Want::Code("final_answer('see </think> there')")),
        ("in a call's string", Tools, r#"{"name": "write_file", "arguments": {"text": "a <think> b </think>"}}"#, call("write_file", json!({"text": "a <think> b </think>"}))),
        ("in a marked call's string", Tools, r#"<tool_call>{"name": "write_file", "arguments": {"text": "a </think>"}}</tool_call>"#, call("write_file", json!({"text": "a </think>"}))),
        ("mention", Tools, "The tag `<think>` opens it, `</think>` closes it.", Want::Answer("The tag `<think>` opens it, `</think>` closes it.")),
        ("in a text fence", Tools, "Template:\n```text\n<think>{{x}}</think>\n```", Want::Answer("Template:\n```text\n<think>{{x}}</think>\n```")),
        ("observation after a call", Tools, "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\nObservation: hi\n{\"name\": \"list_files\", \"arguments\": {}}", read_a()),
        ("observation after code", Code, "```python\nx = 1\n```\nObservation: 1\n```python\nprint(2)\n```", Want::Code("x = 1")),
        ("bold observation", Code, "```python\nx = 1\n```\n**Observation 1:** 1\n```python\nprint(2)\n```", Want::Code("x = 1")),
        ("tool response", Tools, "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>\n<tool_response>\nhi\n</tool_response>\n<tool_call>{\"name\": \"list_files\", \"arguments\": {}}</tool_call>", read_a()),
        ("observation in an unclosed fence", Code, "```python\nx = 1\nObservation: 1\n```python\nprint(2)\n```", Want::Code("x = 1")),
        ("observation in a second unclosed fence", Code, "```python\nx = 1\n```\nThen\n```python\ny = 2\nObservation: 1\n```python\nprint(2)\n```", Want::Code("x = 1\n\ny = 2")),
        ("observation in an unclosed tag", Code, "<code>\nx = 1\nObservation: 1\nDone", Want::Code("x = 1")),
        ("observation after bare code", Code, "x = read_file('a')\nprint(x)\nObservation: it is a file\nfinal_answer(2)", Want::Code("x = read_file('a')\nprint(x)")),
        ("observation in a string", Code, "```python\ns = '''\nObservation: 1\n'''\nprint(s)\n```", Want::Code("s = '''\nObservation: 1\n'''\nprint(s)")),
        ("observation in an unclosed string", Code, "```python\ns = '''\nObservation: 1\n'''\nprint(s)", Want::Code("s = '''\nObservation: 1\n'''\nprint(s)")),
        ("observation after an open call", Tools, "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}\nObservation: hi", read_a()),
        ("observation after an unknown call", Tools, "{\"name\": \"fly\", \"arguments\": {}}\nObservation: you fly", call("fly", json!({}))),
    ]);
}

#[test]
fn what_is_said_beside_an_action() {
    let reply = "<think>hm</think>\nI read it.\n<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>\nObservation: hi";
    let parsed = parse(reply, Tools, &KNOWN);
    assert_eq!(parsed.thinking.as_deref(), Some("hm"));
    assert_eq!(parsed.prose, "I read it.");
    assert_eq!(
        parsed.content,
        "I read it.\n<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>"
    );

    let parsed = parse("First.\n```python\nx = 1\n```\nThen.", Code, &KNOWN);
    assert_eq!(parsed.prose, "First.\n\nThen.");
}

#[test]
fn the_right_shapes_are_right() {
    assert!(
        matches!(parse(right_shape(Tools), Tools, &KNOWN).intent, Intent::Calls(calls) if calls.len() == 1)
    );
    assert_eq!(
        parse(right_shape(Code), Code, &KNOWN).intent,
        Intent::Code("result = 6 * 7\nfinal_answer(result)".into())
    );
}
