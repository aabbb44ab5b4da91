// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Python's own functions in the stacks of CPython 3.11.
//
// One C function, the interpreter's loop, runs all Python functions: one call of it runs a Python
// function and, without a C call, those that it calls in turn. Each call of the loop keeps a
// `_PyCFrame` on its own piece of the stack. So a walk that goes up past that address has just left
// the loop, and nothing need be known of where the loop's code lies, which is in several pieces and
// without names. In its place the walk tells the Python functions that it runs: from the cframe's
// current frame out to the one that the loop was entered with.
//
//   _PyRuntime ─ key ─┐
//   thread's storage ─┴→ PyThreadState ─→ cframe ─→ frame ─→ frame (is_entry)    a call of the loop
//                                           ↓                  ↓
//                                         cframe ─→ frame ─→ frame (is_entry)    the one around it
//
// A thread is looked at while it does not run, or by itself, so nothing changes meanwhile. Between
// the three stores with which the loop begins, the cframe's frame is not set yet: a sample that
// hits just there may tell what ran at that place before.
#pragma once

#include "proof.h"
#include "stack.h"

#ifdef HAS_UNWIND_RULES

// Where CPython 3.11 keeps what, by offsetof() with its headers (Py_BUILD_CORE; pycore_runtime.h,
// pycore_frame.h, cpython/pystate.h, cpython/code.h, cpython/unicodeobject.h); 3.11.2 and 3.11.7
// are the same, as are all of a minor version. The structs below begin at the offsets given here.
#define PY_RUNTIME_KEY 592 // gilstate.autoTSSkey: whether it is set, and which
#define PY_THREAD_CFRAME 56
#define PY_FRAME_CODE 32
#define PY_CODE_SIZE 16
#define PY_TEXT_LENGTH 16
#define PY_TEXT_ASCII_DATA 48
#define PY_TEXT_COMPACT_DATA 72
// By offsetof() with glibc 2.36's struct pthread; as it has been for 20 years. Where it is
// otherwise (musl), the thread that is found does not say that it is this one.
#define PTHREAD_FIRST_VALUES 784
#define PTHREAD_VALUES 1296
#define VALUES_OF_BLOCK 32

struct py_key {
	u32 is_set;
	u32 key;
};

struct py_thread {
	u64 cframe;
	u64 rest[11];
	u64 thread_id; // what pthread_self() gives: the thread's fs base
};

struct py_cframe {
	u64 use_tracing;
	u64 current_frame;
	u64 previous;
};

struct py_frame {
	u64 code;
	u64 object;
	u64 previous;
	u64 prev_instr;
	u32 stacktop;
	u8 is_entry;
	u8 owner;
	u16 padding;
};

struct py_code {
	u64 size;
	u64 consts;
	u64 names;
	u64 exceptions;
	u32 flags_and_counts[6];
	u32 first_line;
	u32 variables[5];
	u64 variable_names;
	u64 variable_kinds;
	u64 file;
	u64 name;
	u64 qualified_name;
	u64 lines;
};

struct py_text {
	u64 length;
	u64 hash;
	u32 state;
};

// A Python function among the return addresses: no address begins like this.
#define PYTHON_FRAME (1ULL << 62)

u32 last_python_code;

// Python functions that user space was told of. Code objects are freed, and others take their
// place: hence the key is mixed of all that tells one from another without reading its texts.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 15);
	__type(key, u64);
	__type(value, u32);
} python_codes SEC(".maps");

// Where a walk is in the interpreter's frames.
struct python_walk {
	u64 cframe; // of the next call of the loop on the way up
	u64 frame;  // the next Python function of the call that was left last
	u64 inside; // the functions of that call are being told
	struct python_definition definition;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct python_walk);
} python_walks SEC(".maps");

static __always_inline struct python_walk *python_walk_of(u32 scratch)
{
	return bpf_map_lookup_elem(&python_walks, &scratch);
}

// Finds the interpreter's state of the current thread. Returns whether it has one.
__noinline u32 python_begin(u32 scratch, u64 ranges)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 index = (ranges & FIRST_RANGE) + (ranges >> 24 & 0xffff);
	struct code_range *interpreter = bpf_map_lookup_elem(&code_ranges, &index);
	struct python_walk *walk = python_walk_of(scratch);
	u64 self = task->thread.fsbase, at = self + PTHREAD_FIRST_VALUES, state;
	struct py_thread thread;
	struct py_key key;

	if (!interpreter || !walk || !self)
		return 0;
	if (bpf_probe_read_user(&key, sizeof(key), (void *)(interpreter->start + PY_RUNTIME_KEY)) ||
	    !key.is_set)
		return 0;
	// A value lies behind the number of its key's use.
	if (key.key >= VALUES_OF_BLOCK &&
	    bpf_probe_read_user(&at, sizeof(at),
				(void *)(self + PTHREAD_VALUES + key.key / VALUES_OF_BLOCK * 8)))
		return 0;
	at += key.key % VALUES_OF_BLOCK * 16 + 8;
	if (bpf_probe_read_user(&state, sizeof(state), (void *)at) || !state)
		return 0;
	if (bpf_probe_read_user(&thread, sizeof(thread), (void *)(state + PY_THREAD_CFRAME)) ||
	    thread.thread_id != self)
		return 0;
	walk->cframe = thread.cframe;
	walk->frame = 0;
	walk->inside = 0;
	return 1;
}

