// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Python's own functions in the stacks of CPython 3.11 to 3.13.
//
// One C function, the interpreter's loop, runs all Python functions: one call of it runs a Python
// function and, without a C call, those that it calls in turn. Each call of the loop keeps
// something on its own piece of the stack that the interpreter's state points to: its `_PyCFrame`,
// or (3.13) the entry frame that ends its chain of functions. So a walk that goes up past that
// address, the call's mark, has just left the loop, and nothing need be known of where the loop's
// code lies, which is in several pieces and without names. In its place the walk tells the Python
// functions that it runs.
//
//   _PyRuntime ─ key ─┐
//   thread's storage ─┴→ PyThreadState ─→ mark ─→ function ─→ function      a call of the loop
//                                          ↓                     ↓
//                                         mark ─→ function ─→ function      the one around it
//
// A thread is looked at while it does not run, or by itself, so nothing changes meanwhile. Between
// the stores with which the loop begins, the chain is not whole yet: a sample that hits just there
// may tell what ran at that place before.
#pragma once

#include "proof.h"
#include "stack.h"

#ifdef HAS_UNWIND_RULES

// Where a version of CPython keeps what: offsetof() with its own headers and Py_BUILD_CORE
// (pycore_runtime.h, pycore_frame.h, cpython/{pystate,code,unicodeobject}.h). CPython does not
// change these within a minor version; 3.11.2 and 3.11.7 were compared. In words of 8 bytes, except
// where said otherwise.
struct python_layout {
	u16 key;	 // bytes, in _PyRuntime: autoTSSkey
	u16 thread_head; // in PyThreadState: its cframe, or its frame where there are no cframes
	u16 thread_id;
	u16 has_cframes;
	u16 cframe_frame;
	u16 cframe_previous;
	u16 frame_code; // in _PyInterpreterFrame
	u16 frame_previous;
	u16 frame_entry;  // byte: whether the call of the loop ends with this one,
	u16 entry_value;  // which is so if it has this value
	u16 entry_is_own; // the entry is no function
	u16 late_line;	  // a code object's first line is a number later than elsewhere
	u16 ascii_data;	  // bytes, in a text
	u16 compact_data;
};

#define PYTHON_OLDEST 11
// A power of two.
#define PYTHON_VERSIONS 4

const struct python_layout python_layouts[PYTHON_VERSIONS] = {
	{592, 7, 19, 1, 1, 2, 4, 6, 68, 1, 0, 1, 48, 72},
	{1544, 7, 17, 1, 0, 1, 0, 1, 70, 3, 1, 0, 40, 56},
	{2160, 9, 19, 0, 0, 0, 0, 1, 70, 3, 1, 0, 40, 56},
};

// The same in all of them.
#define PY_THREAD_WORDS 20
#define PY_CFRAME_WORDS 2
#define PY_FRAME_WORDS 9
#define PY_CODE_SIZE 16
#define PY_TEXT_LENGTH 16
// A function that the interpreter made up for itself.
#define PY_CODE_OWN 0x2000000

// By offsetof() with glibc 2.36's struct pthread; as it has been for 20 years. Where it is
// otherwise (musl), the thread that is found does not say that it is this one.
#define PTHREAD_FIRST_VALUES 784
#define PTHREAD_VALUES 1296
#define VALUES_OF_BLOCK 32

struct py_key {
	u32 is_set;
	u32 key;
};

// From PY_CODE_SIZE on.
struct py_code {
	u64 size;
	u64 consts;
	u64 names;
	u64 exceptions;
	u32 flags;
	u32 counts[11];
	u64 variable_names;
	u64 variable_kinds;
	u64 file;
	u64 name;
	u64 qualified_name;
	u64 lines;
};

// From PY_TEXT_LENGTH on.
struct py_text {
	u64 length;
	u64 hash;
	u32 state;
};

// A Python function among the return addresses: no address begins like this.
#define PYTHON_FRAME (1ULL << 62)

// Counted by user space too, which gives numbers to Java's methods.
u32 last_function;

// Python functions that user space was told of. Code objects are freed, and others take their
// place: hence the key is mixed of all that tells one from another without reading its texts.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 15);
	__type(key, u64);
	__type(value, u32);
} python_codes SEC(".maps");

