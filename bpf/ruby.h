// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Ruby's own methods and blocks in the stacks of CRuby 3.1.
//
// Two C functions, rb_vm_exec() and vm_exec_core(), which it calls, are the interpreter's loop. A
// thread, or a fiber of it, has an execution context with a stack of control frames, one for each
// method or block, of C too; the newest lies lowest. One that has VM_FRAME_FLAG_FINISH is the
// outermost of a call of the loop.
//
//   ruby_current_ec ─→ context ─→ frame, frame, frame (FINISH) | frame, frame (FINISH) | ...
//    (of the thread)                a call of the loop            the one around it
//
// A sample may hit between the frame and the loop: when a call begins, the frame is there first,
// and has not gone on from its first instruction; when it ends, the frame goes first, and that of a
// C method which called the loop is the innermost.
#pragma once

#include "chain.h"

#ifdef HAS_UNWIND_RULES

// Where CRuby 3.1 keeps what: offsetof() with rb_mjit_min_header-3.1.2.h, which Ruby compiles
// methods with and has all structs of the interpreter.

// struct tcbhead_t of glibc and musl: the thread's vector of memory blocks, one for each library,
// with two words each; at the number of the library.
#define TCB_VECTOR 8
#define VECTOR_ENTRY 16
// The library was not used by this thread yet.
#define VECTOR_UNUSED -1ULL
#define MOST_LIBRARIES 4096

// The start of rb_execution_context_t.
struct ruby_context {
	u64 stack;
	u64 stack_words;
	u64 frame;
};

// rb_control_frame_t.
struct ruby_frame {
	u64 pc;
	u64 sp;
	u64 iseq;
	u64 self;
	u64 environment; // its last word, which holds flags
	u64 rest[3];
};

#define RUBY_FRAME_FINISH 0x20
#define RUBY_FRAME_C 0x80

// From two words before the last of an environment on.
struct ruby_environment {
	u64 method;
	u64 outer; // the environment around this one, unless this is a method's; and two bits
	u64 flags;
};

#define RUBY_ENVIRONMENT_METHODS 2

// rb_iseq_t
#define RUBY_ISEQ_BODY 16
// struct rb_iseq_constant_body: iseq_encoded, location
#define RUBY_BODY_START 8
#define RUBY_BODY_LOCATION 64

struct ruby_location {
	u64 path;
	u64 method; // the label of what is around a block
	u64 label;
	u64 line;
};

// What all objects begin with.
#define RUBY_TYPE 31
#define RUBY_CLASS 2
#define RUBY_MODULE 3
#define RUBY_STRING 5
#define RUBY_ARRAY 7
#define RUBY_INTERNAL 26
#define RUBY_FROZEN (1 << 11)
// A string or an array that does not lie in the object itself.
#define RUBY_STRING_APART (1 << 13)
#define RUBY_STRING_LENGTH(flags) ((flags) >> 14 & 31)
#define RUBY_ARRAY_WITHIN (1 << 13)
#define RUBY_SINGLETON (1 << 12)
#define RUBY_INTERNAL_KIND(flags) ((flags) >> 12 & 15)
#define RUBY_METHOD_ENTRY 6
#define RUBY_VARIABLES_OF_METHOD 2

// RString and RArray.
struct ruby_object {
	u64 flags;
	u64 class;
	u64 words[3];
};

// RClass: ptr; rb_classext_t: iv_tbl; st_table: entries_start, entries_bound, entries.
#define RUBY_CLASS_MORE 24
#define RUBY_MORE_VARIABLES 8
#define RUBY_TABLE_PLACE 32

struct ruby_table {
	u64 start;
	u64 end;
	u64 entries;
};

struct ruby_entry {
	u64 hash;
	u64 key;
	u64 value;
};

// The least that a table has room for.
#define RUBY_ENTRIES 4

// The text of the string `object`. Returns how many bytes there are.
static __always_inline u32 read_ruby_text(u8 *bytes, u32 most, u64 object)
{
	struct ruby_object string;
	u64 data, size;

	if (bpf_probe_read_user(&string, sizeof(string), (void *)object) ||
	    (string.flags & RUBY_TYPE) != RUBY_STRING)
		return 0;
	size = string.words[0];
	data = string.words[1];
	if (!(string.flags & RUBY_STRING_APART)) {
		size = RUBY_STRING_LENGTH(string.flags);
		data = object + __builtin_offsetof(struct ruby_object, words);
	}
	return read_text(bytes, most, data, size);
}

// A file is a string, or an array of the path as it was given and the absolute one.
static __always_inline u32 read_ruby_path(u8 *bytes, u32 most, u64 object)
{
	struct ruby_object array;
	u32 length;

	if (bpf_probe_read_user(&array, sizeof(array), (void *)object) ||
	    (array.flags & RUBY_TYPE) != RUBY_ARRAY || !(array.flags & RUBY_ARRAY_WITHIN))
		return read_ruby_text(bytes, most, object);
	length = read_ruby_text(bytes, most, array.words[1]);
	return length ?: read_ruby_text(bytes, most, array.words[0]);
}

