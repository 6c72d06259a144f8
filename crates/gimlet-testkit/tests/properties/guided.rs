//! Replies are read and edits placed without harm: never a panic, and no line changes that was not asked for.

use gimlet::guided::ladder::replace;
use gimlet::guided::reply::{Block, is_inside_fence, join, parse};
use proptest::prelude::*;

/// Lines as models write them: code, prose, fences and markers.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ a-z()=:.#`*]{0,20}",
        Just("```".to_owned()),
        Just("```python".to_owned()),
        Just("~~~".to_owned()),
        Just("<<<<<<< SEARCH".to_owned()),
        Just("=======".to_owned()),
        Just(">>>>>>> REPLACE".to_owned()),
        Just("DELETE old.py".to_owned()),
        Just("### `src/a.py`".to_owned()),
        "\\PC{0,12}",
    ]
}

/// Lines of code: no fence, no marker, and not blank.
fn code() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(" {0,8}[a-z]{1,8} = [0-9]{1,3}", 1..12)
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

proptest! {
    #[test]
    fn no_reply_panics(lines in prop::collection::vec(line(), 0..30), more in prop::collection::vec(line(), 0..10)) {
        let (reply, rest) = (lines.join("\n"), more.join("\n"));
        parse(&reply, &["src/a.py"]);
        is_inside_fence(&reply);
        parse(&join(&reply, &rest), &[]);
    }

    #[test]
    fn any_text_can_be_joined(partial in "\\PC{0,80}", more in "\\PC{0,80}") {
        join(&partial, &more);
        parse(&partial, &[]);
    }

    #[test]
    fn a_file_in_a_fence_is_read_to_the_letter(lines in code(), prose in "[a-zA-Z ,]{0,40}") {
        let reply = format!("{prose}\n\nsrc/a.py\n```python\n{}```\n", text(&lines));
        let block = Block::Whole { path: Some("src/a.py".into()), language: "python".into(), text: text(&lines) };
        prop_assert_eq!(parse(&reply, &["src/a.py"]), vec![block]);
    }

    #[test]
    fn a_replacement_changes_its_lines_and_no_others(
        before in code(), found in code(), after in code(), new in code(),
    ) {
        // The marks make the lines to replace occur once.
        let found: Vec<String> = found.iter().map(|line| format!("{line} + unique")).collect();
        let file = format!("{}{}{}", text(&before), text(&found), text(&after));
        let changed = replace(&file, &text(&found), &text(&new));
        // Lines that repeat themselves inside the block may fit twice.
        if let Ok(changed) = changed {
            prop_assert_eq!(changed, format!("{}{}{}", text(&before), text(&new), text(&after)));
        }
    }

    #[test]
    fn a_block_that_was_read_replaces_as_it_says(found in code(), new in code()) {
        let found: Vec<String> = found.iter().map(|line| format!("{line} + unique")).collect();
        let reply =
            format!("a.py\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n", text(&found), text(&new));
        let blocks = parse(&reply, &[]);
        let block = Block::Replace { path: Some("a.py".into()), search: text(&found), replace: text(&new) };
        prop_assert_eq!(&blocks, &vec![block]);
        prop_assert_eq!(replace(&text(&found), &text(&found), &text(&new)), Ok(text(&new)));
    }

    #[test]
    fn nothing_that_is_looked_for_panics(file in "\\PC{0,60}(\n\\PC{0,30}){0,8}", search in "\\PC{0,30}(\n\\PC{0,30}){0,5}") {
        let _ = replace(&file, &search, "new\n");
    }
}
