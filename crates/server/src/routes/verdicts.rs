//! The routes that diagnose: problems, verdicts, answers, and a problem as one file.

use super::{Answer, Id, Shared, answer_json, find, state_of};
use crate::opened::{Desk, Opened};
use crate::single;
use crate::spans::drawable;
use anyhow::{Result, anyhow};
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Json, Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use hangdog_diagnose::{Answers, Problem, Verdict, diagnose, explain::explain, signature};
use hangdog_report::answers::{Found, VerdictAnswer, problem_rows};
use hangdog_report::answers_file;
use hangdog_report::paging;
use hangdog_report::select::{Bounds, NothingFound, Window};
use hangdog_report::units::Moment;
use hangdog_report::which::{Wanted, choose};
use hangdog_trace::ids::Utid;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) async fn problems(State(shelf): Shared, id: Id) -> Answer {
    let rows = find(&shelf, id)?.problems().await?;
    answer_json(&json!({ "problems": &*rows }))
}

/// Which verdict: a problem's, or that of a part of a thread's life.
#[derive(Deserialize, Clone, Copy)]
pub(super) struct VerdictQuery {
    problem: Option<u32>,
    thread: Option<Utid>,
    from: Option<u64>,
    to: Option<u64>,
}

impl VerdictQuery {
    fn bounds(self) -> Bounds {
        Bounds {
            from: self.from.map(Moment::At),
            to: self.to.map(Moment::At),
        }
    }
}

/// What to explain, with its number among the problems.
fn wanted(desk: &Desk<'_>, query: VerdictQuery) -> Result<(Problem, Option<usize>)> {
    let recording = &*desk.case.recording;
    if let Some(utid) = query.thread {
        let window = Window::new(query.bounds(), recording.timeline.end())?;
        let life = recording.timeline.life(utid);
        let part = window.from.max(life.start)..window.to.min(life.end);
        if part.is_empty() {
            return Err(NothingFound::new("that thread does not live then").into());
        }
        return Ok((Problem::picked(utid, part), None));
    }
    let wanted = Wanted {
        problem: query.problem,
        window: query.bounds(),
        ..Wanted::default()
    };
    choose(&wanted, desk.evidence, recording, desk.problems)
}

/// The verdict that is asked for, of which problem, with its number.
fn judge(
    desk: &Desk<'_>,
    query: VerdictQuery,
    answers: &Answers,
) -> Result<(Problem, Option<usize>, Verdict)> {
    let (problem, number) = wanted(desk, query)?;
    let mut verdict = (desk.known).verdict(desk.case, desk.evidence, &problem, answers);
    verdict.blame_over_time = drawable(verdict.blame_over_time);
    Ok((problem, number, verdict))
}

pub(super) async fn verdict(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<VerdictQuery>, QueryRejection>,
) -> Answer {
    let opened = find(&shelf, id)?;
    let Query(query) = query?;
    let value = verdict_of(&opened, query).await?;
    answer_json(&value)
}

async fn verdict_of(opened: &Opened, query: VerdictQuery) -> Result<Value> {
    let answers = answers_file::read(opened.path())?;
    let path = opened.path().to_owned();
    opened
        .ask(move |desk| {
            let (_, number, verdict) = judge(desk, query, &answers)?;
            let found = |problem| Found::new(desk.evidence, problem);
            Ok(serde_json::to_value(VerdictAnswer {
                trace: Some(&path),
                loss: &desk.case.recording.loss,
                signature: signature(&verdict),
                repeats: desk.known.repeats(&verdict),
                paging: paging::of_verdict(desk.case, &verdict),
                verdict: &verdict,
                problems: desk.problems.iter().map(found).collect(),
                number,
                region: None,
            })?)
        })
        .await
}

#[derive(Deserialize)]
pub(super) struct ExplainQuery {
    problem: Option<u32>,
    step: usize,
}

pub(super) async fn explained(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<ExplainQuery>, QueryRejection>,
) -> Answer {
    let opened = find(&shelf, id)?;
    let Query(query) = query?;
    let answers = answers_file::read(opened.path())?;
    let value = opened
        .ask(move |desk| {
            let which = VerdictQuery {
                problem: query.problem,
                thread: None,
                from: None,
                to: None,
            };
            let (problem, _) = wanted(desk, which)?;
            let setting = desk.case.setting(&answers, None);
            let explanation = explain(desk.evidence, &problem, setting, query.step)
                .ok_or_else(|| NothingFound::new("the verdict has no such edge"))?;
            Ok(serde_json::to_value(explanation)?)
        })
        .await?;
    answer_json(&value)
}

