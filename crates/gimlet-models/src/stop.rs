//! Stop texts for servers that refuse them: the reply is cut here instead of there.

use gimlet::message::Finish;
use gimlet::model::ModelEvent;

/// Cuts a reply before the first stop text. Holds back only what may be the beginning of one.
#[derive(Debug)]
pub(crate) struct StopFilter {
    stops: Vec<String>,
    held: String,
}

impl StopFilter {
    /// A filter for these texts; `None` when there are none.
    pub(crate) fn new(stops: &[String]) -> Option<Self> {
        let stops: Vec<String> = stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        (!stops.is_empty()).then_some(StopFilter { stops, held: String::new() })
    }

    /// Passes events on. After `Done`, the reply is over.
    pub(crate) fn pass(&mut self, events: Vec<ModelEvent>) -> Vec<ModelEvent> {
        let mut passed = Vec::with_capacity(events.len());
        for event in events {
            match event {
                ModelEvent::Text(text) => {
                    self.held.push_str(&text);
                    if let Some(at) = self.stops.iter().filter_map(|stop| self.held.find(stop)).min() {
                        self.held.truncate(at);
                        self.flush(&mut passed);
                        passed.push(ModelEvent::Done(Finish::Stop));
                        return passed;
                    }
                    let sure = self.held.len() - self.doubtful();
                    let rest = self.held.split_off(sure);
                    self.flush(&mut passed);
                    self.held = rest;
                }
                ModelEvent::Call(_) | ModelEvent::Done(_) => {
                    self.flush(&mut passed);
                    passed.push(event);
                }
                ModelEvent::Thinking(_)
                | ModelEvent::Signature(_)
                | ModelEvent::Usage(_)
                | ModelEvent::Notice(_) => passed.push(event),
            }
        }
        passed
    }

    fn flush(&mut self, passed: &mut Vec<ModelEvent>) {
        let text = std::mem::take(&mut self.held);
        passed.extend((!text.is_empty()).then_some(ModelEvent::Text(text)));
    }

    /// How many bytes at the end may be the beginning of a stop text.
    fn doubtful(&self) -> usize {
        let beginning = |stop: &String| {
            (1..stop.len())
                .rev()
                .filter(|length| stop.is_char_boundary(*length))
                .find(|length| self.held.ends_with(&stop[..*length]))
        };
        self.stops.iter().filter_map(beginning).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filtered(stops: &[&str], pieces: &[&str]) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut filter = StopFilter::new(&stops).unwrap();
        let mut text = String::new();
        let mut events: Vec<Vec<ModelEvent>> =
            pieces.iter().map(|piece| vec![ModelEvent::Text((*piece).to_owned())]).collect();
        events.push(vec![ModelEvent::Done(Finish::Length)]);
        for events in events {
            for event in filter.pass(events) {
                match event {
                    ModelEvent::Text(piece) => text.push_str(&piece),
                    ModelEvent::Done(finish) => return (text, finish == Finish::Stop),
                    _ => {}
                }
            }
        }
        panic!("a reply without an end")
    }

    #[test]
    fn a_reply_ends_before_its_stop_text() {
        assert_eq!(filtered(&["Obs:"], &["a O", "bs", ": b"]), ("a ".into(), true));
        assert_eq!(filtered(&["Obs:"], &["a O", "bs", "! b"]), ("a Obs! b".into(), false));
        assert_eq!(filtered(&["aab"], &["aa", "a", "b!"]), ("a".into(), true));
        assert_eq!(filtered(&["x", "yx"], &["1y", "x"]), ("1".into(), true));
        assert_eq!(filtered(&["🦀"], &["crab 🦀"]), ("crab ".into(), true));
        assert!(StopFilter::new(&[String::new()]).is_none());
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(text in "[abü]{0,24}", stop in "[abü]{1,4}", cuts in proptest::collection::vec(0..24usize, 0..5)) {
            let expected = match text.find(&stop) {
                Some(at) => (text[..at].to_owned(), true),
                None => (text.clone(), false),
            };
            let mut at: Vec<usize> = cuts.into_iter().filter(|cut| text.is_char_boundary(*cut)).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let pieces: Vec<&str> = at.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(filtered(&[&stop], &pieces), expected);
        }
    }
}
