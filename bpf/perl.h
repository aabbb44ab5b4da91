// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Perl's subroutines in the stacks of Perl 5.36 with threads, as Debian builds it.
//
// Perl_runops_standard() is the interpreter's loop. What runs is a stack of contexts, the innermost
// last: subroutines, evals, loops and blocks. Code that C calls amid another operation (a sort's
// comparison, a tied variable, an overloaded operator) may have a stack of its own, which leads to
// the one before. A subroutine without an operation to return to is the outermost of a call of the
// loop.
//
//   thread's storage ─→ interpreter ─→ stack: context, context (no return) | context, ...
//                                        ↓        a call of the loop           the one around it
//                                      stack: context, ...
//
// The last operation of a sort's block has no operation to return to either, but no call of the
// loop of its own. One more call of the loop begins at an eval, if the loop that it is in was begun
// by code that catches no exception (docatch() in pp_ctl.c): at the outermost eval of that loop.
#pragma once

#include "chain.h"

#ifdef HAS_UNWIND_RULES

// Where Perl 5.36 keeps what: offsetof() with its own headers (intrpvar.h, cop.h, cv.h, hv.h,
// gv.h), which have the same struct interpreter of 3,768 bytes as the library says.
#define PERL_STACK_INFO 224 // struct interpreter: Icurstackinfo

// PERL_SI, from si_cxstack on.
#define PERL_CONTEXTS 8

struct perl_stack {
	u64 contexts;
	u64 previous;
	u64 next;
	s32 last;
	s32 room;
};

// PERL_CONTEXT.
struct perl_context {
	u8 kind;
	u8 rest[15];
	u64 caller;
	u64 places[3];
	u64 returns_to;
	u64 more[2];
	u64 subroutine;
	u64 end[3];
};

#define PERL_KIND 15
#define PERL_NOTHING 0
#define PERL_SUBROUTINE 9
#define PERL_EVAL 11
// Of an eval: a block, not a text.
#define PERL_TRY 64
// Of a subroutine: C calls it again and again without entering it anew.
#define PERL_REPEATED 16

// CV, GV and HV: sv_any.
// XPVCV, from xcv_stash on.
#define PERL_CODE 32

struct perl_code {
	u64 package;
	u64 start;
	u64 root;
	u64 name;
	u64 file;
	u64 pad;
	u64 outside;
	u32 outside_number;
	u32 flags;
};

#define PERL_CODE_NAMED 0x8000

// XPVGV, from xivu_namehek on.
#define PERL_GLOB 32

struct perl_glob {
	u64 name;
	u64 package;
};

// HV: flags, which tell whether its body has the name; xpvhv_with_aux: xhv_aux.
#define PERL_FLAGS 12
#define PERL_HAS_MORE 0x2000000
#define PERL_MORE 32

struct perl_more {
	u64 name;
	u64 references;
	u64 entry;
	u32 root;
	s32 names;
};

// HEK: hek_len, hek_key.
#define PERL_NAME_LENGTH 4
#define PERL_NAME 8

// OP, from op_type on, which is of 9 bits, and COP.
#define PERL_OPERATION 32
#define PERL_OPERATION_KIND 511
#define PERL_STATEMENT 195
#define PERL_STATEMENT_DEBUGGED 196

struct perl_operation {
	u32 kind;
	u32 line;
};

// The name `object`. Returns how many bytes there are.
static __always_inline u32 read_perl_name(u8 *bytes, u32 most, u64 object)
{
	u32 length;

	if (!object ||
	    bpf_probe_read_user(&length, sizeof(length), (void *)(object + PERL_NAME_LENGTH)))
		return 0;
	return read_text(bytes, most, object + PERL_NAME, length);
}

// What was outermost in a call of the loop: surely, or if what comes next is no sort's block.
#define PERL_ENDED_OWN 1
#define PERL_ENDED 2

// Puts the name of the package, a hash, into the definition.
__noinline u32 perl_package(u32 scratch, u64 package)
{
	struct chain *chain = chain_of(scratch);
	struct perl_more more;
	u64 body, name;
	u32 flags;

	if (!chain)
		return 0;
	chain->definition.scope_length = 0;
	if (!package ||
	    bpf_probe_read_user(&flags, sizeof(flags), (void *)(package + PERL_FLAGS)) ||
	    !(flags & PERL_HAS_MORE) || bpf_probe_read_user(&body, sizeof(body), (void *)package) ||
	    bpf_probe_read_user(&more, sizeof(more), (void *)(body + PERL_MORE)))
		return 0;
	name = more.name;
	if (more.names && bpf_probe_read_user(&name, sizeof(name), (void *)name))
		return 0;
	chain->definition.scope_length =
		read_perl_name(chain->definition.scope, sizeof(chain->definition.scope), name);
	return 1;
}

