//! Runtimes as a stranger's program has them: several in one process that do not meet, and one that keeps its runs in a
//! backend of the program's own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use gimlet::Ending;
use gimlet::approval::{Decision, Scope};
use gimlet::event::{Event, EventKind, Suspension};
use gimlet::feed::After;
use gimlet::store::{Backend, RunLog};
use gimlet_runtime::{Config, Home, Input, Options, Process, Runtime, Session};
use gimlet_store::FileStore;
use tempfile::TempDir;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

const READS: &str = r#"
order = "turns"
[[reply]]
calls = [{ name = "read_file", args = { path = "notes.txt" } }]
[[reply]]
expect = ["WHO"]
text = "WHO's notes."
[[reply]]
text = "WHO again."
"#;

const PATCHES: &str = r#"
order = "turns"
[[reply]]
calls = [{ name = "propose_patch", args = { intent = "Renew", file_path = "notes.txt", original_content = "old\n", new_content = "new\n" } }]
[[reply]]
calls = [{ name = "apply_patch", args = { patch_id = "PATCH" } }]
[[reply]]
text = "Done."
"#;

/// A folder with its own data directory and its own settings.
struct Place {
    folder: TempDir,
    home: TempDir,
}

impl Place {
    fn new(script: &str, settings: &str) -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap() };
        place.script(script);
        let file = place.home.path().join("script.toml");
        let config = format!("{settings}\n[model]\nid = \"scripted/{}\"\n", file.display());
        std::fs::write(place.home.path().join("config.toml"), config).unwrap();
        place
    }

    fn script(&self, script: &str) {
        std::fs::write(self.home.path().join("script.toml"), script).unwrap();
    }

    fn config(&self) -> Config {
        let process = Process::current().unwrap().with_home(Home::at(self.home.path()).unwrap());
        let process = Arc::new(process.started_in(self.folder.path().canonicalize().unwrap()));
        Config { process, ..Config::load(self.folder.path()).unwrap() }
    }
}

/// Remembers whose runs it heard of.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn subscriber(&self) -> Dispatch {
        Dispatch::new(Registry::default().with(self.clone()))
    }

    fn runs(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Heard {
    fn on_new_span(&self, attributes: &Attributes<'_>, _id: &Id, _context: Context<'_, S>) {
        struct RunId<'a>(&'a Heard);
        impl Visit for RunId<'_> {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                if field.name() == "run.id" {
                    self.0.0.lock().unwrap().push(format!("{value:?}").trim_matches('"').to_owned());
                }
            }
        }
        attributes.record(&mut RunId(self));
    }
}

async fn answer(session: &Session, task: &str) -> String {
    match session.submit(Input::Task(task.into())).await.unwrap().ended().await.unwrap() {
        Ending::Finished(finished) => finished.answer,
        other => panic!("{other:?}"),
    }
}

