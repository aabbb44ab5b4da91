//! Windows that do not answer.
//!
//! A program with a window is connected to its display server by a unix socket, and reads what
//! that sends: keys, the pointer, requests to draw. While its queue is empty the program has
//! nothing to answer, so an idle one is never suspected. A queue that is not empty and does not
//! shrink is not being read.
//!
//! Looks are far apart, and a program that reads all the time can be met with something in its
//! queue each time. So before a hang is believed it is looked at often, for a moment
//! ([`Windows::suspects`]): one that reads is seen to do so.

use std::collections::HashMap;
use std::ops::Range;

use crate::standing::{Limits, Standing, Stretch};

/// Where a program takes in what its display sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inlet {
    /// A socket, by its inode.
    Socket(u32),
    /// An eventfd, by process and number: its main thread is woken through it.
    Eventfd(u32, u32),
}

/// What a display server sent to one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// To where.
    pub client: Inlet,
    /// How much of it is not read: memory in bytes, or how often it was woken.
    pub unread: u64,
}

/// Whether a socket's name is one that display servers listen at: `/tmp/.X11-unix/X0`, also
/// abstract, and `wayland-0` in whatever folder.
pub fn is_display(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"\0").unwrap_or(name);
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match name.strip_prefix(b"/tmp/.X11-unix/X") {
        Some(number) => is_number(number),
        None => file.strip_prefix(b"wayland-").is_some_and(is_number),
    }
}

struct Window {
    standing: Standing,
    unread: u64,
    /// Looked at closely, and found not to read.
    confirmed: bool,
    /// Whether the last look missed it: a list that changes while it is read may lack one.
    missed: bool,
}

/// All windows, by where they take in; only those whose queue is not empty.
pub struct Windows {
    limits: Limits,
    waiting: HashMap<Inlet, Window>,
}

/// A window that did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Where it takes in.
    pub client: Inlet,
    /// How long.
    pub stretch: Stretch,
}

impl Windows {
    /// None yet.
    pub fn new(limits: Limits) -> Windows {
        Windows {
            limits,
            waiting: HashMap::new(),
        }
    }

    /// From now on a hang's end is waited for no longer than this, ns.
    pub fn wait_at_most(&mut self, most_ns: u64) {
        self.limits.most_ns = most_ns;
    }

    /// Takes in what the queues were, read at some time within `seen`, ns, and gives the hangs that
    /// are to be told.
    pub fn look(&mut self, seen: Range<u64>, queues: &[Queue]) -> Vec<Silence> {
        let mut told = Vec::new();
        let mut tell = |client, stretch: Option<Stretch>| {
            told.extend(stretch.map(|stretch| Silence { client, stretch }));
        };
        let unread: HashMap<Inlet, u64> = queues.iter().map(|q| (q.client, q.unread)).collect();
        let limits = self.limits;
        self.waiting
            .retain(|&client, window| match unread.get(&client) {
                Some(&unread) if unread >= window.unread => {
                    window.missed = false;
                    window.unread = unread;
                    window.standing.stands(seen.start);
                    if window.confirmed {
                        tell(client, window.standing.overdue(limits));
                    }
                    true
                }
                None if !window.missed => {
                    window.missed = true;
                    true
                }
                // It has read, or is gone.
                left => {
                    let stretch = window.standing.moved(seen.end, limits);
                    tell(client, stretch.filter(|_| window.confirmed));
                    window.confirmed = false;
                    window.unread = left.copied().unwrap_or_default();
                    window.unread > 0
                }
            });
        for queue in queues.iter().filter(|queue| queue.unread > 0) {
            self.waiting.entry(queue.client).or_insert_with(|| Window {
                standing: Standing::new(seen.end),
                unread: queue.unread,
                confirmed: false,
                missed: false,
            });
        }
        told
    }

    /// The windows that have not answered for too long, and have not been looked at closely.
    pub fn suspects(&self) -> Vec<Inlet> {
        let suspects = self.waiting.iter();
        suspects
            .filter(|(_, window)| window.standing.is_hang(self.limits) && !window.confirmed)
            .map(|(&client, _)| client)
            .collect()
    }

    /// Whether a window has something that it did not read.
    pub fn is_silent(&self, client: Inlet) -> bool {
        self.waiting.contains_key(&client)
    }

    /// Takes it that those which are suspects still do not read: they have been looked at closely.
    pub fn confirm(&mut self) -> Vec<Inlet> {
        let suspects = self.suspects();
        for client in &suspects {
            if let Some(window) = self.waiting.get_mut(client) {
                window.confirmed = true;
            }
        }
        suspects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        limit_ns: 2_000,
        most_ns: 10_000,
    };

