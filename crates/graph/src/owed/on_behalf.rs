//! What a program's event loop waits for that other processes do on its behalf: a helper process of its own that
//! has asked a server, and a dialog that a service of the desktop shows.

use hangdog_trace::Process;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::Object;

use super::connection::open_request;
use super::kin::{first_thread, is_descendant};
use super::last::peer_of;
use super::who::{is_amid, is_home, is_there, thread_of, wait_at};
use super::{awaits_user, owes};
use crate::edge::{Edge, Strength};
use crate::evidence::Evidence;
use crate::marks::is_named;
use crate::names;
use crate::wait::{Wait, WaitKind};

/// The process of the same program, started by this one, that has asked a server on this machine which is at work or
/// has asked another one, and has no answer for at least a tenth of a second: a browser's main process has one that
/// speaks with the network. Of several the one that was started last.
pub fn helper_that_asked(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    const LONG_NS: u64 = 100_000_000;
    if wait.duration() < LONG_NS || !evidence.stands_for_program(wait.thread) {
        return None;
    }
    let own = evidence.threads.process_of(wait.thread);
    let has_asked = |thread: &Utid| {
        wait_at(evidence, *thread, wait.end).is_some_and(|there| {
            // Another thread of that process may wait for something else.
            let is_loop = matches!(there.kind, WaitKind::Poll | WaitKind::Idle);
            let may_be_for = |object: &Object| {
                is_loop && (there.by_epoll(evidence) || there.object(evidence) == *object)
            };
            let asked = open_request(evidence, &there).filter(may_be_for);
            let server = asked.and_then(|object| peer_of(evidence, object));
            server.is_some_and(|server| {
                let is_other = evidence.threads.process(server).name != own.name;
                is_other && !evidence.passes_on(server) && is_at_it(evidence, server, wait.end)
            })
        })
    };
    let helpers = evidence.threads.processes().filter(|it| {
        it.upid != own.upid && it.name == own.name && is_descendant(evidence, it.upid, own.upid)
    });
    let threads = helpers.flat_map(|it| it.threads.iter().copied());
    let helper = threads
        .filter(|&thread| is_there(evidence, thread, wait.end))
        .filter(has_asked)
        .last()?;
    let reason = format!(
        "{}, a process of its program, waits for an answer",
        evidence.name(helper)
    );
    Some(owes(helper, Strength::Weak, reason))
}

/// Whether a server works at a moment, or has no answer itself. One that waits for what comes may answer when it likes,
/// as to a page that listens for news.
fn is_at_it(evidence: &Evidence<'_>, server: Upid, moment: u64) -> bool {
    thread_of(evidence, server, Object::NONE, moment).is_some_and(|thread| {
        is_amid(evidence, thread, moment)
            || wait_at(evidence, thread, moment)
                .is_some_and(|there| open_request(evidence, &there).is_some())
    })
}

/// A dialog that waits for its user, and which a service of the desktop shows when a program asks for a password or a
/// permission: the program has no window, and waits for something that comes over the message bus, and whoever started
/// it waits for a child. The services that are on the bus all the time are not waited for.
pub fn prompter(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let process = evidence.threads.process_of(wait.thread);
    let own = process.upid;
    let peers = || {
        let asks = evidence.sockets.asks(own);
        asks.filter_map(|object| evidence.sockets.peer_process(object))
    };
    let is_on_bus = peers().any(|it| evidence.passes_on(it) && !evidence.serves_display(it));
    let is_awaited = || {
        let parent = first_thread(evidence, process.parent)?;
        Some(wait_at(evidence, parent, wait.end)?.kind == WaitKind::Child)
    };
    if !is_on_bus
        || !evidence.stands_for_program(wait.thread)
        || peers().any(|peer| evidence.serves_display(peer))
        || is_awaited() != Some(true)
    {
        return None;
    }
    let asks_user = |process: &Process| {
        let names = names::PROMPTERS;
        if !names.iter().any(|name| is_named(&process.name, name)) {
            return None;
        }
        let main = first_thread(evidence, process.upid)?;
        let there = wait_at(evidence, main, wait.end)?;
        let is_loop = awaits_user(evidence, &there) || is_home(evidence, &there);
        is_loop.then(|| thread_of(evidence, process.upid, there.object(evidence), wait.end))?
    };
    let dialog = evidence.threads.processes().find_map(asks_user)?;
    let reason = format!(
        "{} shows a dialog for programs on the message bus, and waits for its user",
        evidence.name(dialog)
    );
    Some(owes(dialog, Strength::Weak, reason))
}
