//! What every page has around it, and how an error looks.

use axum::http::{HeaderMap, HeaderValue};
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::{DOCTYPE, Markup, html};

use super::about::PAGES;
use crate::problem::Problem;
use crate::text::{block, line};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A problem as a page, or as a line where a part of a page asked.
pub(crate) struct Shown {
    pub(crate) problem: Problem,
    pub(crate) part: bool,
}

impl Shown {
    /// As a page.
    pub(crate) fn page(problem: impl Into<Problem>) -> Shown {
        Shown { problem: problem.into(), part: false }
    }

    /// As a part, if a part asked.
    pub(crate) fn to(headers: &HeaderMap) -> impl Fn(Problem) -> Shown + Copy {
        let part = is_part(headers);
        move |problem| Shown { problem, part }
    }
}

impl IntoResponse for Shown {
    fn into_response(self) -> Response {
        let Shown { problem, part } = self;
        let said = html! {
            div role="alert" {
                p.bad { (block(&problem.detail)) }
                @if let Some(hint) = &problem.hint { p.dim { (line(hint)) } }
            }
        };
        let body = match part {
            true => Html(said.into_string()),
            false => page("Error", &html! { h1 { (problem.title()) } (said) }),
        };
        (problem.status, body).into_response()
    }
}

/// Whether a part of a page asks, and not a person who goes to another one.
pub(crate) fn is_part(headers: &HeaderMap) -> bool {
    headers.contains_key("hx-request")
}

/// Sends the browser to another page of this server.
pub(crate) fn go_to(address: &str, part: bool) -> Response {
    match HeaderValue::from_str(address) {
        Ok(value) if part => ([("hx-redirect", value)], "").into_response(),
        _ => Redirect::to(address).into_response(),
    }
}

/// A whole page.
pub(crate) fn page(title: &str, body: &Markup) -> Html<String> {
    let asset = |name: &str| format!("/static/{name}?v={VERSION}");
    Html(html! { (DOCTYPE) html lang="en" {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="htmx-config" content="includeIndicatorCSS:false, history:false";
            meta name="color-scheme" content="light dark";
            title { (line(title)) " · gimlet" }
            link rel="stylesheet" href=(asset("style.css"));
            link rel="icon" href=(asset("icon.svg")) type="image/svg+xml";
            script src=(asset("htmx.js")) defer {}
            script src=(asset("app.js")) defer {}
        }
        body {
            a.skip href="#main" { "Skip to the content" }
            header.top { nav aria-label="Pages" {
                a.brand href="/" { "gimlet" }
                a href="/" { "Runs" }
                a href="/new" { "New task" }
                a href="/approvals" { "Questions" span id="bell" hx-get="/bell" hx-trigger="load, every 2s" {} }
                details.menu.more {
                    summary { "More" }
                    div {
                        a href="/evaluations" { "Evaluations" }
                        @for about in &PAGES { a href={ "/about/" (about.name) } { (about.title) } }
                    }
                }
            } }
            main id="main" { (body) }
            div id="toast" role="status" {}
            div.aside id="announce" role="status" {}
            (keys())
        }
    } }.into_string())
}

fn keys() -> Markup {
    let keys = [
        ("g", "Runs"),
        ("n", "New task"),
        ("q", "Questions"),
        ("/", "Search, or speak to the run"),
        ("j", "Next step, run or question"),
        ("k", "The one before"),
        ("y", "Approve the first question once"),
        ("x", "Deny the first question, with words"),
        ("e", "Edit the first question's patch"),
        ("d", "Diffs: unified or side by side"),
        ("s", "Stop the run"),
        ("r", "Resume the run"),
        ("?", "These keys"),
    ];
    html! {
        dialog id="keys" aria-labelledby="keys-title" {
            h2 id="keys-title" { "Keys" }
            dl { @for (key, does) in keys { dt { kbd { (key) } } dd { (does) } } }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// What somebody sees who is not logged in.
pub(crate) fn log_in(has_password: bool) -> Markup {
    html! {
        h1 { "Log in" }
        p { "Open the login link that " code { "gimlet serve" } " printed on its terminal. A link is good for one login." }
        @if has_password {
            form.task method="post" action="/login" {
                label { "Password" input type="password" name="password" autocomplete="current-password" required autofocus; }
                button.primary { "Log in" }
            }
        } @else {
            p.dim { "The link was used already? Start the server again for another one." }
        }
    }
}

/// What a browser sees that has just used a link. It goes on by itself: a redirect would not carry the new cookie when
/// the link was followed from elsewhere.
pub(crate) fn logged_in(next: &str) -> Html<String> {
    Html(
        html! { (DOCTYPE) html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={ "0; url=" (next) };
                title { "Logged in · gimlet" }
                link rel="icon" href={ "/static/icon.svg?v=" (VERSION) } type="image/svg+xml";
            }
            body { main { h1 { "You are logged in" } p { a href=(next) { "Go on" } } } }
        } }
        .into_string(),
    )
}
