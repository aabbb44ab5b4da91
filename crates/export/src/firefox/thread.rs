//! One thread of a profile.

use hangdog_timeline::{Intervals, State};
use hangdog_trace::ids::{NO_STACK, Utid};
use hangdog_trace::object::Object;
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::collections::HashMap;

use super::tables::{Code, MarkerCause, MarkerData, MarkerTable, NativeSymbols, SampleTable, ms};
use super::{Category, Profile};
use crate::fold::{Place, left_at, waker};
use crate::stack::NO_STACK_MARK;
use crate::words::{call_name, thread_name, waker_name};

/// A thread with its tables.
pub(crate) struct Thread<'a> {
    profile: &'a Profile<'a>,
    utid: Utid,
    code: Code,
    samples: SampleTable,
    markers: MarkerTable,
    places: HashMap<(Place, Option<Category>), Option<usize>>,
}

/// Makes a thread's tables.
pub(crate) fn build<'a>(profile: &'a Profile<'a>, utid: Utid) -> Thread<'a> {
    let mut thread = Thread {
        profile,
        utid,
        code: Code::default(),
        samples: SampleTable::new(),
        markers: MarkerTable::default(),
        places: HashMap::new(),
    };
    thread.add_samples();
    thread.add_waits();
    thread.add_wakes();
    thread
}

impl Thread<'_> {
    /// Samples, and the time between them off the CPU, with the CPU time that each closes.
    fn add_samples(&mut self) {
        let Profile {
            source, selection, ..
        } = *self.profile;
        let samples = source.samples;
        let rows = self.profile.samples.get(&self.utid);
        let mut rows = rows.into_iter().flatten().copied().peekable();
        let intervals = source.timeline.intervals(self.utid);
        let (from, to) = (selection.from, selection.to);
        let mut cpu = 0;
        // The profiler takes no CPU time from the first sample.
        if let Some(first) = intervals.between(from, to).next() {
            self.samples.push(first.start, None, 0, 0);
        }
        for (i, part) in intervals.indexes(from, to).zip(intervals.between(from, to)) {
            let mut at = part.start;
            while let Some(row) = rows.next_if(|&row| samples.ts[row as usize] < part.end) {
                let row = row as usize;
                let ts = samples.ts[row].max(at);
                if part.state.is_on_cpu() {
                    cpu += ts - at;
                    at = ts;
                }
                let place = Place {
                    user: samples.user_stack[row],
                    kernel: samples.kernel_stack[row],
                };
                let stack = self.stack(place, None);
                self.samples.push(ts, stack, cpu, 1);
                cpu = 0;
            }
            if part.state.is_on_cpu() {
                cpu += part.end - at;
                continue;
            }
            let weight = part.duration() / self.profile.period();
            if weight > 0 {
                let category = match part.state {
                    State::Blocked => Category::Blocked,
                    _ => Category::Waiting,
                };
                let stack = self.stack(left_at(source, intervals, i), Some(category));
                self.samples.push(at, stack, cpu, 1);
                cpu = 0;
                if weight > 1 {
                    self.samples.push(part.end, stack, 0, weight - 1);
                }
            }
        }
        if cpu > 0 {
            let end = intervals.iter().next_back().map_or(to, |last| last.end);
            self.samples.push(end.min(to), None, cpu, 0);
        }
    }

    fn add_waits(&mut self) {
        let Profile {
            source, selection, ..
        } = *self.profile;
        let intervals: Intervals<'_> = source.timeline.intervals(self.utid);
        let (from, to) = (selection.from, selection.to);
        for (i, part) in intervals.indexes(from, to).zip(intervals.between(from, to)) {
            if part.state != State::Blocked || part.duration() < self.profile.markers.at_least {
                continue;
            }
            let hangdog_timeline::Cause::Switch(row) = part.cause else {
                continue;
            };
            let row = row as usize;
            let runnable = intervals
                .get(i + 1)
                .filter(|next| next.state == State::Runnable)
                .map_or(0, |next| next.duration());
            let stack = self.stack(left_at(source, intervals, i), Some(Category::Blocked));
            let strings = &mut self.code.strings;
            let object = Object(source.switches.object[row]);
            let data = MarkerData::Wait {
                cause: stack.map(|stack| MarkerCause { stack }),
                object: (!object.is_none()).then(|| strings.number(&object.to_string())),
                waker: waker_name(source, waker(source, intervals, i))
                    .map(|name| strings.number(&name)),
                runnable: ms(runnable),
            };
            let name = strings.number(&call_name(source, row));
            self.markers
                .push(part.start, Some(part.end), name, Category::Blocked, data);
        }
    }

    fn add_wakes(&mut self) {
        let source = self.profile.source;
        let rows = self.profile.ended.get(&self.utid);
        for &row in rows.into_iter().flatten() {
            let (row, wakes) = (row as usize, source.wakes);
            let place = Place {
                user: wakes.user_stack[row],
                kernel: wakes.kernel_stack[row],
            };
            let stack = match place.is_none() {
                true => None,
                false => self.stack(place, None),
            };
            let strings = &mut self.code.strings;
            let data = MarkerData::Wake {
                cause: stack.map(|stack| MarkerCause { stack }),
                wakee: strings.number(&thread_name(source, wakes.wakee[row])),
            };
            let name = strings.number("wake");
            self.markers
                .push(wakes.ts[row], None, name, Category::Other, data);
        }
    }

    /// The stack at a place. Its innermost frame has the category given, which is the sample's.
    fn stack(&mut self, place: Place, category: Option<Category>) -> Option<usize> {
        if let Some(&stack) = self.places.get(&(place, category)) {
            return stack;
        }
        let mut frames: Vec<_> = [place.kernel, place.user]
            .into_iter()
            .filter(|&stack| stack != NO_STACK)
            .flat_map(|stack| self.profile.source.stacks.stack(stack))
            .collect();
        frames.reverse();
        let mut libraries = self.profile.libraries.borrow_mut();
        let (mut stack, mut depth) = (None, 0);
        let last = frames.len().saturating_sub(1);
        for (i, &frame) in frames.iter().enumerate() {
            depth = if frame.inlined { depth + 1 } else { 0 };
            let own = match frame.is_kernel() {
                true => Category::Kernel,
                false => Category::User,
            };
            let category = category.filter(|_| i == last).unwrap_or(own);
            let frame = self.code.frame(frame, depth, category, &mut libraries);
            stack = Some(self.code.stack(stack, frame));
        }
        if frames.is_empty() {
            let category = category.unwrap_or(Category::Other);
            let frame = self.code.label(NO_STACK_MARK, category);
            stack = Some(self.code.stack(None, frame));
        }
        self.places.insert((place, category), stack);
        stack
    }
}

