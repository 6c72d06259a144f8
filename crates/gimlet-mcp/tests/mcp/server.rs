//! Gimlet's own server: free to look, asked before it changes, in both revisions of the protocol.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::{ApprovalRequest, Approver, Decision, DeferAll, Scope};
use gimlet::effect::Effect;
use gimlet::event::{Failure, FinishState, Finished, Suspension};
use gimlet::journal::Observer;
use gimlet::tool::{ToolCx, ToolError, TypedTool, tool};
use gimlet::{Agent, Ending, Env};
use gimlet_mcp::server::{Offer, Report, Task, Tasks, serve_on};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, FormElicitationCapability, Implementation,
    ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RequestContext, RoleClient, RunningService};
use rmcp::{ClientHandler, ErrorData};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::Mute;

/// Look at a note.
#[derive(Deserialize, JsonSchema)]
struct LookInput {}
struct Look;

impl TypedTool for Look {
    const NAME: &'static str = "look";
    type Input = LookInput;
    type Output = Value;

    async fn run(&self, _input: LookInput, _cx: &ToolCx) -> Result<Value, ToolError> {
        Ok(json!({"note": "buy milk"}))
    }
}

/// Write a note.
#[derive(Deserialize, JsonSchema)]
struct WriteInput {
    /// What.
    text: String,
}
struct Write(Arc<Mutex<Vec<String>>>);

impl TypedTool for Write {
    const NAME: &'static str = "write";
    type Input = WriteInput;
    type Output = Value;

    fn effects(&self, _input: &WriteInput) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Write { path: "note".into(), digest: Some("d".into()) }])
    }

    fn preview(&self, input: &WriteInput) -> Option<String> {
        Some(format!("+{}", input.text))
    }

    async fn run(&self, input: WriteInput, _cx: &ToolCx) -> Result<Value, ToolError> {
        self.0.lock().unwrap().push(input.text);
        Ok(json!("written"))
    }
}

/// Keeps questions for the command line.
#[derive(Default)]
struct Waiting(Mutex<Vec<ApprovalRequest>>);

impl Approver for Waiting {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        self.0.lock().unwrap().push(request);
        async { Decision::Defer }.boxed()
    }
}

/// Says yes to one question by its id, once, as `gimlet approve` does.
#[derive(Default)]
struct Standing(Mutex<Option<String>>);

impl Approver for Standing {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        let yes = self.0.lock().unwrap().take_if(|id| *id == request.id).is_some();
        async move { if yes { Decision::Approve { scope: Scope::Once } } else { Decision::Defer } }.boxed()
    }
}

/// Works on tasks by asking the approver once.
struct Worker;

impl Tasks for Worker {
    fn work(
        &self,
        task: Task,
        approver: Arc<dyn Approver>,
        _observer: Arc<dyn Observer>,
        _stop: CancellationToken,
    ) -> BoxFuture<'_, Result<Report, String>> {
        async move {
            let ending = match &task {
                Task::New(text) if text == "fail" => Ending::Failed(Failure {
                    error: "MODEL_UNREACHABLE".into(),
                    message: "no model".into(),
                    hint: None,
                }),
                Task::New(_) | Task::Resume(_) => {
                    let request = ApprovalRequest {
                        id: "ap_task".into(),
                        run: "run-1".parse().unwrap(),
                        binding: "b".into(),
                        call: "call_1".into(),
                        asker: String::new(),
                        tool: "write".into(),
                        args: json!({}),
                        effects: Vec::new(),
                        reason: "it changes a file".into(),
                        asking: Default::default(),
                        preview: None,
                        editable: false,
                    };
                    match approver.ask(request).await {
                        Decision::Defer => {
                            Ending::Suspended(Suspension::Approval { approval: "ap_task".into() })
                        }
                        decision => Ending::Finished(Finished {
                            work: Default::default(),
                            answer: format!("{task:?}: {decision:?}"),
                            value: None,
                            state: FinishState::Answered,
                            steps: 2,
                            steps_below: 0,
                            usage: Default::default(),
                            seconds: 0.0,
                            notes: Vec::new(),
                        }),
                    }
                }
            };
            Ok(Report { run: "run-1".into(), ending })
        }
        .boxed()
    }
}

