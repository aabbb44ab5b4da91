// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Functions of virtual machines in stacks: Java's methods while HotSpot interprets them, and
// JavaScript's functions in V8.
//
// Both machines run a function in a frame that keeps its frame pointer, and below that what tells
// the function; the return addresses are the same for many. In the place of one comes the address
// of what describes the function, which user space turns into a name
// (crates/capture/src/machine.rs).
#pragma once

#include "unwind.h"

#ifdef HAS_UNWIND_RULES

// No address begins like this.
#define DESCRIBED (1ULL << 61)

// HotSpot: the method (frame_x86.hpp of OpenJDK, interpreter_frame_method_offset; the same since
// JDK 8).
#define HOTSPOT_METHOD_BELOW 24
// V8: the context or, in a frame of the machine's own, a number; below it the function
// (frame-constants.h of V8).
#define V8_CONTEXT_BELOW 8
#define V8_FUNCTION_BELOW 16

// Pointers to objects of V8 have the lower bits of this; numbers have none of them.
#define V8_TAG_MASK 3
#define V8_TAG 1

static __always_inline u64 hotspot_method(struct cursor *at)
{
	u64 method;

	if (at->ip - at->machine_start >= at->machine_end - at->machine_start ||
	    !read_word(at, at->fp - HOTSPOT_METHOD_BELOW, &method))
		return 0;
	return method;
}

// The function's own object moves when garbage is collected, what it shares with others of the same
// text seldom does.
static __always_inline u64 v8_function(struct cursor *at)
{
	u64 function, context, shared;

	if (!has_no_rules(at) || !read_word(at, at->fp - V8_FUNCTION_BELOW, &function) ||
	    !read_word(at, at->fp - V8_CONTEXT_BELOW, &context) ||
	    (function & V8_TAG_MASK) != V8_TAG || (context & V8_TAG_MASK) != V8_TAG ||
	    bpf_probe_read_user(&shared, sizeof(shared),
				(void *)(function - V8_TAG + at->machine_start)) ||
	    (shared & V8_TAG_MASK) != V8_TAG)
		return 0;
	return shared - V8_TAG;
}

// What stands for the function of a virtual machine that a walk has come to; 0 if it is in none.
static __always_inline u64 described_function(struct cursor *at)
{
	u64 word = 0;

	if (at->machine == INTERPRETER_HOTSPOT)
		word = hotspot_method(at);
	else if (at->machine == INTERPRETER_V8)
		word = v8_function(at);
	return word && word < DESCRIBED ? DESCRIBED | word : 0;
}

#endif
