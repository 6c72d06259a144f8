//! The five layers of `examples/cognitive.toml`, as they are shipped, with scripted models and a real memory.

use super::{cells, of, says};
use crate::support::{Project, of_type};
use serde_json::{Value, json};

/// A project with the preset as its file, on scripted models; everything else of it is untouched.
fn cognitive(script: &str) -> Project {
    let project = Project::new();
    let model = project.script(&format!("order = \"turns\"\n{script}"));
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cognitive.toml");
    let text = std::fs::read_to_string(shipped).unwrap();
    let scripted: Vec<String> = text
        .lines()
        .map(|line| if line.starts_with("id = ") { format!("id = \"{model}\"") } else { line.to_owned() })
        .collect();
    project.file("gimlet.toml", &scripted.join("\n"));
    assert_eq!(project.say(&["trust", "gimlet.toml", "--yes"]).code, 0);
    project
}

fn code(text: &str) -> String {
    format!("text = '''\n```python\n{text}\n```\n'''")
}

/// A first run remembers; a second one goes through all layers.
fn story() -> String {
    let remember = "kept = remember('The build breaks on Mondays because the cache is cleared on Sundays.', tags=['build'])\n\
                    final_answer(kept['new'])";
    let think = "facts = perceptual('List what is known about the build.')['answer']\n\
                 gist = conceptual('Put together why the build breaks.', context=facts)['answer']\n\
                 rule = abstract('What holds beyond Mondays?', context=gist)['answer']\n\
                 judged = metacognitive('How good is the model of the build?', context=rule)['answer']\n\
                 remember('A cleared cache breaks the next build.', tags=['build', 'rule'])\n\
                 final_answer([facts, gist, rule, judged])";
    let recall = r#"calls = [{ name = "recall", args = { query = "build Mondays" } }]"#;
    let gather = code(
        "known = synthesize('build')\n\
         kept = synthesize('build', text='The cache decides whether the build breaks.', sources=[known['notes'][0]['id']])\n\
         final_answer('the cache decides')",
    );
    let predict = code(
        "state = reflect()\n\
         try:\n\
         \x20   generate_prediction('build', 'The build breaks after the next clearing.', 0.9)\n\
         except ToolError as error:\n\
         \x20   print(error.error)\n\
         final_answer('clearing a cache breaks what comes next')",
    );
    let revise = code(
        "made = revise_model('build', 'A cleared cache breaks the next build.', 0.8, because='it was seen')\n\
         final_answer(made['revision'])",
    );
    [
        says("Remember why", &[&code(remember)]),
        says("Why does the build break", &[&code(think)]),
        says(
            "List what is known",
            &[
                recall,
                "expect = [\"cache is cleared on Sundays\"]\ntext = \"It breaks on Mondays: the cache.\"",
            ],
        ),
        says("Put together", &[&gather]),
        says("What holds beyond", &[&predict]),
        says("How good is the model", &[&revise]),
    ]
    .concat()
}

fn lead(project: &Project, task: &str) -> Vec<Value> {
    let said = project.say(&["--agent", "consciousness", "--approve", "all", "--json", task]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{}", said.stdout);
    said.events()
}

#[test]
fn the_five_layers_work_end_to_end_with_a_real_memory() {
    let project = cognitive(&story());
    let told = lead(&project, "Remember why the build breaks.");
    assert_eq!(told.last().unwrap()["value"], json!(true), "{told:#?}");

    let told = lead(&project, "Why does the build break on Mondays?");
    let value = &told.last().unwrap()["value"];
    assert_eq!(value[0], "It breaks on Mondays: the cache.", "{told:#?}");
    assert_eq!(value[1], "the cache decides");
    assert_eq!(value[3], 1, "the first revision of the model");

    // Each layer had what its table says, and no more.
    let layers: [(&str, &str, u64, &[&str]); 4] = [
        ("perceptual", "tools", 3, &["recall"]),
        ("conceptual", "code", 5, &["recall", "synthesize"]),
        ("abstract", "code", 7, &["generate_prediction", "recall", "reflect", "synthesize"]),
        ("metacognitive", "code", 7, &["recall", "reflect", "resolve_prediction", "revise_model"]),
    ];
    let sorted = |tools: &Value| {
        let mut names: Vec<String> = serde_json::from_value(tools.clone()).unwrap();
        names.sort();
        names
    };
    for (name, action, steps, tools) in layers {
        let [started] = of(&told, "agent.started", &format!("{name}:"))[..] else { panic!("{name}") };
        assert_eq!(
            (&started["action"], &started["limits"]["max_steps"]),
            (&json!(action), &json!(steps)),
            "{name}"
        );
        assert_eq!(sorted(&started["tools"]), tools, "{name}");
    }
    let started = of_type(&told, "run.started")[0];
    assert_eq!((&started["agent"], &started["limits"]["max_steps"]), (&json!("consciousness"), &json!(10)));
    assert_eq!(
        sorted(&started["tools"]),
        ["abstract", "conceptual", "metacognitive", "perceptual", "remember"]
    );

    let known = project.say(&["memory", "list"]).stdout;
    assert!(known.contains("A cleared cache breaks the next build."), "{known}");
}

#[test]
fn a_layer_that_is_not_told_to_stop_is_stopped_by_its_cap() {
    let recall = |word: &str| format!("calls = [{{ name = \"recall\", args = {{ query = \"{word}\" }} }}]");
    let words: Vec<String> = ["a", "b", "c"].map(recall).to_vec();
    let mut replies: Vec<&str> = words.iter().map(String::as_str).collect();
    replies.push("expect = [\"all your steps\"]\ntext = \"nothing\"");
    let ask = cells(&["final_answer(perceptual('Look for ever.'))"]);
    let project = cognitive(&format!("{ask}{}", says("Look for ever", &replies)));
    let told = lead(&project, "Have a look.");
    let end = of(&told, "agent.finished", "perceptual:")[0];
    assert_eq!((&end["state"], &end["steps"]), (&json!("max_steps"), &json!(4)), "{end}");
    assert_eq!(told.last().unwrap()["value"]["note"], "it ran out of steps; the answer may be incomplete");
}