impl Serialize for Thread<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let source = self.profile.source;
        let thread = source.threads.thread(self.utid);
        let process = source.threads.process_of(self.utid);
        let (pid, tid) = self.profile.ids(self.utid);
        let lives = process.threads.iter().map(|&t| source.timeline.life(t));
        let (start, end) = lives.fold((u64::MAX, 0), |(start, end), life| {
            (start.min(life.start), end.max(life.end))
        });
        let life = source.timeline.life(self.utid);
        let ended = |end: u64| (end < source.timeline.end()).then(|| ms(end));
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("name", thread.name())?;
        map.serialize_entry("isMainThread", &thread.is_main())?;
        map.serialize_entry("processName", &process.name)?;
        map.serialize_entry("processType", "default")?;
        map.serialize_entry("pid", pid)?;
        map.serialize_entry("tid", tid)?;
        map.serialize_entry("processStartupTime", &ms(start.min(end)))?;
        map.serialize_entry("processShutdownTime", &ended(end))?;
        map.serialize_entry("registerTime", &ms(life.start))?;
        map.serialize_entry("unregisterTime", &ended(life.end))?;
        map.serialize_entry("pausedRanges", &[(); 0])?;
        map.serialize_entry("showMarkersInTimeline", &false)?;
        map.serialize_entry("samples", &self.samples)?;
        map.serialize_entry("markers", &self.markers)?;
        map.serialize_entry("stackTable", &self.code.stacks)?;
        map.serialize_entry("frameTable", &self.code.frames)?;
        map.serialize_entry("funcTable", &self.code.funcs)?;
        map.serialize_entry("resourceTable", &self.code.resources)?;
        map.serialize_entry("nativeSymbols", &NativeSymbols::default())?;
        map.serialize_entry("stringArray", &self.code.strings)?;
        map.end()
    }
}
