//! What holds for every reply.

use gimlet::event::ActionFormat::{self, Code, Tools};
use gimlet::parse::{Intent, ParsedCall, parse};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const KNOWN: [&str; 3] = ["read_file", "list_files", "write_file"];
/// Stands only in thinking.
const SECRET: &str = "zqxsecret";

fn format() -> impl Strategy<Value = ActionFormat> {
    prop_oneof![Just(Tools), Just(Code)]
}

/// Pieces that mean something to the parser, glued in any order: random text alone would never reach its corners.
fn fragments() -> impl Strategy<Value = String> {
    let marks = prop::sample::select(vec![
        "```",
        "```python\n",
        "```json\n",
        "~~~",
        "````",
        "`",
        "<code>",
        "</code>",
        "</cod",
        "<tool_call>",
        "</tool_call>",
        "[TOOL_CALLS]",
        "<function=read_file>",
        "<parameter=path>",
        "</parameter>",
        "</function>",
        "<think>",
        "</think>",
        "[THINK]",
        "<thinking>",
        "</reasoning>",
        "{",
        "}",
        "[",
        "]",
        "{\"",
        "{\"name\": \"read_file\"",
        "\"arguments\": {",
        "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}",
        "{\"final_answer\": 1}",
        "'",
        "\"",
        "'''",
        "\"\"\"",
        "\\",
        "\n",
        " ",
        ",",
        ":",
        "=",
        "#",
        ".",
        "x = 1\n",
        "print(1)\n",
        "final_answer(2)",
        "\nObservation: 3\n",
        "Words here. ",
        "é",
        "🦀",
        "\u{2028}",
        "\r\n",
        "\0",
        "1e",
        "True",
        "r'",
        "f\"{x}\"",
    ]);
    prop::collection::vec(prop_oneof![4 => marks.prop_map(str::to_owned), 1 => ".{0,6}"], 0..40)
        .prop_map(|pieces| pieces.concat())
}

/// A reply's visible parts, whatever they come to.
fn visible(reply: &str, format: ActionFormat) -> String {
    let parsed = parse(reply, format, &KNOWN);
    format!("{:?} {} {}", parsed.intent, parsed.content, parsed.prose)
}

fn argument() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~\n\té🦀]{0,12}".prop_map(Value::from),
        prop::collection::vec("[a-z'\"{}<>`]{0,4}", 0..3).prop_map(|items| json!(items)),
        fragments().prop_map(Value::from),
    ]
}

fn call() -> impl Strategy<Value = ParsedCall> {
    let args = prop::collection::btree_map("[a-z_]{1,8}", argument(), 0..4);
    (prop::sample::select(KNOWN.to_vec()), args).prop_map(|(name, args)| ParsedCall {
        name: name.to_owned(),
        args: Value::Object(args.into_iter().collect::<Map<_, _>>()),
    })
}

/// A call in every dialect that loses nothing.
fn dialects(call: &ParsedCall) -> Vec<String> {
    let (name, args) = (&call.name, &call.args);
    let shapes = [
        json!({"name": name, "arguments": args}),
        json!({"name": name, "parameters": args}),
        json!({"tool": name, "args": args}),
        json!({"action": name, "action_input": args}),
        json!({"function": {"name": name, "arguments": args.to_string()}}),
        json!({"tool_call": {"name": name, "input": args}}),
        json!({"tool_calls": [{"id": "c", "type": "function", "function": {"name": name, "arguments": args}}]}),
        json!([{"name": name, "arguments": args.to_string()}]),
    ];
    let texts = shapes.iter().flat_map(|shape| [shape.to_string(), format!("{shape:#}")]);
    texts
        .flat_map(|text| {
            [
                format!("```json\n{text}\n```"),
                format!("Now I'll look:\n```\n{text}\n```\nThat's it."),
                format!("<tool_call>\n{text}\n</tool_call>"),
                format!("<tool_call>{text}"),
                format!("I'll do this: {text}\nand wait."),
                format!("<think>{{\"name\": \"</tool_call> ```</think>{text}"),
                text,
            ]
        })
        .collect()
}

