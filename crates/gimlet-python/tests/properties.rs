//! What reads text from a model or bytes from a worker must never panic, whatever it is given.

use gimlet_python::imports::{DEFAULT, Imports, Verdict};
use gimlet_python::protocol::{FromWorker, ToWorker, encode, read_frame};
use gimlet_python::source;
use proptest::prelude::*;

/// Text that is Python in parts: names, brackets, quotes, operators, odd characters.
fn sourceish() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "x",
            "=",
            " ",
            "\n",
            "\n    ",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "'",
            "\"",
            "\"\"\"",
            "\\",
            "#",
            ":",
            ",",
            "-",
            "**",
            "not ",
            "lambda ",
            "if ",
            "else ",
            "def f():",
            "class C:",
            "for i in ",
            "import a.b as c",
            "global g",
            "f'{",
            "}'",
            "é",
            "\u{2028}",
            "\r\n",
            "\t",
            ";",
            "1",
            "x := 2",
            "match x:",
            "case [a, *b]:",
            "with a as b:",
            "async ",
            "@",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,3}",
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_source_can_be_read(code in sourceish(), most in 1usize..200, line in proptest::option::of(0u32..20)) {
        let _ = source::check_depth(&code, most);
        let all = source::bound_from(&code, None);
        for name in source::bound_from(&code, line) {
            prop_assert!(all.contains(&name));
        }
        if let Some(rewritten) = source::keep_last_value(&code) {
            // Lines stay where they were, so tracebacks stay true.
            prop_assert_eq!(rewritten.matches('\n').count(), code.matches('\n').count());
            prop_assert!(source::bound_from(&rewritten, None).contains(&source::VALUE.to_owned()));
        }
    }

    #[test]
    fn brackets_deeper_than_the_limit_are_always_found(depth in 1usize..300, most in 1usize..300) {
        let code = format!("x = {}1{}", "[".repeat(depth), "]".repeat(depth));
        prop_assert_eq!(source::check_depth(&code, most).is_err(), depth > most);
    }

    #[test]
    fn any_bytes_can_be_read_as_a_frame(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        // A length that promises more than there is must not be believed; nor must any body.
        let _ = read_frame::<FromWorker>(&mut bytes.as_slice());
        let _ = read_frame::<ToWorker>(&mut bytes.as_slice());
    }

    #[test]
    fn what_is_written_is_read(number in any::<u32>(), code in "\\PC*") {
        let sent = ToWorker::Cell { number, code };
        let frame = encode(&sent).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let read = read_frame::<ToWorker>(&mut frame.as_slice()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(read, Some(sent));
    }

    #[test]
    fn a_refusal_always_says_something(name in "[a-z_.]{0,20}") {
        let imports = Imports::new(&DEFAULT.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        if let Verdict::Refused(message) = imports.judge(&name) {
            prop_assert!(message.contains(&name));
        }
    }
}