#[derive(Deserialize)]
pub(super) struct ReportQuery {
    problem: Option<u32>,
    #[serde(default)]
    redact: bool,
}

pub(super) async fn report(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<ReportQuery>, QueryRejection>,
) -> Answer {
    let opened = find(&shelf, id)?;
    let Query(query) = query?;
    let page = report_of(&opened, query.problem, query.redact).await?;
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_DISPOSITION, "attachment; filename=\"report.html\""),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, page).into_response())
}

/// A problem as one file: that with the number, or the worst.
///
/// # Errors
/// If there is no such problem, the trace cannot be read, or the file would be too large.
pub async fn report_of(opened: &Opened, problem: Option<u32>, redact: bool) -> Result<String> {
    let answers = answers_file::read(opened.path())?;
    let state = {
        // The state of a trace that is read.
        opened.ground().await?;
        opened.ask(|_| Ok(())).await?;
        state_of(opened)
    };
    let ground = opened.ground().await?;
    opened
        .ask(move |desk| {
            let query = VerdictQuery {
                problem,
                thread: None,
                from: None,
                to: None,
            };
            let recording = &*desk.case.recording;
            let (chosen, number, verdict) = judge(desk, query, &answers)?;
            let mut row = problem_rows(
                desk.case,
                desk.evidence,
                std::slice::from_ref(&chosen),
                desk.known,
                &answers,
            );
            if let (Some(row), Some(number)) = (row.first_mut(), number) {
                row.number = number;
            }
            let mut path = vec![chosen.thread];
            path.extend(verdict.path.iter().map(|step| step.utid));
            single::write(single::Parts {
                ground: &ground,
                state,
                problems: json!(row),
                path,
                window: chosen.window.clone(),
                redact,
                verdict: serde_json::to_value(VerdictAnswer {
                    trace: None,
                    loss: &recording.loss,
                    signature: signature(&verdict),
                    repeats: desk.known.repeats(&verdict),
                    paging: paging::of_verdict(desk.case, &verdict),
                    verdict: &verdict,
                    problems: Vec::new(),
                    number,
                    region: None,
                })?,
            })
        })
        .await
}

/// What the user says to a question, or takes back.
#[derive(Deserialize)]
pub(super) struct Said {
    /// The verdict that asks.
    #[serde(flatten)]
    verdict: VerdictQuery,
    /// The question's number there, to answer it.
    question: Option<usize>,
    /// The possibility's choice.
    choice: Option<String>,
    /// The number of an answer to take back.
    forget: Option<u32>,
}

pub(super) async fn answer(
    State(shelf): Shared,
    id: Id,
    said: Result<Json<Said>, JsonRejection>,
) -> Answer {
    let opened = find(&shelf, id)?;
    let Json(said) = said?;
    let query = said.verdict;
    let mut answers = answers_file::read(opened.path())?;
    match (said.question, said.choice, said.forget) {
        (_, _, Some(number)) => {
            if !answers.forget(number).map_err(anyhow::Error::from)? {
                return Err(anyhow!("there is no answer {number}").into());
            }
        }
        (Some(question), Some(choice), None) => {
            let going_by = answers.clone();
            let asked = opened
                .ask(move |desk| {
                    let (problem, _) = wanted(desk, query)?;
                    let setting = desk.case.setting(&going_by, None);
                    let verdict = diagnose(desk.evidence, &problem, setting);
                    let is_asked = |q: &hangdog_diagnose::verdict::Question| {
                        q.number == question && q.possibilities.iter().any(|p| p.choice == choice)
                    };
                    let found = verdict.questions.into_iter().find(is_asked);
                    let found = found.ok_or_else(|| {
                        anyhow!("the verdict has no such question: it may have changed")
                    })?;
                    Ok((found, choice))
                })
                .await?;
            let (question, choice) = asked;
            answers
                .add(&question.text, question.wait.clone(), &choice)
                .map_err(anyhow::Error::from)?;
        }
        _ => return Err(anyhow!("give question and choice, or forget").into()),
    }
    answers_file::write(opened.path(), &answers)?;
    answer_json(&verdict_of(&opened, query).await?)
}
