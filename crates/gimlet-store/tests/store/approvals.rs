//! Answers given elsewhere: for exactly what was asked, once, and across processes.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use gimlet::approval::{ApprovalRequest, Decision, Scope, binding};
use gimlet::command::Confinement;
use gimlet::effect::Effect;
use gimlet::store::{InboxError, Reach};
use gimlet_store::{Approvals, ApprovalsError};
use serde_json::json;

use crate::support::{HOME, at, child, run};

const ONCE: Decision = Decision::Approve { scope: Scope::Once };
const SESSION: Decision = Decision::Approve { scope: Scope::Session };
const ALWAYS: Decision = Decision::Approve { scope: Scope::Always };

fn request(id: &str, command: &str) -> ApprovalRequest {
    let effects = vec![Effect::Run { command: command.into(), cwd: ".".into() }];
    ApprovalRequest {
        id: id.into(),
        run: run("r"),
        binding: binding("run_cmd", &effects, "/project", Confinement::Jailed),
        call: "call_1".into(),
        asker: String::new(),
        tool: "run_cmd".into(),
        args: json!({ "command": command }),
        effects,
        reason: "it is not known".into(),
        asking: Default::default(),
        preview: None,
        editable: false,
    }
}

/// The same question, asked by a run.
fn by(name: &str, request: &ApprovalRequest) -> ApprovalRequest {
    ApprovalRequest { run: run(name), ..request.clone() }
}

struct Home {
    dir: tempfile::TempDir,
    approvals: Approvals,
}

fn home() -> Home {
    let dir = tempfile::tempdir().unwrap();
    let approvals = Approvals::open(dir.path()).unwrap();
    Home { dir, approvals }
}

#[test]
fn a_question_is_found_and_its_answer_used_once() {
    let home = home();
    let (asks, answers) = (&home.approvals, Approvals::open(home.dir.path()).unwrap());
    let (first, second) = (by("r1", &request("q1", "make")), by("r2", &request("q2", "make test")));
    asks.ask(&first, "s", at(1)).unwrap();
    asks.ask(&second, "s", at(2)).unwrap();
    asks.ask(&first, "s", at(3)).unwrap();
    let pending = answers.pending().unwrap();
    assert_eq!(pending.iter().map(|question| &question.request).collect::<Vec<_>>(), [&first, &second]);
    assert_eq!((pending[0].run.clone(), pending[0].asked), (run("r1"), at(1)));

    assert_eq!(asks.decision("q1", &first.binding).unwrap(), None);
    answers.decide("q1", &ONCE, at(4)).unwrap();
    assert_eq!(answers.pending().unwrap().len(), 1);
    assert_eq!(asks.decision("q1", &second.binding).unwrap(), None, "an answer to something else");
    assert_eq!(asks.decision("q1", &first.binding).unwrap(), Some(ONCE));
    assert_eq!(asks.decision("q1", &first.binding).unwrap(), None, "only once");
    assert_eq!(asks.granted(&first.binding, "s").unwrap(), None);
    assert!(
        matches!(answers.decide("q1", &ALWAYS, at(5)), Err(ApprovalsError::Inbox(InboxError::Used(id))) if id == "q1")
    );

    let no = Decision::Deny { feedback: Some("use cargo".into()) };
    answers.decide("q2", &no, at(6)).unwrap();
    assert_eq!(asks.decision("q2", &second.binding).unwrap(), Some(no));
    assert!(answers.pending().unwrap().is_empty());
}

#[test]
fn asking_again_keeps_an_unused_answer_to_the_same_thing_only() {
    let Home { approvals, .. } = &home();
    let asked = request("q", "make");
    approvals.ask(&asked, "s", at(1)).unwrap();
    approvals.decide("q", &ONCE, at(2)).unwrap();
    approvals.ask(&asked, "s", at(3)).unwrap();
    assert_eq!(approvals.decision("q", &asked.binding).unwrap(), Some(ONCE));

    // The run died before it could act on it: a person is asked anew.
    approvals.ask(&asked, "s", at(4)).unwrap();
    assert_eq!(approvals.decision("q", &asked.binding).unwrap(), None);
    assert_eq!(approvals.pending().unwrap().len(), 1);
    approvals.decide("q", &ONCE, at(5)).unwrap();

    // The same call now wants something else: the answer was not to this.
    let changed = request("q", "make install");
    approvals.ask(&changed, "s", at(6)).unwrap();
    assert_eq!(approvals.decision("q", &changed.binding).unwrap(), None);
    assert_eq!(approvals.decision("q", &asked.binding).unwrap(), None);
    assert_eq!(approvals.pending().unwrap()[0].request, changed);

    let theirs = approvals.ask(&by("other", &changed), "s", at(7));
    assert!(
        matches!(theirs, Err(ApprovalsError::Inbox(InboxError::OtherRun { run: whose, .. })) if whose == run("r"))
    );
}