proptest! {
    #[test]
    fn any_text_comes_to_something(reply in any::<String>(), format in format()) {
        parse(&reply, format, &KNOWN);
    }

    #[test]
    fn any_fragments_come_to_something(reply in fragments(), format in format()) {
        let parsed = parse(&reply, format, &KNOWN);
        let shown = [&parsed.content, &parsed.prose].map(|text| text.len() <= reply.len());
        prop_assert_eq!(shown, [true, true]);
        if let Intent::Code(code) | Intent::Answer(code) | Intent::Malformed(code) = parsed.intent {
            prop_assert!(!code.trim().is_empty());
        }
    }

    #[test]
    fn a_call_is_the_same_in_every_dialect(call in call(), format in format()) {
        for reply in dialects(&call) {
            let intent = parse(&reply, format, &KNOWN).intent;
            prop_assert_eq!(&intent, &Intent::Calls(vec![call.clone()]), "{}", reply);
        }
    }

    #[test]
    fn calls_keep_their_order(calls in prop::collection::vec(call(), 1..5)) {
        let lines = calls.iter().map(|call| json!({"name": call.name, "arguments": call.args}).to_string());
        let tagged = lines.clone().map(|line| format!("<tool_call>{line}</tool_call>"));
        let replies = [lines.clone().collect::<Vec<_>>().join("\n"), tagged.collect::<Vec<_>>().join("\nand\n")];
        for reply in replies {
            prop_assert_eq!(parse(&reply, Tools, &KNOWN).intent, Intent::Calls(calls.clone()));
        }
    }

    #[test]
    fn a_program_survives_what_its_strings_say(text in fragments(), fence in prop::sample::select(vec!["```", "~~~", "````"])) {
        let code = format!("s = {}\nprint(s)", json!(text));
        let expected = Intent::Code(code.clone());
        for reply in [
            format!("{fence}python\n{code}\n{fence}"),
            format!("Let's go.\n{fence}py\n{code}\n{fence}\nThat's it."),
            format!("<code>\n{code}\n</code>"),
            format!("<code>\n{fence}python\n{code}\n{fence}\n</code>"),
            code,
        ] {
            prop_assert_eq!(&parse(&reply, Code, &KNOWN).intent, &expected, "{}", reply);
        }
    }

    #[test]
    fn thinking_stays_thinking(
        before in "[a-z .\n]{0,20}",
        inner in fragments(),
        call in call(),
        tag in prop::sample::select(vec!["think", "thinking", "reasoning", "Think"]),
        format in format(),
    ) {
        // A closing tag in thinking ends it, so what follows would rightly be seen.
        let inner = inner.replace("</", "");
        let thought = format!("{inner} {SECRET} ```python\n{SECRET}()\n```\n{{\"name\": \"{SECRET}\", \"arguments\": {{}}}} {inner}");
        let action = json!({"name": call.name, "arguments": call.args});
        for after in [String::new(), format!("\n{action}"), format!("\n```python\nprint({action})\n```"), format!("\n<tool_call>{action}</tool_call>")] {
            // A tag right behind a quote may be a mention; here it follows text or a line break.
            let whole = format!("{before}\n<{tag}>{thought}\n</{tag}>{after}");
            prop_assert!(!visible(&whole, format).contains(SECRET), "{}", whole);
            let headless = format!("{before}\n{}\n</{tag}>{after}", "I could run\n```python\nzqxsecret()\n```");
            prop_assert!(!visible(&headless, format).contains(SECRET), "{}", headless);
        }
        let endless = format!("{before}\n<{tag}>{}", thought);
        prop_assert!(!visible(&endless, format).contains(SECRET), "{}", endless);
    }
}

/// Half a megabyte of the same thing: with a quadratic search this would not end in any reasonable time.
#[test]
fn time_is_linear() {
    let units = [
        "{",
        "[",
        "{\"",
        "[{\"",
        "{'",
        "`",
        "```",
        "``` ",
        "```\n",
        "```python\n",
        "```python\n'",
        "```json\n{",
        "~~~",
        "~~~\n",
        "~~~x\n",
        "<code>",
        "<code>'",
        "<code>\"\"\"",
        "<tool_call>",
        "<tool_call>{",
        "<tool_call>{\"a\\\"",
        "[TOOL_CALLS]",
        "<function=",
        "<function=a><parameter=b>",
        "<think>",
        "</think>",
        "<think></think>",
        "<code><think></think>",
        "```\n<think></think>",
        "```json\n<think></think>",
        "{\"a\": \"<think></think>",
        "{\"<think>\": 1}",
        "'",
        "\"",
        "'\\",
        "\"\"\"",
        "''' ",
        "\\",
        "(",
        "x=",
        "x ",
        "\n",
        " ",
        "#",
        "Observation:\n",
        "print(1)\nObservation:",
        "{\"name\": \"read_file\", \"arguments\": {",
        "{\"name\":1}",
        "é",
        "<code>x</code>\n",
        "```\nx()\n```\n",
        "{\"name\": \"read_file\", \"arguments\": {}}\n",
        "<tool_call>{\"name\": \"a\" x</tool_call>",
        "</code",
        "`<think>`",
        "final_answer(",
        "-",
        "1",
        "1.",
        "f\"",
        "@",
        "lambda:",
    ];
    for unit in units {
        let many = unit.repeat(500_000 / unit.len());
        parse(&many, Tools, &KNOWN);
        parse(&format!("{many}</code></think>```"), Code, &KNOWN);
    }
}