    const CLIENT: Inlet = Inlet::Socket(7);

    fn queue(unread: u64) -> Vec<Queue> {
        vec![Queue {
            client: CLIENT,
            unread,
        }]
    }

    /// Looks at one window every 250 units, confirms suspects, and returns what is reported.
    fn watch(looks: &[u64]) -> Vec<(u64, Stretch)> {
        let mut windows = Windows::new(LIMITS);
        let mut told = Vec::new();
        for (turn, &unread) in looks.iter().enumerate() {
            let now = turn as u64 * 250;
            let silences = windows.look(now..now, &queue(unread));
            told.extend(silences.into_iter().map(|s| (now, s.stretch)));
            windows.confirm();
        }
        told
    }

    /// A window with nothing to read, and one that reads between looks, never hang.
    #[test]
    fn idle_and_busy() {
        assert!(watch(&[0; 200]).is_empty());
        let busy: Vec<u64> = (0..200).map(|turn| 32 * (turn % 7)).collect();
        assert!(watch(&busy).is_empty());
        // It reads a part and is sent more: never empty, and smaller now and then.
        let partly: Vec<u64> = (0..200).map(|turn| 4096 - 512 * (turn % 6)).collect();
        assert!(watch(&partly).is_empty());
    }

    /// A queue that stands or grows is a hang, told when it is read, from the first look that saw
    /// it to the last; one below the limit is none.
    #[test]
    fn unread() {
        let mut looks = vec![0, 0, 768];
        looks.extend([1536; 9]);
        looks.extend([0, 0]);
        let stretch = Stretch {
            window: 500..2_750,
            goes_on: false,
        };
        assert_eq!(watch(&looks), [(3_000, stretch)]);
        assert!(watch(&[0, 768, 768, 768, 768, 768, 768, 0]).is_empty());
    }

    /// What a slow look sees is dated so that none of it was before the hang or after it.
    #[test]
    fn slow_looks() {
        let mut windows = Windows::new(LIMITS);
        windows.look(0..500, &queue(768));
        windows.look(1_000..1_200, &queue(768));
        windows.look(3_000..3_900, &queue(768));
        assert_eq!(windows.confirm(), [CLIENT]);
        let told = windows.look(4_000..4_300, &queue(0));
        assert_eq!(told[0].stretch.window, 500..3_000);
    }

    /// One that goes on is reported once; after it has answered, the next is reported too.
    #[test]
    fn again() {
        let mut looks = vec![768; 60];
        looks.push(0);
        looks.extend([768; 12]);
        looks.push(0);
        let told = watch(&looks);
        let windows: Vec<_> = told.iter().map(|(_, stretch)| &stretch.window).collect();
        assert_eq!(windows, [&(0..10_000), &(15_250..18_000)]);
        assert_eq!(told.len(), 2);
        assert!(told[0].1.goes_on && !told[1].1.goes_on);
    }

    /// One that is seen to read in the close look was no hang; its program's end is one's end.
    #[test]
    fn close_looks() {
        let mut windows = Windows::new(LIMITS);
        for now in [0, 1_000, 2_000] {
            assert!(windows.look(now..now, &queue(768)).is_empty());
        }
        assert_eq!(windows.suspects(), [CLIENT]);
        assert!(windows.look(2_005..2_005, &queue(0)).is_empty());
        assert!(windows.confirm().is_empty());

        for now in [3_000, 4_000, 5_000] {
            windows.look(now..now, &queue(768));
        }
        assert_eq!(windows.confirm(), [CLIENT]);
        assert!(
            windows.look(5_250..5_250, &[]).is_empty(),
            "a list may lack one"
        );
        let gone = windows.look(5_500..5_500, &[]);
        assert_eq!(gone.len(), 1);
        assert_eq!(gone[0].stretch.window, 3_000..5_000);
        assert!(windows.look(5_750..5_750, &[]).is_empty());
    }

    /// Display servers are known by where they listen.
    #[test]
    fn displays() {
        for name in [
            b"/tmp/.X11-unix/X0\0".as_slice(),
            b"\0/tmp/.X11-unix/X12",
            b"/run/user/1000/wayland-0\0",
        ] {
            assert!(is_display(name), "{name:?}");
        }
        for name in [
            b"".as_slice(),
            b"/tmp/.X11-unix/X",
            b"/tmp/.X11-unix/X1/other",
            b"/run/user/1000/wayland-0.lock",
            b"/run/user/1000/bus",
        ] {
            assert!(!is_display(name), "{name:?}");
        }
    }
}
