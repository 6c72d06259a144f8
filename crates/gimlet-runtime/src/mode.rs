//! What an approval mode decides by itself. A mode only ever answers a question that the policy asks; what the policy
//! denies stays denied, whatever the mode.

use std::path::Path;
use std::sync::Arc;

use gimlet::approval::{ApprovalRequest, Asking, Decision, Scope};
use gimlet::digest::digest_json;
use gimlet::effect::{Effect, Policy, PolicyError, Verdict};
use gimlet_config::options::ApproveMode;
use gimlet_policy::{Author, Context, Jail};
use serde_json::json;

/// What a model is told whose call plan mode refuses.
const READ_ONLY: &str = "plan mode is on, and it is read-only: nothing may be changed or run";

/// The shipped rules that ask about nothing but a change of files that lie inside the project.
const CHANGES: [&str; 4] = ["change", "copy", "move", "writes-file"];

/// What stays inside a project, for modes that agree to that.
#[derive(Clone)]
pub struct Bounded {
    /// The project's folder, as approvals are bound to it.
    root: String,
    policy: gimlet_policy::Policy,
    context: Context,
}

impl Bounded {
    /// For a project whose commands are judged like this.
    pub(crate) fn new(root: &Path, policy: gimlet_policy::Policy, context: Context) -> Self {
        Bounded { root: root.display().to_string(), policy, context }
    }

    /// Whether a request is about files of the project and nothing else.
    pub fn is_edit(request: &ApprovalRequest) -> bool {
        let writes = |effect: &Effect| matches!(effect, Effect::Write { .. });
        let fits = |effect: &Effect| writes(effect) || matches!(effect, Effect::Read { .. });
        request.effects.iter().any(writes) && request.effects.iter().all(fits)
    }

    /// Whether all that a request would do is to change the project inside of the jail.
    fn is_contained(&self, request: &ApprovalRequest) -> bool {
        !request.effects.is_empty()
            && request.effects.iter().all(|effect| match effect {
                Effect::Read { .. } | Effect::Write { .. } => true,
                Effect::Run { command, cwd } => self.changes_only_files(command, cwd),
                Effect::Network { .. }
                | Effect::Delegate { .. }
                | Effect::Remember { .. }
                | Effect::Opaque { .. } => false,
            })
    }

    /// Whether a command is asked about only because it changes files of the project, and a jail keeps it to that.
    fn changes_only_files(&self, command: &str, cwd: &Path) -> bool {
        if self.context.jail == Jail::Absent {
            return false;
        }
        let context = Context { cwd: self.context.root.join(cwd), ..self.context.clone() };
        let report = self.policy.check(command, &context);
        // A rule that somebody added under the same name asks for its own reasons.
        let is_shipped = |id: &str| {
            CHANGES.contains(&id)
                && self.policy.rules().filter(|rule| rule.id == id).all(|rule| rule.author == Author::Builtin)
        };
        match report.verdict {
            Verdict::Allow => true,
            Verdict::Ask(_) => report.rules.iter().all(|id| is_shipped(id)),
            Verdict::Deny(_) => false,
        }
    }

    /// What a yes to all edits of this project is bound to.
    pub(crate) fn edits_binding(&self) -> String {
        digest_json(&json!({ "edits": self.root }))
    }
}

/// What a mode answers by itself; none where somebody has to be asked.
pub fn decided_by(mode: ApproveMode, request: &ApprovalRequest, bounded: &Bounded) -> Option<Decision> {
    let yes = Some(Decision::Approve { scope: Scope::Once });
    match stricter(mode, request.asking) {
        ApproveMode::Plan => Some(Decision::Deny { feedback: Some(format!("No: {READ_ONLY}.")) }),
        ApproveMode::Never => Some(Decision::Deny { feedback: None }),
        ApproveMode::Ask => None,
        ApproveMode::Edits => yes.filter(|_| Bounded::is_edit(request)),
        ApproveMode::Auto => yes.filter(|_| bounded.is_contained(request)),
        ApproveMode::All => yes,
    }
}