// Whether Python functions come before the next C function.
static __always_inline bool python_inside(u32 scratch)
{
	struct python_walk *walk = python_walk_of(scratch);

	return walk && *(volatile u64 *)&walk->inside;
}

// Looks whether the C function that was left, which had the stack from `from` to `to`, was the
// interpreter's loop.
__noinline u32 python_leave(u32 scratch, u64 from, u64 to)
{
	struct python_walk *walk = python_walk_of(scratch);
	struct py_cframe cframe;

	if (!walk || walk->cframe < from || walk->cframe >= to)
		return 0;
	if (bpf_probe_read_user(&cframe, sizeof(cframe), (void *)walk->cframe)) {
		walk->cframe = 0;
		return 0;
	}
	walk->cframe = cframe.previous;
	walk->frame = cframe.current_frame;
	walk->inside = 1;
	return 1;
}

// The text at `object`, whatever its characters' size; of a long one the end.
static __always_inline void read_python_text(u8 *bytes, u32 most, u32 *length, u32 *state,
					     u64 object)
{
	u64 data = object + PY_TEXT_ASCII_DATA, size;
	struct py_text text;
	u32 kind;

	*length = 0;
	*state = 0;
	if (bpf_probe_read_user(&text, sizeof(text), (void *)(object + PY_TEXT_LENGTH)))
		return;
	kind = text.state >> PYTHON_TEXT_KIND_SHIFT & 7;
	if (!(text.state & PYTHON_TEXT_COMPACT) || text.length > 1 << 20)
		return;
	if (!(text.state & PYTHON_TEXT_ASCII))
		data = object + PY_TEXT_COMPACT_DATA;
	size = text.length * kind;
	if (size > most) {
		data += size - most;
		size = most;
	}
	if (bpf_probe_read_user(bytes, size, (void *)data))
		return;
	*length = text.length;
	*state = text.state;
}

// The frame that stands for the Python function of the code object at `address`.
__noinline u64 python_code(u32 scratch, u64 address, u64 ts, u32 pid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct python_walk *walk = python_walk_of(scratch);
	struct python_definition *definition;
	struct py_code code;
	u32 *known, id;
	u64 key;

	if (!walk || bpf_probe_read_user(&code, sizeof(code), (void *)(address + PY_CODE_SIZE)))
		return PYTHON_FRAME;
	// A program that is executed anew may have the same addresses.
	key = mix(mix(first_hash(pid), task->self_exec_id), address);
	key = mix(mix(mix(key, code.size), code.consts), code.names);
	key = mix(mix(mix(key, code.file), code.qualified_name), code.lines);
	key = mix(key, code.first_line);
	known = bpf_map_lookup_elem(&python_codes, &key);
	if (known)
		return PYTHON_FRAME | *known;
	definition = &walk->definition;
	id = __sync_fetch_and_add(&last_python_code, 1) + 1;
	definition->ts = ts;
	definition->kind = DEFINITION_PYTHON;
	definition->code = id;
	definition->pid = pid;
	definition->line = code.first_line;
	read_python_text(definition->name, sizeof(definition->name), &definition->name_length,
			 &definition->name_state, code.qualified_name);
	read_python_text(definition->file, sizeof(definition->file), &definition->file_length,
			 &definition->file_state, code.file);
	if (bpf_ringbuf_output(&definitions, definition, sizeof(*definition), BPF_RB_NO_WAKEUP)) {
		// Not remembered: it is sent again when it is met again.
		this_cpu(bpf_get_smp_processor_id())->lost_definitions++;
		return PYTHON_FRAME;
	}
	bpf_map_update_elem(&python_codes, &key, &id, BPF_ANY);
	return PYTHON_FRAME | id;
}

// The next Python function of the call of the loop that was left; 0 if there is none, or no more.
__noinline u64 python_next(u32 scratch, u64 ts, u32 pid)
{
	struct python_walk *walk = python_walk_of(scratch);
	struct py_frame frame;

	if (!walk)
		return 0;
	if (!walk->frame ||
	    bpf_probe_read_user(&frame, sizeof(frame), (void *)(walk->frame + PY_FRAME_CODE))) {
		walk->inside = 0;
		return 0;
	}
	walk->frame = frame.is_entry ? 0 : frame.previous;
	return python_code(scratch, frame.code, ts, pid);
}

#endif
