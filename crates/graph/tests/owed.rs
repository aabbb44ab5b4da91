//! Who owes a thread what it waits for, where nothing ended the wait: told apart by how that is
//! known.

mod common;

use common::Recording;
use hangdog_graph::{EdgeKind, Source};

/// A thread sends over a connection that other uses at its other end, and waits for the reply:
/// other is its peer. Another time it wakes other right after a nap, and
/// then waits for a condition: then it is asked.
#[test]
fn a_peer_is_not_one_that_was_asked() {
    let peer = "1ms socket app object=unix:1 peer=unix:2 peer-process=service
        1ms transfer other received 1 object=unix:2 peer=unix:1
        2ms transfer main sent 8 object=unix:1 peer=unix:2
        3ms cpu0 switch main -> idle sleeping recvfrom object=unix:1";
    let asked = "1ms cpu0 switch main -> idle sleeping clock_nanosleep
        1500us cpu0 wake idle -> main in=timer
        1600us cpu0 switch idle -> main
        2ms cpu0 wake main -> other futex op=wake object=futex:0x20
        3ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10";
    for (events, kind) in [(peer, EdgeKind::Peer), (asked, EdgeKind::Asked)] {
        let recording = Recording::of(&format!(
            "process app 100
            thread main app 100 name=app
            process service 200
            thread other service 200
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> other
            {events}
            end 50ms"
        ));
        let found: Vec<EdgeKind> = recording
            .last_beliefs("main")
            .into_iter()
            .filter(|belief| belief.edge.source == Source::Thread(recording.t("other")))
            .map(|belief| belief.edge.kind)
            .collect();
        assert_eq!(found, [kind]);
    }
}
