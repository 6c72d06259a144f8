//! What holds for every cut.

use gimlet::guard::truncate;
use gimlet::tool::Keep;
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_flag_is_set_exactly_when_something_was_cut(
        text in "(\\PC|\n){0,300}", chars in 0usize..120, lines in 1usize..12, tail: bool
    ) {
        let keep = if tail { Keep::Tail } else { Keep::Head };
        let (kept, was_cut) = truncate(&text, chars, lines, keep);
        let count = text.strip_suffix('\n').unwrap_or(&text).matches('\n').count();
        let fits = text.chars().count() <= chars && count < lines;
        prop_assert_eq!(was_cut, !fits);
        if !was_cut {
            prop_assert_eq!(&*kept, &*text);
        }
    }
}