#define PYTHON_WORDS 256

// The Python functions of a thread, and how far a walk has come in them.
struct python_walk {
	// For each call of the loop, the innermost first: its mark, then its functions; 0 ends it.
	u64 words[PYTHON_WORDS];
	u64 count;
	u64 call; // index of the last call's mark
	u64 frame;
	u64 cframe;
	u64 next;   // index of what the walk comes to
	u64 inside; // it is among the functions of a call that was left
	u64 piece[PY_THREAD_WORDS];
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

static __always_inline const struct python_layout *python_layout_of(u32 version)
{
	// User space tells of no other version.
	return &python_layouts[(version - PYTHON_OLDEST) & (PYTHON_VERSIONS - 1)];
}

// The text at `object`, whatever its characters' size; of a long one the end.
static __always_inline void read_python_text(const struct python_layout *layout, u8 *bytes,
					     u32 most, u32 *length, u32 *state, u64 object)
{
	u64 data = object + layout->compact_data, size;
	struct py_text text;
	u32 kind;

	*length = 0;
	*state = 0;
	if (bpf_probe_read_user(&text, sizeof(text), (void *)(object + PY_TEXT_LENGTH)))
		return;
	kind = text.state >> PYTHON_TEXT_KIND_SHIFT & 7;
	if (!(text.state & PYTHON_TEXT_COMPACT) || text.length > 1 << 20)
		return;
	if (text.state & PYTHON_TEXT_ASCII)
		data = object + layout->ascii_data;
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

// What stands for the Python function of the code object at `address`; 0 if it is nobody's.
__noinline u64 python_code(u32 scratch, u32 version, u64 address, u64 ts, u32 pid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct python_layout *layout = python_layout_of(version);
	struct python_walk *walk = python_walk_of(scratch);
	struct python_definition *definition;
	u32 *known, id, line;
	struct py_code code;
	u64 key;

	if (!walk || bpf_probe_read_user(&code, sizeof(code), (void *)(address + PY_CODE_SIZE)))
		return PYTHON_FRAME;
	if (code.flags & PY_CODE_OWN)
		return 0;
	line = layout->late_line ? code.counts[5] : code.counts[4];
	// A program that is executed anew may have the same addresses.
	key = mix(mix(first_hash(pid), task->self_exec_id), address);
	key = mix(mix(mix(key, code.size), code.consts), code.names);
	key = mix(mix(mix(key, code.file), code.qualified_name), code.lines);
	key = mix(key, line);
	known = bpf_map_lookup_elem(&python_codes, &key);
	if (known)
		return PYTHON_FRAME | *known;
	definition = &walk->definition;
	id = __sync_fetch_and_add(&last_function, 1) + 1;
	definition->ts = ts;
	definition->kind = DEFINITION_PYTHON;
	definition->code = id;
	definition->pid = pid;
	definition->line = line;
	read_python_text(layout, definition->name, sizeof(definition->name),
			 &definition->name_length, &definition->name_state, code.qualified_name);
	read_python_text(layout, definition->file, sizeof(definition->file),
			 &definition->file_length, &definition->file_state, code.file);
	if (bpf_ringbuf_output(&definitions, definition, sizeof(*definition), BPF_RB_NO_WAKEUP)) {
		// Not remembered: it is sent again when it is met again.
		this_cpu(bpf_get_smp_processor_id())->lost_definitions++;
		return PYTHON_FRAME;
	}
	bpf_map_update_elem(&python_codes, &key, &id, BPF_ANY);
	return PYTHON_FRAME | id;
}

// Adds the next frame of the chain. Returns whether to go on.
__noinline u32 python_collect(u32 scratch, u32 version, u64 ts, u32 pid)
{
	const struct python_layout *layout = python_layout_of(version);
	struct python_walk *walk = python_walk_of(scratch);
	u64 at, count, word;
	bool is_entry;

	if (!walk)
		return 0;
	at = walk->frame;
	count = walk->count;
	if (!at || count >= MAX_FRAMES ||
	    bpf_probe_read_user(walk->piece, PY_FRAME_WORDS * 8, (void *)at))
		return 0;
	is_entry = ((u8 *)walk->piece)[layout->frame_entry & 127] == layout->entry_value;
	walk->frame = walk->piece[layout->frame_previous & 15];
	if (!is_entry || !layout->entry_is_own) {
		word = python_code(scratch, version, walk->piece[layout->frame_code & 15], ts, pid);
		if (word)
			walk->words[count++ & (PYTHON_WORDS - 1)] = word;
	}
	if (is_entry) {
		if (!layout->has_cframes)
			walk->words[walk->call & (PYTHON_WORDS - 1)] = at;
		else if (bpf_probe_read_user(&walk->cframe, 8,
					     (void *)(walk->cframe + layout->cframe_previous * 8)))
			walk->cframe = 0;
		walk->call = count;
		walk->words[count++ & (PYTHON_WORDS - 1)] = walk->cframe;
	}
	walk->count = count;
	return 1;
}

// The interpreter's state of the thread whose fs base is `self`; 0 if there is none.
static __always_inline u64 python_state(const struct python_layout *layout, u64 runtime, u64 self)
{
	u64 at = self + PTHREAD_FIRST_VALUES, state;
	struct py_key key;

	// Memory that was not touched yet cannot be read, which is as good as not set.
	if (bpf_probe_read_user(&key, sizeof(key), (void *)(runtime + layout->key)) || !key.is_set)
		return 0;
	if (key.key >= VALUES_OF_BLOCK &&
	    bpf_probe_read_user(&at, sizeof(at),
				(void *)(self + PTHREAD_VALUES + key.key / VALUES_OF_BLOCK * 8)))
		return 0;
	// A value lies behind the number of its key's use.
	at += key.key % VALUES_OF_BLOCK * 16 + 8;
	return bpf_probe_read_user(&state, sizeof(state), (void *)at) ? 0 : state;
}

// Reads the Python functions that the current thread is in; `runtime` is where the interpreter's
// state lies. Returns 0 if it has nothing to do with Python.
__noinline u32 python_begin(u32 scratch, u64 runtime, u32 version, u64 ts, u32 pid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct python_walk *walk = python_walk_of(scratch);
	const struct python_layout *layout = python_layout_of(version);
	u64 state;

	if (!walk)
		return 0;
	state = python_state(layout, runtime, task->thread.fsbase);
	if (!state)
		return 0;
	walk->words[0] = 0;
	walk->next = 0;
	walk->inside = 0;
	if (bpf_probe_read_user(walk->piece, PY_THREAD_WORDS * 8, (void *)state) ||
	    walk->piece[layout->thread_id & 31] != task->thread.fsbase)
		return 1;
	walk->frame = walk->piece[layout->thread_head & 15];
	walk->cframe = 0;
	if (layout->has_cframes) {
		walk->cframe = walk->frame;
		if (bpf_probe_read_user(walk->piece, PY_CFRAME_WORDS * 8, (void *)walk->cframe))
			return 1;
		walk->frame = walk->piece[layout->cframe_frame & 1];
	}
	walk->words[0] = walk->cframe;
	walk->call = 0;
	walk->count = 1;
	for (u32 i = 0; i < PYTHON_WORDS; i++) {
		if (!python_collect(scratch, version, ts, pid))
			break;
	}
	walk->words[walk->count & (PYTHON_WORDS - 1)] = 0;
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
	u64 mark;

	if (!walk)
		return 0;
	mark = walk->words[walk->next & (PYTHON_WORDS - 1)];
	if (mark < from || mark >= to)
		return 0;
	walk->next++;
	walk->inside = 1;
	return 1;
}

// The next Python function of the call of the loop that was left; 0 if there is none, or no more.
__noinline u64 python_next(u32 scratch)
{
	struct python_walk *walk = python_walk_of(scratch);
	u64 word;

	if (!walk)
		return 0;
	word = walk->words[walk->next & (PYTHON_WORDS - 1)];
	if (!walk->inside || !(word & PYTHON_FRAME)) {
		walk->inside = 0;
		return 0;
	}
	walk->next++;
	return word;
}

#endif