/// A client whose person answers, or that cannot ask.
#[derive(Clone)]
struct Person {
    answer: Option<ElicitResult>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.answer.is_some() {
            capabilities.elicitation =
                Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        }
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            self.asked.lock().unwrap().push(message);
        }
        Ok(self.answer.clone().unwrap())
    }
}

struct Session {
    client: RunningService<RoleClient, Person>,
    written: Arc<Mutex<Vec<String>>>,
    waiting: Arc<Waiting>,
    standing: Arc<Standing>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Session {
    async fn start(answer: Option<ElicitResult>, lifecycle: ClientLifecycleMode) -> Session {
        let written = Arc::new(Mutex::new(Vec::new()));
        let (waiting, standing) = (Arc::new(Waiting::default()), Arc::new(Standing::default()));
        let agent =
            Agent::builder(Arc::new(Mute)).tools([tool(Look), tool(Write(written.clone()))]).build().unwrap();
        let offer = Offer {
            agent,
            reading: BTreeSet::from(["look".to_owned()]),
            env: Env { approver: Arc::new(DeferAll), ..Env::default() },
            standing: standing.clone(),
            waiting: waiting.clone(),
            tasks: Some(Arc::new(Worker)),
        };
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(ours);
        tokio::spawn(serve_on(offer, input, output, CancellationToken::new()));
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let person = Person { answer, asked: asked.clone() };
        let client = person.serve_with_lifecycle(theirs, lifecycle).await.unwrap();
        Session { client, written, waiting, standing, asked }
    }

    async fn call(&self, name: &'static str, args: Value) -> CallToolResult {
        let params = CallToolRequestParams::new(name).with_arguments(args.as_object().cloned().unwrap());
        self.client.call_tool(params).await.unwrap()
    }

    fn written(&self) -> Vec<String> {
        std::mem::take(&mut *self.written.lock().unwrap())
    }
}

fn revisions() -> [ClientLifecycleMode; 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [ClientLifecycleMode::Initialize, ClientLifecycleMode::Discover { preferred_versions }]
}

fn accepted(content: Value) -> Option<ElicitResult> {
    Some(ElicitResult::new(ElicitationAction::Accept).with_content(content))
}

#[tokio::test]
async fn looking_is_free_and_tools_say_what_they_are() {
    for revision in revisions() {
        let session = Session::start(None, revision).await;
        let tools = session.client.list_all_tools().await.unwrap();
        let hints: Vec<(String, Option<bool>)> = tools
            .iter()
            .map(|tool| {
                (tool.name.to_string(), tool.annotations.as_ref().and_then(|hints| hints.read_only_hint))
            })
            .collect();
        assert_eq!(
            hints,
            [
                ("look".to_owned(), Some(true)),
                ("write".to_owned(), Some(false)),
                ("ask".to_owned(), Some(false))
            ]
        );
        let result = session.call("look", json!({})).await;
        assert_eq!(result.structured_content, Some(json!({"note": "buy milk"})));
        let wrong = session.call("look", json!({"x": 1})).await;
        assert_eq!(wrong.structured_content.unwrap()["error"], "VALIDATION_FAILED");
        let unknown = session.client.call_tool(CallToolRequestParams::new("nope")).await;
        assert!(unknown.unwrap_err().to_string().contains("there is no tool `nope`"));
    }
}

#[tokio::test]
async fn the_person_behind_the_client_is_asked() {
    for revision in revisions() {
        let session = Session::start(accepted(json!({"allow": true})), revision.clone()).await;
        let result = session.call("write", json!({"text": "a"})).await;
        assert_eq!((result.is_error, session.written()), (Some(false), vec!["a".to_owned()]));
        let asked = std::mem::take(&mut *session.asked.lock().unwrap());
        assert_eq!(
            asked,
            ["May `write` go ahead? It is asked because it changes a file.\n- write note\n\n+a"]
        );
        session.call("write", json!({"text": "a"})).await;
        assert_eq!(session.asked.lock().unwrap().len(), 1, "the next time asks again");
        assert!(session.waiting.0.lock().unwrap().is_empty());

        let task = session.call("ask", json!({"task": "do it"})).await;
        let answer = task.structured_content.unwrap()["answer"].as_str().unwrap().to_owned();
        assert!(answer.contains("Approve"), "{answer}");
    }
}

#[tokio::test]
async fn only_a_clear_yes_is_one() {
    let answers = [
        accepted(json!({"allow": false})),
        accepted(json!({})),
        accepted(json!({"allow": "true"})),
        Some(ElicitResult::new(ElicitationAction::Decline)),
        Some(ElicitResult::new(ElicitationAction::Cancel).with_content(json!({"allow": true}))),
    ];
    for answer in answers {
        for revision in revisions() {
            let session = Session::start(answer.clone(), revision).await;
            let result = session.call("write", json!({"text": "a"})).await;
            assert_eq!(result.structured_content.unwrap()["error"], "APPROVAL_DENIED");
            assert!(session.written().is_empty());
        }
    }
}

#[tokio::test]
async fn a_client_that_cannot_ask_is_given_an_id() {
    for revision in revisions() {
        let session = Session::start(None, revision).await;
        let refused = session.call("write", json!({"text": "a"})).await;
        assert_eq!(refused.is_error, Some(true));
        let failure = refused.structured_content.unwrap();
        let id = failure["context"]["approval"].as_str().unwrap().to_owned();
        assert_eq!(failure["error"], "APPROVAL_REQUIRED");
        assert!(failure["advice"].as_str().unwrap().contains(&format!("gimlet approve {id}")), "{failure}");
        assert_eq!(session.waiting.0.lock().unwrap()[0].id, id);
        assert!(session.written().is_empty());

        *session.standing.0.lock().unwrap() = Some(id);
        session.call("write", json!({"text": "b"})).await;
        assert!(session.written().is_empty(), "the yes was for something else");
        assert_eq!(session.call("write", json!({"text": "a"})).await.is_error, Some(false));
        assert_eq!(session.written(), ["a"]);

        let task = session.call("ask", json!({"task": "do it"})).await.structured_content.unwrap();
        assert_eq!((&task["state"], &task["run"]), (&json!("suspended"), &json!("run-1")));
        *session.standing.0.lock().unwrap() = Some("ap_task".into());
        let resumed = session.call("ask", json!({"resume": "run-1"})).await.structured_content.unwrap();
        assert!(resumed["answer"].as_str().unwrap().starts_with("Resume(\"run-1\"): Approve"), "{resumed}");
    }
}

#[tokio::test]
async fn an_answer_nobody_asked_for_is_none() {
    let [_, modern] = revisions();
    let session = Session::start(accepted(json!({"allow": true})), modern).await;
    // Learn the id of the question, then answer it without having been asked in this session.
    let id = "ap_task".to_owned();
    let answers = [(id, json!({"action": "accept", "content": {"allow": true}}))].into_iter().collect();
    let mut params = CallToolRequestParams::new("ask").with_input_responses(answers);
    params.arguments = json!({"task": "do it"}).as_object().cloned();
    let response = session.client.call_tool_once(params.clone()).await.unwrap();
    assert!(matches!(response, rmcp::model::CallToolResponse::InputRequired(_)), "{response:?}");
    params.request_state = Some("run-of-somebody-else".into());
    let rmcp::model::CallToolResponse::Complete(result) =
        session.client.call_tool_once(params).await.unwrap()
    else {
        panic!()
    };
    assert!(
        result.structured_content.unwrap()["message"].as_str().unwrap().contains("not one of this session's")
    );
}

#[tokio::test]
async fn a_task_that_fails_says_why() {
    let [legacy, _] = revisions();
    let session = Session::start(None, legacy).await;
    let failed = session.call("ask", json!({"task": "fail"})).await.structured_content.unwrap();
    assert_eq!((&failed["error"], &failed["message"]), (&json!("MODEL_UNREACHABLE"), &json!("no model")));
    let wrong = session.call("ask", json!({})).await.structured_content.unwrap();
    assert_eq!(wrong["error"], "VALIDATION_FAILED");
}