/// The mode for an agent that may not be content with it: it can be stricter, never looser.
fn stricter(mode: ApproveMode, asking: Asking) -> ApproveMode {
    match (mode, asking) {
        (ApproveMode::Plan, _) => ApproveMode::Plan,
        (ApproveMode::Never, _) | (_, Asking::Nobody) => ApproveMode::Never,
        (ApproveMode::Edits | ApproveMode::Auto | ApproveMode::All, Asking::Person) => ApproveMode::Ask,
        (ApproveMode::Ask | ApproveMode::Edits | ApproveMode::Auto | ApproveMode::All, _) => mode,
    }
}

/// Denies every change while plan mode is on, also what would need no question otherwise.
pub struct PlanPolicy {
    is_on: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl PlanPolicy {
    /// One that asks this before each verdict.
    pub fn while_on(is_on: impl Fn() -> bool + Send + Sync + 'static) -> Arc<dyn Policy> {
        Arc::new(PlanPolicy { is_on: Arc::new(is_on) })
    }
}

impl Policy for PlanPolicy {
    fn judge(&self, effect: &Effect) -> Result<Verdict, PolicyError> {
        Ok(match effect {
            Effect::Read { .. } | Effect::Delegate { .. } => Verdict::Allow,
            Effect::Write { .. }
            | Effect::Run { .. }
            | Effect::Network { .. }
            | Effect::Remember { .. }
            | Effect::Opaque { .. } => match (self.is_on)() {
                true => Verdict::Deny(READ_ONLY.into()),
                false => Verdict::Allow,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(effects: Vec<Effect>) -> ApprovalRequest {
        ApprovalRequest {
            id: "ap_1".into(),
            run: "run-1".parse().unwrap(),
            binding: String::new(),
            call: String::new(),
            asker: String::new(),
            tool: "run_cmd".into(),
            args: serde_json::Value::Null,
            effects,
            reason: String::new(),
            asking: Asking::Open,
            preview: None,
            editable: false,
        }
    }

    fn run(command: &str) -> ApprovalRequest {
        request(vec![Effect::Run { command: command.into(), cwd: "".into() }])
    }

    fn bounded(jail: Jail) -> Bounded {
        let context = Context::new("/srv/project", jail);
        Bounded::new(Path::new("/srv/project"), gimlet_policy::Policy::builtin(), context)
    }

    #[test]
    fn auto_agrees_to_what_changes_only_the_project_in_the_jail() {
        let agrees =
            |command: &str, jail| decided_by(ApproveMode::Auto, &run(command), &bounded(jail)).is_some();
        for command in
            ["touch a.txt", "mkdir -p a/b", "cp a b", "mv a b", "echo hi > a.txt", "touch a && mkdir b"]
        {
            assert!(agrees(command, Jail::Active), "{command}");
            assert!(!agrees(command, Jail::Absent), "{command} without a jail");
        }
        for command in [
            "touch /etc/x",
            "touch ../x",
            "touch $X",
            "curl http://example.com",
            "pip install x",
            "git commit -m x",
            "rm -rf x",
            "touch a && curl http://example.com",
            "sudo touch a",
        ] {
            assert!(!agrees(command, Jail::Active), "{command}");
        }
        let network = request(vec![Effect::Network { host: "any".into() }]);
        assert_eq!(decided_by(ApproveMode::Auto, &network, &bounded(Jail::Active)), None);
    }

    #[test]
    fn edits_are_files_and_nothing_else() {
        let write = || Effect::Write { path: "a".into(), digest: None };
        let both = vec![write(), Effect::Opaque { what: "x".into() }];
        let says =
            |request: &ApprovalRequest| decided_by(ApproveMode::Edits, request, &bounded(Jail::Active));
        assert!(says(&request(vec![write()])).is_some());
        assert_eq!(says(&request(both)), None);
        assert_eq!(says(&run("touch a")), None);
        let person = ApprovalRequest { asking: Asking::Person, ..request(vec![write()]) };
        assert_eq!(says(&person), None, "an agent that wants a person gets one");
    }
}