#[test]
fn an_answer_can_be_changed_until_it_is_used() {
    let Home { approvals, .. } = &home();
    let asked = request("q", "make");
    approvals.ask(&asked, "s", at(1)).unwrap();
    approvals.decide("q", &ALWAYS, at(2)).unwrap();
    assert_eq!(approvals.granted(&asked.binding, "any").unwrap(), Some(Reach::Always));
    approvals.decide("q", &Decision::Abort, at(3)).unwrap();
    assert_eq!(approvals.granted(&asked.binding, "any").unwrap(), None, "the grant goes with the answer");
    approvals.decide("q", &Decision::Defer, at(4)).unwrap();
    assert_eq!(approvals.pending().unwrap().len(), 1);
    assert_eq!(approvals.decision("q", &asked.binding).unwrap(), None);
    assert!(matches!(
        approvals.decide("nobody", &ONCE, at(5)),
        Err(ApprovalsError::Inbox(InboxError::NoSuchQuestion(_)))
    ));
}

#[test]
fn grants_reach_as_far_as_they_say() {
    let Home { approvals, .. } = &home();
    let (one, two) = (request("q1", "make"), request("q2", "make test"));
    approvals.ask(&one, "monday", at(1)).unwrap();
    approvals.decide("q1", &SESSION, at(2)).unwrap();
    let monday = Reach::Session("monday".into());
    assert_eq!(approvals.granted(&one.binding, "monday").unwrap(), Some(monday.clone()));
    assert_eq!(approvals.granted(&one.binding, "tuesday").unwrap(), None);
    assert_eq!(approvals.granted(&one.binding, "").unwrap(), None);
    assert_eq!(approvals.granted(&two.binding, "monday").unwrap(), None);
    assert_eq!(approvals.decision("q1", &one.binding).unwrap(), Some(SESSION));

    approvals.grant(&two, &Reach::Always, at(3)).unwrap();
    approvals.grant(&two, &Reach::Always, at(4)).unwrap();
    approvals.grant(&two, &monday, at(5)).unwrap();
    assert_eq!(approvals.granted(&two.binding, "monday").unwrap(), Some(Reach::Always));
    assert_eq!(approvals.granted(&two.binding, "tuesday").unwrap(), Some(Reach::Always));
    let grants = approvals.grants().unwrap();
    assert_eq!(
        grants.iter().map(|grant| (&*grant.request.id, &grant.reach, grant.granted)).collect::<Vec<_>>(),
        [("q1", &monday, at(2)), ("q2", &Reach::Always, at(3)), ("q2", &monday, at(5))]
    );
    assert_eq!(approvals.revoke(&two.binding).unwrap(), 2);
    assert_eq!(approvals.granted(&two.binding, "monday").unwrap(), None);
    assert_eq!(approvals.granted(&one.binding, "monday").unwrap(), Some(monday));
}

#[test]
fn taking_a_grant_back_takes_back_the_answer_it_came_from() {
    let Home { approvals, .. } = &home();
    let asked = request("q", "make");
    approvals.ask(&asked, "s", at(1)).unwrap();
    approvals.decide("q", &SESSION, at(2)).unwrap();
    assert_eq!(approvals.revoke(&asked.binding).unwrap(), 1);
    assert_eq!(approvals.decision("q", &asked.binding).unwrap(), None);
    assert_eq!(approvals.pending().unwrap().len(), 1);
}

#[expect(clippy::disallowed_methods, reason = "another test reads it")]
#[test]
#[ignore = "run as another process by the test below"]
fn child_takes_decisions() {
    let approvals = Approvals::open(&PathBuf::from(std::env::var_os(HOME).unwrap())).unwrap();
    let mut out = std::io::stdout().lock();
    for nr in 0..QUESTIONS {
        let id = format!("q{nr}");
        if approvals.decision(&id, &request(&id, "make").binding).unwrap().is_some() {
            out.write_all(format!("\ntook {id}\n").as_bytes()).unwrap();
        }
    }
}

const QUESTIONS: usize = 12;

#[test]
fn of_many_processes_one_gets_the_answer() {
    let home = home();
    for nr in 0..QUESTIONS {
        let id = format!("q{nr}");
        home.approvals.ask(&request(&id, "make"), "s", at(1)).unwrap();
        home.approvals.decide(&id, &ONCE, at(2)).unwrap();
    }
    let children: Vec<_> =
        (0..4).map(|_| child("approvals::child_takes_decisions", home.dir.path()).spawn().unwrap()).collect();
    let mut taken = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let said = String::from_utf8(output.stdout).unwrap();
        taken.extend(said.lines().filter_map(|line| line.strip_prefix("took ")).map(str::to_owned));
    }
    taken.sort();
    let mut all: Vec<_> = (0..QUESTIONS).map(|nr| format!("q{nr}")).collect();
    all.sort();
    assert_eq!(taken, all);
}

#[test]
fn a_file_that_cannot_be_trusted_grants_nothing() {
    let home = home();
    let file = home.dir.path().join("approvals.sqlite");
    let good = fs::read(&file).unwrap();
    let mut later = good.clone();
    later[60..64].copy_from_slice(&7u32.to_be_bytes());
    fs::write(&file, later).unwrap();
    assert!(matches!(Approvals::open(home.dir.path()), Err(ApprovalsError::Newer { found: 7, .. })));
    fs::write(&file, "not a database, and long enough to be looked at as one".repeat(40)).unwrap();
    let error = Approvals::open(home.dir.path()).unwrap_err();
    assert!(matches!(&error, ApprovalsError::Sqlite { path, .. } if *path == file), "{error}");
    assert!(home.approvals.granted("b", "s").is_err());
}
