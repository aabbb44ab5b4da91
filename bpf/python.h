// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Python's own functions in the stacks of CPython 3.11 to 3.13.
//
// One C function, the interpreter's loop, runs all Python functions: one call of it runs a Python
// function and, without a C call, those that it calls in turn. Each call of the loop keeps
// something on its own piece of the stack that the interpreter's state points to: its `_PyCFrame`,
// or (3.13) the entry frame that ends its chain of functions. So a walk that goes up past that
// address, the call's mark (chain.h), has just left the loop, and nothing need be known of where
// the loop's code lies, which is in several pieces and without names.
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

#include "chain.h"

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
	u16 interpreters; // bytes, in _PyRuntime; 0 where a thread's storage has the state that is
			  // at work
};

#define PYTHON_OLDEST 11
// A power of two.
#define PYTHON_VERSIONS 4

const struct python_layout python_layouts[PYTHON_VERSIONS] = {
	{592, 7, 19, 1, 1, 2, 4, 6, 68, 1, 0, 1, 48, 72, 40},
	{1544, 7, 17, 1, 0, 1, 0, 1, 70, 3, 1, 0, 40, 56, 0},
	{2160, 9, 19, 0, 0, 0, 0, 1, 70, 3, 1, 0, 40, 56, 0},
};

// The same in all of them.
#define PY_THREAD_WORDS CHAIN_PIECE
#define PY_CFRAME_WORDS 2
#define PY_FRAME_WORDS 9
#define PY_INTERPRETER_WORDS 3
// In an interpreter: the one made before it, and the latest of its threads' states.
#define PY_INTERPRETER_NEXT 0
#define PY_INTERPRETER_STATES 2
// In a state: the one made before it.
#define PY_STATE_NEXT 1
// So many are looked at.
#define PY_INTERPRETERS 8
#define PY_STATES 8
#define PY_CODE_SIZE 16
#define PY_TEXT_LENGTH 16
// A function that the interpreter made up for itself.
#define PY_CODE_OWN 0x2000000

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
	const struct python_layout *layout = python_layout_of(version);
	struct chain *chain = chain_of(scratch);
	struct function_definition *definition;
	struct py_code code;
	u64 key, known;
	u32 line;

	if (!chain || bpf_probe_read_user(&code, sizeof(code), (void *)(address + PY_CODE_SIZE)))
		return FUNCTION;
	if (code.flags & PY_CODE_OWN)
		return 0;
	line = layout->late_line ? code.counts[5] : code.counts[4];
	key = function_key(pid, address);
	key = mix(mix(mix(key, code.size), code.consts), code.names);
	key = mix(mix(mix(key, code.file), code.qualified_name), code.lines);
	key = mix(key, line);
	known = known_function(key);
	if (known)
		return known;
	definition = &chain->definition;
	definition->kind = DEFINITION_PYTHON;
	definition->line = line;
	definition->scope_length = 0;
	read_python_text(layout, definition->name, sizeof(definition->name),
			 &definition->name_length, &definition->name_state, code.qualified_name);
	read_python_text(layout, definition->file, sizeof(definition->file),
			 &definition->file_length, &definition->file_state, code.file);
	return define_function(chain, key, ts, pid);
}

// Adds the next frame of the chain. Returns whether to go on.
__noinline u32 python_collect(u32 scratch, u32 version, u64 ts, u32 pid)
{
	const struct python_layout *layout = python_layout_of(version);
	struct chain *chain = chain_of(scratch);
	u64 at, count, word;
	bool is_entry;

	if (!chain)
		return 0;
	at = chain->frame;
	count = chain->count;
	if (!at || count >= MAX_FRAMES ||
	    bpf_probe_read_user(chain->piece, PY_FRAME_WORDS * 8, (void *)at))
		return 0;
	is_entry = ((u8 *)chain->piece)[layout->frame_entry & 127] == layout->entry_value;
	chain->frame = chain->piece[layout->frame_previous & 15];
	if (!is_entry || !layout->entry_is_own) {
		word = python_code(scratch, version, chain->piece[layout->frame_code & 15], ts,
				   pid);
		if (word)
			chain->words[count++ & (CHAIN_WORDS - 1)] = word;
	}
	if (is_entry) {
		if (!layout->has_cframes)
			chain->words[chain->call & (CHAIN_WORDS - 1)] = at;
		else if (bpf_probe_read_user(&chain->outer, 8,
					     (void *)(chain->outer + layout->cframe_previous * 8)))
			chain->outer = 0;
		chain->call = count;
		chain->words[count++ & (CHAIN_WORDS - 1)] = chain->outer;
	}
	chain->count = count;
	return 1;
}