static __always_inline u64 ruby_flags(u64 object)
{
	u64 flags;

	// Numbers, symbols and the like are no pointers.
	if (!object || object & 7 || bpf_probe_read_user(&flags, sizeof(flags), (void *)object))
		return 0;
	return flags;
}

// The class of the method that the environment belongs to; 0 if it is none's.
__noinline u64 ruby_owner(u64 environment)
{
	struct ruby_environment there;
	u64 entry[5], at = environment;

	for (u32 depth = 0; depth < 16; depth++) {
		if (bpf_probe_read_user(&there, sizeof(there), (void *)(at - 16)))
			return 0;
		if (there.flags & RUBY_ENVIRONMENT_METHODS)
			break;
		at = there.outer & ~3ULL;
	}
	if (!(there.flags & RUBY_ENVIRONMENT_METHODS))
		return 0;
	at = there.method;
	for (u32 depth = 0; depth < 2; depth++) {
		if (bpf_probe_read_user(entry, sizeof(entry), (void *)at) ||
		    (entry[0] & RUBY_TYPE) != RUBY_INTERNAL)
			return 0;
		if (RUBY_INTERNAL_KIND(entry[0]) == RUBY_METHOD_ENTRY)
			return entry[4];
		if (RUBY_INTERNAL_KIND(entry[0]) != RUBY_VARIABLES_OF_METHOD)
			return 0;
		at = entry[1];
	}
	return 0;
}

// Puts the name of the `class` into the definition: the first of its variables that is a frozen
// text. A singleton class has its object there instead, which is told if it is a class.
__noinline u32 ruby_scope(u32 scratch, u64 class)
{
	struct chain *chain = chain_of(scratch);
	struct function_definition *definition;
	struct ruby_entry *entries;
	struct ruby_table table;
	u64 at, flags;

	if (!chain)
		return 0;
	definition = &chain->definition;
	definition->scope_length = 0;
	definition->name_state = 0;
	for (u32 depth = 0; depth < 2; depth++) {
		flags = ruby_flags(class);
		if ((flags & RUBY_TYPE) != RUBY_CLASS && (flags & RUBY_TYPE) != RUBY_MODULE)
			return 0;
		entries = (struct ruby_entry *)chain->piece;
		if (bpf_probe_read_user(&at, sizeof(at), (void *)(class + RUBY_CLASS_MORE)) ||
		    bpf_probe_read_user(&at, sizeof(at), (void *)(at + RUBY_MORE_VARIABLES)) ||
		    bpf_probe_read_user(&table, sizeof(table), (void *)(at + RUBY_TABLE_PLACE)) ||
		    table.start >= table.end ||
		    bpf_probe_read_user(entries, RUBY_ENTRIES * sizeof(*entries),
					(void *)table.entries))
			return 0;
		if (!(flags & RUBY_SINGLETON))
			break;
		definition->name_state = SCOPE_IS_OBJECT;
		class = entries[0].value;
	}
	if (flags & RUBY_SINGLETON)
		return 0;
	for (u32 i = 0; i < RUBY_ENTRIES && i < table.end; i++) {
		flags = ruby_flags(entries[i].value);
		if ((flags & RUBY_TYPE) == RUBY_STRING && flags & RUBY_FROZEN) {
			definition->scope_length = read_ruby_text(
				definition->scope, sizeof(definition->scope), entries[i].value);
			return 1;
		}
	}
	return 0;
}

// What stands for the method or block of the instructions `iseq`, which runs with an `environment`.
__noinline u64 ruby_function(u32 scratch, u64 iseq, u64 environment, u64 ts, u32 pid)
{
	struct chain *chain = chain_of(scratch);
	struct function_definition *definition;
	struct ruby_location location;
	u64 body, key, known;

	if (!chain || bpf_probe_read_user(&body, sizeof(body), (void *)(iseq + RUBY_ISEQ_BODY)) ||
	    bpf_probe_read_user(&location, sizeof(location), (void *)(body + RUBY_BODY_LOCATION)))
		return FUNCTION;
	key = mix(mix(function_key(pid, iseq), body), location.path);
	key = mix(mix(key, location.label), location.line);
	known = known_function(key);
	if (known)
		return known;
	definition = &chain->definition;
	ruby_scope(scratch, ruby_owner(environment));
	definition->kind = DEFINITION_RUBY;
	// A number has a bit that says so.
	definition->line = location.line >> 1;
	definition->name_length =
		read_ruby_text(definition->name, sizeof(definition->name), location.label);
	definition->file_length =
		read_ruby_path(definition->file, sizeof(definition->file), location.path);
	definition->file_state = 0;
	return define_function(chain, key, ts, pid);
}