// What stands for the subroutine at an address.
__noinline u64 perl_subroutine(u32 scratch, u64 address, u64 ts, u32 pid)
{
	struct chain *chain = chain_of(scratch);
	struct function_definition *definition;
	struct perl_operation operation;
	struct perl_glob glob = {};
	struct perl_code code;
	u64 body, key, known;
	long length;

	if (!chain || bpf_probe_read_user(&body, sizeof(body), (void *)address) ||
	    bpf_probe_read_user(&code, sizeof(code), (void *)(body + PERL_CODE)))
		return FUNCTION;
	// A closure has one for each time that it is made: by its code.
	key = mix(mix(function_key(pid, code.start), code.root), code.name);
	key = mix(mix(key, code.package), code.file);
	known = known_function(key);
	if (known)
		return known;
	definition = &chain->definition;
	definition->kind = DEFINITION_PERL;
	definition->line = 0;
	definition->name_state = 0;
	definition->file_state = 0;
	// The line of the first statement: that of the definition is not kept.
	if (!bpf_probe_read_user(&operation, sizeof(operation),
				 (void *)(code.start + PERL_OPERATION)) &&
	    ((operation.kind & PERL_OPERATION_KIND) == PERL_STATEMENT ||
	     (operation.kind & PERL_OPERATION_KIND) == PERL_STATEMENT_DEBUGGED))
		definition->line = operation.line;
	if (code.flags & PERL_CODE_NAMED) {
		glob.name = code.name;
		glob.package = code.package;
	} else if (!bpf_probe_read_user(&body, sizeof(body), (void *)code.name)) {
		bpf_probe_read_user(&glob, sizeof(glob), (void *)(body + PERL_GLOB));
	}
	perl_package(scratch, glob.package);
	definition->name_length =
		read_perl_name(definition->name, sizeof(definition->name), glob.name);
	length = bpf_probe_read_user_str(definition->file, sizeof(definition->file),
					 (void *)code.file);
	definition->file_length = length > 0 ? length - 1 : 0;
	return define_function(chain, key, ts, pid);
}

// Adds the next context of the chain. `piece` has the index of the context, the word where a call
// of the loop would begin, and whether what was outermost in the call so far is still to be
// decided. Returns whether to go on.
__noinline u32 perl_collect(u32 scratch, u64 ts, u32 pid)
{
	struct chain *chain = chain_of(scratch);
	struct perl_context context;
	struct perl_stack stack;
	u32 kind, tries, ends, ended;
	s64 index;

	if (!chain || !chain->frame || chain->count >= MAX_FRAMES)
		return 0;
	index = chain->piece[0];
	if (index < 0) {
		if (chain->piece[2] && chain->piece[1])
			chain->words[chain->piece[1] & (CHAIN_WORDS - 1)] = LOOP_MARK;
		chain->piece[1] = 0;
		chain->piece[2] = 0;
		// On to the stack before.
		chain->frame = chain->outer;
		if (!chain->frame || bpf_probe_read_user(&stack, sizeof(stack),
							 (void *)(chain->frame + PERL_CONTEXTS)))
			return 0;
		chain->outer = stack.previous;
		chain->piece[3] = stack.contexts;
		chain->piece[0] = stack.last;
		return 1;
	}
	chain->piece[0] = index - 1;
	if (bpf_probe_read_user(&context, sizeof(context),
				(void *)(chain->piece[3] + index * sizeof(context))))
		return 0;
	kind = context.kind & PERL_KIND;
	tries = kind == PERL_EVAL && context.kind & PERL_TRY;
	ends = !context.returns_to;
	// A call of the loop has ended. Was it called by code that catches exceptions, which has an
	// eval without an operation to return to, then no eval in it began another.
	ended = chain->piece[2];
	if (ended) {
		chain->piece[2] = 0;
		if (chain->piece[1] && !(tries && ends))
			chain->words[chain->piece[1] & (CHAIN_WORDS - 1)] = LOOP_MARK;
		chain->piece[1] = 0;
		if (tries && ends)
			return 1;
	}
	if (kind == PERL_SUBROUTINE) {
		chain_add(chain, perl_subroutine(scratch, context.subroutine, ts, pid));
		if (ends) {
			chain_add(chain, LOOP_MARK);
			chain->piece[2] =
				context.kind & PERL_REPEATED ? PERL_ENDED_OWN : PERL_ENDED;
		}
	} else if (kind == PERL_EVAL && ends && !tries) {
		chain_add(chain, LOOP_MARK);
		chain->piece[1] = 0;
	} else if (kind == PERL_EVAL && !ends) {
		// The outermost one counts.
		if (chain->words[(chain->count - 1) & (CHAIN_WORDS - 1)] != NO_MARK)
			chain_add(chain, NO_MARK);
		chain->piece[1] = chain->count - 1;
	} else if (kind == PERL_NOTHING) {
		if (ended != PERL_ENDED)
			chain_add(chain, LOOP_MARK);
		chain->piece[2] = PERL_ENDED_OWN;
	}
	return 1;
}

// Reads the subroutines that the current thread is in; `key` is where the key of the threads'
// interpreters lies. Returns 0 if it has nothing to do with Perl.
__noinline u32 perl_begin(u32 scratch, u64 key_at, u64 ts, u32 pid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct chain *chain = chain_of(scratch);
	u64 interpreter, stack;
	u32 key;

	if (!chain || bpf_probe_read_user(&key, sizeof(key), (void *)key_at))
		return 0;
	interpreter = thread_value(task->thread.fsbase, key);
	if (!interpreter ||
	    bpf_probe_read_user(&stack, sizeof(stack), (void *)(interpreter + PERL_STACK_INFO)))
		return 0;
	chain_begin(chain, LOOP_MARK);
	chain->frame = stack;
	chain->outer = stack;
	chain->piece[0] = -1;
	chain->piece[1] = 0;
	chain->piece[2] = 0;
	for (u32 i = 0; i < CHAIN_WORDS; i++) {
		if (!perl_collect(scratch, ts, pid))
			break;
	}
	chain->words[chain->count & (CHAIN_WORDS - 1)] = 0;
	return 1;
}

#endif
