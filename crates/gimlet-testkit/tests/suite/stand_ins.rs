//! The approver, the span collector and the repositories.

use gimlet::approval::{ApprovalRequest, Approver, Decision, Scope};
use gimlet_testkit::{GitRepo, ScriptedApprover, SpanCollector};
use serde_json::json;
use tracing::instrument::WithSubscriber;
use tracing::{Instrument, info, info_span};

fn question(tool: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: "1".into(),
        run: "run-1".parse().unwrap(),
        binding: "b".into(),
        call: "c".into(),
        asker: String::new(),
        tool: tool.into(),
        args: json!({}),
        effects: Vec::new(),
        reason: "it changes a file".into(),
        asking: Default::default(),
        preview: None,
        editable: false,
    }
}

#[tokio::test]
async fn an_approver_follows_its_list_and_then_says_no() {
    let approver = ScriptedApprover::new([Decision::Approve { scope: Scope::Session }, Decision::Defer]);
    assert_eq!(approver.ask(question("a")).await, Decision::Approve { scope: Scope::Session });
    assert_eq!(approver.left(), 1);
    assert_eq!(approver.ask(question("b")).await, Decision::Defer);
    assert!(matches!(approver.ask(question("c")).await, Decision::Deny { feedback: Some(_) }));
    let asked: Vec<String> = approver.asked().into_iter().map(|request| request.tool).collect();
    assert_eq!(asked, ["a", "b", "c"]);
}

#[test]
fn spans_keep_their_fields_parents_and_ends() {
    let collector = SpanCollector::new();
    let open = {
        let _guard = tracing::subscriber::set_default(collector.subscriber());
        let run = info_span!("run", task = "look", steps = tracing::field::Empty, first = true, ratio = 0.5);
        {
            let _run = run.enter();
            let step = info_span!("step", n = 1u64, kind = ?Some("x"));
            step.in_scope(|| {
                info!(bytes = 7, "read");
                drop(info_span!("tool"));
            });
            drop(step);
            drop(info_span!("step", n = 2u64));
            drop(info_span!(parent: None, "other"));
        }
        run.record("steps", 2);
        run
    };
    insta::assert_snapshot!(collector.tree(), @r#"
    run task=look first=true ratio=0.5 steps=2 (open)
      step n=1 kind=Some("x")
        tool
      step n=2
    other
    "#);
    assert_eq!(collector.named("step").len(), 2);
    assert_eq!(collector.only("run").field("steps").as_deref(), Some("2"));
    assert_eq!(collector.named("step")[0].events[0]["bytes"], json!(7));
    assert_eq!(collector.named("step")[0].events[0]["message"], json!("read"));
    assert_eq!(collector.children(0).len(), 2);
    assert!(!collector.only("run").finished);
    drop(open);
    assert!(collector.only("run").finished, "a span may end after its subscriber was put away");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_of_several_tasks_are_kept_apart_from_other_tests() {
    let collector = SpanCollector::new();
    let work = async {
        let tasks = (0..20u64).map(|n| {
            let inner = async { tokio::task::yield_now().instrument(info_span!("inner")).await };
            tokio::spawn(inner.instrument(info_span!("outer", n)).with_current_subscriber())
        });
        futures_util::future::join_all(tasks.collect::<Vec<_>>()).await
    };
    let ended = work.with_subscriber(collector.subscriber()).await;
    assert!(ended.iter().all(Result::is_ok));
    drop(info_span!("elsewhere"));
    let spans = collector.spans();
    assert_eq!(spans.len(), 40);
    let inner = spans.iter().filter(|span| span.name == "inner");
    assert!(inner.clone().all(|span| spans[span.parent.unwrap()].name == "outer" && span.finished));
    let parents: std::collections::HashSet<_> = inner.map(|span| span.parent).collect();
    assert_eq!(parents.len(), 20);
}

#[test]
#[should_panic(expected = "0 spans are named run")]
fn the_only_span_must_be_there() {
    SpanCollector::new().only("run");
}

#[test]
fn repositories_have_the_same_hashes_everywhere() {
    let make = || {
        GitRepo::new()
            .file("README.md", "hello\n")
            .file("src/a/b.py", "print(1)\n")
            .commit("first")
            .branch("topic")
            .remove("README.md")
            .commit("second")
    };
    let (one, two) = (make(), make());
    assert_eq!(one.head(), two.head());
    assert_eq!(one.head(), "540a9cb81fc420b3832a2eed6d0a19c094fa2d5c");
    assert_eq!(
        one.git(&["log", "--format=%an <%ae> %ct %s%d"]),
        "Ada <ada@example.com> 1767225660 second (HEAD -> topic)\nAda <ada@example.com> 1767225600 first (main)\n"
    );
    assert_eq!(one.git(&["ls-files"]), "src/a/b.py\n");
    assert_eq!(one.read("src/a/b.py"), "print(1)\n");
    assert_eq!(one.git(&["status", "--porcelain"]), "");
    one.write("new.txt", [0u8, 159, 146, 150]);
    assert_eq!(one.git(&["status", "--porcelain"]), "?? new.txt\n");
    let one = one.commit("third").checkout("main");
    assert!(one.join("README.md").exists() && !one.join("new.txt").exists());
    let path = one.path().to_owned();
    drop(one);
    assert!(!path.exists());
}

#[test]
#[should_panic(expected = "cannot run git checkout --quiet nowhere")]
fn a_repository_that_cannot_be_made_says_why() {
    let _repo = GitRepo::new().checkout("nowhere");
}
