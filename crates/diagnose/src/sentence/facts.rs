//! What a sentence is made of.

use hangdog_graph::{Evidence, Wait};
use hangdog_trace::ids::Utid;

use crate::blame::Knot;
use crate::function::Function;
use crate::kind::BlameKind;
use crate::problem::Problem;
use crate::starvation::Starvation;
use crate::suspect::Started;
use crate::verdict::Class;

pub(crate) struct Facts<'a, 'e> {
    pub evidence: &'a Evidence<'e>,
    pub problem: &'a Problem,
    pub victim: Utid,
    pub culprit: Utid,
    /// Whose time it is: of one that was kept from a CPU not the culprit's.
    pub starved: Utid,
    pub class: Class,
    pub kind: BlameKind,
    pub function: Option<&'a Function>,
    /// The longest wait that the culprit is blamed for.
    pub wait: Option<Wait>,
    pub starvation: Option<&'a Starvation>,
    /// Most of the time is that of many processes that the culprit started.
    pub started: Option<&'a Started>,
    /// So many other threads of the culprit's process did the same at other times.
    pub alike: usize,
    pub knot: Option<&'a Knot>,
    /// The culprit was asked over a connection, or has the other end of a pipe.
    pub is_asked: bool,
    /// Who reads a pipe that the culprit has open to write to, while that waits for anything.
    pub keeps_open: Option<Utid>,
    /// The culprit was asked, or sent at last what was waited for, and had nothing to do in the longest of its
    /// waits.
    pub is_idle_server: bool,
    /// Nothing names who should have ended the wait that it comes down to.
    pub is_open: bool,
    /// Who should have ended that wait, if that one waited for the culprit, too.
    pub in_turn: Option<Utid>,
    pub share: f64,
    /// The share of the time in which the culprit waited to be paged in.
    pub paged: f64,
    /// A thread of each program through which the waits lead from victim to culprit, in order.
    pub between: &'a [Utid],
    /// The first lock on the way from victim to culprit, in words.
    pub lock: Option<&'static str>,
    /// Of a single moment: what the victim does in it.
    pub now: Option<&'a str>,
}
