//! Asks about files that others control, and waits no longer than it was told.
//!
//! In a recording a pair of processes does the reading: one opens the file, one takes it apart
//! ([`helper`]). If they do not answer in time they are ended, the file is noted as one that could
//! not be read, and the next question starts a new pair. In a program that has no helpers (a test)
//! the same is done here.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::answer::answer;
use crate::deadline::{is_over, time_left};
use crate::helper::{self, Failure, Pair};
use crate::mounts;
use crate::place::{Opened, Place, Terms, open};
use crate::request::{Request, Response};
use crate::unread::{Reason, note};

/// For a file's headers.
pub(crate) const LOOK: Duration = Duration::from_secs(2);
/// For all that a file says of its code: 100,000 places with debug information take a second or two.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// So many questions are asked at once: they and their answers, headers of files, fit into sockets.
const AT_ONCE: usize = 16;
/// After so much time of waiting for nothing, a reader asks no more.
const MOST_STALLED: Duration = Duration::from_secs(30);

/// Reads files for one who asks one question at a time.
#[derive(Default)]
pub struct Reader {
    pair: Option<Pair>,
    /// Mounts of which nothing came, and files.
    silent: HashSet<PathBuf>,
    stalled: Duration,
}

impl Reader {
    /// Asks about the files at these places; `label` is what a person calls them. What could not be
    /// read is noted.
    pub(crate) fn ask(
        &mut self,
        label: &str,
        files: &[(Place, Terms)],
        request: &Request,
        patience: Duration,
    ) -> Response {
        let question = Question {
            label: label.to_owned(),
            files: files.to_vec(),
            request: request.clone(),
        };
        let answers = self.ask_all(std::slice::from_ref(&question), patience);
        answers.into_iter().next().unwrap_or(Response::Nothing)
    }

    /// Asks questions with short answers, each of which may take so long: none waits for the answer to
    /// the one before, because on a busy machine every turn of a process is long in coming.
    pub(crate) fn ask_all(&mut self, questions: &[Question], patience: Duration) -> Vec<Response> {
        let mut answers = Vec::new();
        while let Some(rest) = questions
            .get(answers.len()..)
            .filter(|rest| !rest.is_empty())
        {
            let first = &rest[0].label;
            if is_over() {
                note(Reason::NoTime, first);
                answers.push(Response::Nothing);
            } else if self.is_silent(Path::new(first)) {
                note(Reason::Stalled, first);
                answers.push(Response::Nothing);
            } else {
                let can_be_asked =
                    |question: &&Question| !self.is_silent(Path::new(&question.label));
                let count = rest.iter().take(AT_ONCE).take_while(can_be_asked).count();
                self.ask_some(&rest[..count], patience, &mut answers);
            }
        }
        answers
    }

    /// Asks a few questions at once; the first that has no answer is the last that is dealt with.
    fn ask_some(&mut self, questions: &[Question], patience: Duration, into: &mut Vec<Response>) {
        let sent = match helper::is_there() {
            true => self.send(questions, patience),
            false => Ok(()),
        };
        for question in questions {
            let began = Instant::now();
            let answered = match (sent, &mut self.pair) {
                (Err(failure), _) => Err(failure),
                (Ok(()), Some(pair)) => pair.receive(patience.min(time_left())),
                (Ok(()), None) => Ok(read_here(&question.files, &question.request)),
            };
            match answered {
                Ok((opened, response)) => into.push(noted(&question.label, &opened, response)),
                Err(failure) => {
                    self.fail(&question.label, failure, began.elapsed());
                    return into.push(Response::Nothing);
                }
            }
        }
    }

    fn send(&mut self, questions: &[Question], patience: Duration) -> Result<(), Failure> {
        let pair = match &mut self.pair {
            Some(pair) => pair,
            none => none.insert(Pair::start()?),
        };
        questions
            .iter()
            .try_for_each(|question| pair.send(&question.files, &question.request, patience))
    }

    /// Nothing comes of a question: those who should have answered go.
    fn fail(&mut self, label: &str, failure: Failure, took: Duration) {
        self.pair = None;
        let reason = match failure {
            Failure::Stalled if is_over() => Reason::NoTime,
            Failure::Stalled => Reason::Stalled,
            Failure::Died => Reason::ReaderDied,
            Failure::NotStarted => Reason::NoReader,
        };
        note(reason, label);
        if let Failure::Stalled = failure {
            self.stalled += took;
            let path = Path::new(label);
            let mount = mounts::remote(path);
            self.silent.insert(mount.unwrap_or_else(|| path.to_owned()));
        }
    }

    fn is_silent(&self, path: &Path) -> bool {
        let is_within = |silent: &PathBuf| path.starts_with(silent);
        self.stalled >= MOST_STALLED || self.silent.iter().any(is_within)
    }

    /// The build-id of each of these files, in hexadecimal; empty if it is no ELF file, has none, or
    /// does not answer in time. With each place stands what a person calls the file.
    pub fn build_ids(&mut self, files: &[(String, Place)]) -> Vec<String> {
        let questions = files.iter().map(|(label, place)| Question {
            label: label.clone(),
            files: vec![(place.clone(), Terms::elf())],
            request: Request::Describe {
                build_id: String::new(),
            },
        });
        ids_of(self.ask_all(&questions.collect::<Vec<_>>(), LOOK))
    }
}

/// The build-ids that answers tell, as far as they can be some.
pub(crate) fn ids_of(answers: Vec<Response>) -> Vec<String> {
    let is_id = |id: &String| id.len() <= 128 && id.bytes().all(|b| b.is_ascii_hexdigit());
    let ids = answers.into_iter().map(|answer| match answer {
        Response::Image(_, image) => Some(image.build_id).filter(is_id).unwrap_or_default(),
        _ => String::new(),
    });
    ids.collect()
}

/// A question, and the files that it is about.
pub(crate) struct Question {
    /// What a person calls them.
    pub label: String,
    pub files: Vec<(Place, Terms)>,
    pub request: Request,
}

/// What there is to be said of an answer.
fn noted(label: &str, opened: &[Opened], response: Response) -> Response {
    if opened.contains(&Opened::NotRegular) {
        note(Reason::NotRegular, label);
    }
    if let Response::Names { cut: true, .. } = response {
        note(Reason::TooMuch, label);
    }
    response
}

fn read_here(files: &[(Place, Terms)], request: &Request) -> (Vec<Opened>, Response) {
    let mut opened = Vec::new();
    let mut open_files = Vec::new();
    for (place, terms) in files {
        let file = open(place, terms);
        opened.push(file.as_ref().map_or_else(|&why| why, |_| Opened::Yes));
        open_files.push(file.ok());
    }
    (opened, answer(request, open_files))
}