// The interpreter's state of the thread whose fs base is `self`; 0 if there is none.
static __always_inline u64 python_state(const struct python_layout *layout, u64 runtime, u64 self)
{
	struct py_key key;

	// Memory that was not touched yet cannot be read, which is as good as not set.
	if (bpf_probe_read_user(&key, sizeof(key), (void *)(runtime + layout->key)) || !key.is_set)
		return 0;
	return thread_value(self, key.key);
}

// Of the thread's states in one interpreter of its process, from `state` on, looks for one that is
// further in on the stack than what the chain has found; `first` is known already.
__noinline u32 python_states(u32 scratch, u32 version, u64 state, u64 self, u64 first)
{
	const struct python_layout *layout = python_layout_of(version);
	struct chain *chain = chain_of(scratch);
	u64 cframe, frame;

	if (!chain)
		return 0;
	for (u32 i = 0; i < PY_STATES && state; i++) {
		u64 at = state;

		if (bpf_probe_read_user(chain->piece, PY_THREAD_WORDS * 8, (void *)at))
			break;
		state = chain->piece[PY_STATE_NEXT];
		cframe = chain->piece[layout->thread_head & 15];
		if (at == first || chain->piece[layout->thread_id & 31] != self ||
		    bpf_probe_read_user(&frame, 8, (void *)(cframe + layout->cframe_frame * 8)))
			continue;
		if (frame && cframe < chain->innermost) {
			chain->innermost = cframe;
			chain->entered = at;
		}
	}
	return 0;
}

// In 3.11 a thread's storage has only its state of the interpreter that it entered first. A program
// that gives each of its scripts an interpreter has the thread enter others, too. This is the
// thread's state of the other one that runs functions, of several the innermost on the stack; 0 if
// there is none.
__noinline u64 python_entered(u32 scratch, u32 version, u64 runtime, u64 self, u64 first)
{
	const struct python_layout *layout = python_layout_of(version);
	struct chain *chain = chain_of(scratch);
	u64 words[PY_INTERPRETER_WORDS], interpreter;

	if (!chain || !layout->interpreters ||
	    bpf_probe_read_user(&interpreter, 8, (void *)(runtime + layout->interpreters)))
		return 0;
	chain->innermost = ~0ULL;
	chain->entered = 0;
	for (u32 i = 0; i < PY_INTERPRETERS && interpreter; i++) {
		if (bpf_probe_read_user(words, sizeof(words), (void *)interpreter))
			break;
		interpreter = words[PY_INTERPRETER_NEXT];
		// There is only one.
		if (!i && !interpreter)
			return 0;
		python_states(scratch, version, words[PY_INTERPRETER_STATES], self, first);
	}
	return chain->entered;
}

// Adds the functions that a state of the current thread leads to, in the place of the last mark.
__noinline u32 python_add(u32 scratch, u32 version, u64 state, u64 ts, u32 pid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct python_layout *layout = python_layout_of(version);
	struct chain *chain = chain_of(scratch);

	if (!chain || bpf_probe_read_user(chain->piece, PY_THREAD_WORDS * 8, (void *)state) ||
	    chain->piece[layout->thread_id & 31] != task->thread.fsbase)
		return 0;
	chain->frame = chain->piece[layout->thread_head & 15];
	chain->outer = 0;
	if (layout->has_cframes) {
		chain->outer = chain->frame;
		if (bpf_probe_read_user(chain->piece, PY_CFRAME_WORDS * 8, (void *)chain->outer))
			return 0;
		chain->frame = chain->piece[layout->cframe_frame & 1];
	}
	chain->words[chain->call & (CHAIN_WORDS - 1)] = chain->outer;
	for (u32 i = 0; i < CHAIN_WORDS; i++) {
		if (!python_collect(scratch, version, ts, pid))
			break;
	}
	return 0;
}

// Reads the Python functions that the current thread is in; `runtime` is where the interpreter's
// state lies. Returns 0 if it has nothing to do with Python.
__noinline u32 python_begin(u32 scratch, u64 runtime, u32 version, u64 ts, u32 pid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct chain *chain = chain_of(scratch);
	const struct python_layout *layout = python_layout_of(version);
	u64 state, entered;

	if (!chain)
		return 0;
	state = python_state(layout, runtime, task->thread.fsbase);
	if (!state)
		return 0;
	chain_begin(chain, 0);
	entered = python_entered(scratch, version, runtime, task->thread.fsbase, state);
	if (entered)
		python_add(scratch, version, entered, ts, pid);
	python_add(scratch, version, state, ts, pid);
	chain->words[chain->count & (CHAIN_WORDS - 1)] = 0;
	return 1;
}

#endif