// Whether the frame stands at its first instruction.
static __always_inline bool ruby_begins(const struct ruby_frame *frame)
{
	u64 body, start;

	return !bpf_probe_read_user(&body, sizeof(body), (void *)(frame->iseq + RUBY_ISEQ_BODY)) &&
	       !bpf_probe_read_user(&start, sizeof(start), (void *)(body + RUBY_BODY_START)) &&
	       frame->pc == start;
}

// Adds the next frame of the chain, the innermost if it is the `first`. Returns whether to go on.
__noinline u32 ruby_collect(u32 scratch, u64 ts, u32 pid, u32 first)
{
	struct chain *chain = chain_of(scratch);
	struct ruby_frame frame;
	u64 flags;

	if (!chain || chain->frame >= chain->outer || chain->count >= MAX_FRAMES ||
	    bpf_probe_read_user(&frame, sizeof(frame), (void *)chain->frame) ||
	    bpf_probe_read_user(&flags, sizeof(flags), (void *)frame.environment))
		return 0;
	chain->frame += sizeof(frame);
	if (flags & RUBY_FRAME_C || !frame.iseq) {
		if (first)
			chain->moment = CHAIN_ENDS;
		return 1;
	}
	if (first && flags & RUBY_FRAME_FINISH && ruby_begins(&frame))
		chain->moment = CHAIN_BEGINS;
	chain_add(chain, ruby_function(scratch, frame.iseq, frame.environment, ts, pid));
	if (flags & RUBY_FRAME_FINISH)
		chain_add(chain, LOOP_MARK);
	return 1;
}

// Where the execution context of the thread is whose fs base is `self`; 0 if it has none.
static __always_inline u64 ruby_context(u64 library_at, u64 offset, u64 self)
{
	u64 library, vector, block, context;

	if (bpf_probe_read_user(&library, sizeof(library), (void *)library_at) || !library ||
	    library > MOST_LIBRARIES ||
	    bpf_probe_read_user(&vector, sizeof(vector), (void *)(self + TCB_VECTOR)) ||
	    bpf_probe_read_user(&block, sizeof(block), (void *)(vector + library * VECTOR_ENTRY)) ||
	    block == VECTOR_UNUSED ||
	    bpf_probe_read_user(&context, sizeof(context), (void *)(block + offset)))
		return 0;
	return context;
}

// So many frames are told by one read.
#define RUBY_FRAMES_AT_ONCE 16

struct ruby_frames {
	struct ruby_frame frames[RUBY_FRAMES_AT_ONCE];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ruby_frames);
} ruby_frames SEC(".maps");

// What tells the functions that the current thread is in, and where in them it is, from others; 0
// if there are none, or too many. Only for the scheduler's walks.
__noinline u64 ruby_key(u64 library_at, u64 offset)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ruby_context context;
	struct ruby_frames *space;
	u64 at, size, key;
	u32 zero = 0;

	space = bpf_map_lookup_elem(&ruby_frames, &zero);
	at = ruby_context(library_at, offset, task->thread.fsbase);
	if (!space || !at || bpf_probe_read_user(&context, sizeof(context), (void *)at))
		return 0;
	size = context.stack + context.stack_words * 8 - context.frame;
	if (!size || size > sizeof(*space) ||
	    bpf_probe_read_user(space, size, (void *)context.frame))
		return 0;
	key = at;
	for (u32 i = 0; i < RUBY_FRAMES_AT_ONCE; i++) {
		struct ruby_frame *frame = &space->frames[i];

		if (i * sizeof(*frame) >= size)
			break;
		key = mix(mix(mix(key, frame->pc), frame->iseq), frame->environment);
	}
	return key;
}

// Reads the functions that the current thread is in. Returns 0 if it has nothing to do with Ruby.
__noinline u32 ruby_begin(u32 scratch, u64 library_at, u64 offset, u64 ts, u32 pid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct chain *chain = chain_of(scratch);
	struct ruby_context context;
	u64 at;

	if (!chain)
		return 0;
	at = ruby_context(library_at, offset, task->thread.fsbase);
	if (!at)
		return 0;
	chain_begin(chain, LOOP_MARK);
	if (bpf_probe_read_user(&context, sizeof(context), (void *)at))
		return 1;
	chain->frame = context.frame;
	chain->outer = context.stack + context.stack_words * 8;
	for (u32 i = 0; i < CHAIN_WORDS; i++) {
		if (!ruby_collect(scratch, ts, pid, i == 0))
			break;
	}
	chain->words[chain->count & (CHAIN_WORDS - 1)] = 0;
	return 1;
}

#endif