async fn limit_of(session: &Session) -> u32 {
    let events = session.stored_events().await.unwrap();
    let started = events.iter().find_map(|event| match &event.kind {
        EventKind::RunStarted(started) => Some(started.limits.max_steps),
        _ => None,
    });
    started.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runtimes_in_one_process_do_not_meet() {
    let one = Place::new(&READS.replace("WHO", "one"), "[agent]\nmax_steps = 7");
    let other = Place::new(&READS.replace("WHO", "other"), "[agent]\nmax_steps = 9");
    std::fs::write(one.folder.path().join("notes.txt"), "one\n").unwrap();
    std::fs::write(other.folder.path().join("notes.txt"), "other\n").unwrap();
    let (hears_one, hears_other) = (Heard::default(), Heard::default());
    let open = |place: &Place, heard: &Heard| {
        Runtime::open(Config { subscriber: Some(heard.subscriber()), ..place.config() }).unwrap()
    };
    let (first, second) = (open(&one, &hears_one), open(&other, &hears_other));
    // The same name in both stands for another run in each.
    let named = || Options { session: Some("work".into()), ..Options::default() };
    let (mine, theirs) = tokio::try_join!(first.begin(named()), second.begin(named())).unwrap();
    let answers = tokio::join!(answer(&mine, "whose?"), answer(&theirs, "whose?"));
    assert_eq!(answers, ("one's notes.".to_owned(), "other's notes.".to_owned()));
    assert_eq!((limit_of(&mine).await, limit_of(&theirs).await), (7, 9));

    let (a, b) = (mine.id().unwrap(), theirs.id().unwrap());
    assert_ne!(a, b);
    for (runtime, run) in [(&first, &a), (&second, &b)] {
        let listed = runtime.catalog().list(10).await.unwrap();
        assert_eq!(listed.iter().map(|listed| &listed.id).collect::<Vec<_>>(), [run]);
        assert_eq!(runtime.catalog().named("work").await.unwrap().as_ref(), Some(run));
    }
    assert_eq!((hears_one.runs(), hears_other.runs()), (vec![a.to_string()], vec![b.to_string()]));

    // One that is closed takes nothing of the other along.
    drop(mine);
    first.close().await;
    assert_eq!(answer(&theirs, "and again?").await, "other again.");
    second.close().await;
}

fn approval_of(ending: &Ending) -> String {
    match ending {
        Ending::Suspended(Suspension::Approval { approval }) => approval.clone(),
        other => panic!("{other:?}"),
    }
}

/// The id that the patch has: it follows from what is patched.
async fn patch_id(place: &Place) -> String {
    let aside = tempfile::tempdir().unwrap();
    let store = Arc::new(FileStore::open(aside.path()).unwrap());
    let runtime = Runtime::open(Config { backend: Some(Backend::of(store)), ..place.config() }).unwrap();
    let session = runtime.begin(Options::default()).await.unwrap();
    answer(&session, "propose it").await;
    let events = session.stored_events().await.unwrap();
    let proposed = events.iter().find_map(|event| match &event.kind {
        EventKind::ToolFinished(finished) => finished.result["patch_id"].as_str().map(str::to_owned),
        _ => None,
    });
    proposed.unwrap()
}

/// Whether something of a run was written below a data directory.
fn keeps_runs(home: &Path) -> bool {
    ["runs", "blobs", "sessions", "approvals.sqlite", "index.sqlite"]
        .iter()
        .any(|name| home.join(name).exists())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_of_a_run_is_kept_in_the_backend_that_is_put_in() {
    let place = Place::new(PATCHES, "[gate]\nenabled = false");
    let elsewhere = tempfile::tempdir().unwrap();
    let notes = place.folder.path().join("notes.txt");
    std::fs::write(&notes, "old\n").unwrap();
    // Another process: nothing is shared with the first but the backend.
    let open = || {
        let store = Arc::new(FileStore::open(elsewhere.path()).unwrap());
        Runtime::open(Config { backend: Some(Backend::of(store)), ..place.config() }).unwrap()
    };
    let options = || Options { session: Some("work".into()), ..Options::default() };
    place.script(&PATCHES.replace("PATCH", &patch_id(&place).await));
    let first = open();
    let session = first.begin(options()).await.unwrap();
    let run = {
        let turn = session.submit(Input::Task("change it".into())).await.unwrap();
        let run = turn.run().clone();
        let asked = approval_of(&turn.ended().await.unwrap());
        let pending = first.inbox().pending().await.unwrap();
        assert_eq!(pending.iter().map(|question| &question.request.id).collect::<Vec<_>>(), [&asked]);
        run
    };
    drop(session);
    first.close().await;

    let second = open();
    let question = second.inbox().pending().await.unwrap().remove(0).request;
    let yes = Decision::Approve { scope: Scope::Once };
    second.inbox().answer(&question.id, &question.binding, &yes, jiff::Timestamp::now()).await.unwrap();
    let session = second.begin(options()).await.unwrap();
    assert_eq!(session.id().as_ref(), Some(&run), "the name stands for the run in the backend");
    let turn = session.submit(Input::Resume(None)).await.unwrap();
    let finished = match turn.ended().await.unwrap() {
        Ending::Finished(finished) => finished,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (finished.answer.as_str(), std::fs::read_to_string(&notes).unwrap().as_str()),
        ("Done.", "new\n")
    );
    let mut events = session.events(After::Start).unwrap();
    let first_event: Arc<Event> = events.next().await.unwrap().unwrap();
    assert_eq!(first_event.run, run);
    drop((session, events));
    second.close().await;

    // A third one takes the change back: how to do that is in the backend, too.
    let third = open();
    let undone = third.undo(&run, None).await.unwrap();
    assert!(undone.iter().all(|outcome| outcome.error.is_none()));
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "old\n");
    let forked = third.fork(&run, 3, Some("and now?".into())).await.unwrap();
    assert!(
        !FileStore::open(elsewhere.path()).unwrap().entries(&forked.id, "patches").await.unwrap().is_empty()
    );
    assert!(!keeps_runs(place.home.path()), "the data directory holds nothing of the run");
}
