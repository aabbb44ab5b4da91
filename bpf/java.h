// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Java's methods in the stacks of HotSpot, while they are interpreted.
//
// The interpreter runs a method in a frame that keeps its frame pointer, and in it, three words
// below, where the method is described (frame_x86.hpp of OpenJDK, interpreter_frame_method_offset;
// the same since JDK 8). All methods have the same return addresses: in the place of one comes the
// description's address, which user space turns into a name (crates/capture/src/java.rs).
#pragma once

#include "unwind.h"

#ifdef HAS_UNWIND_RULES

// No address begins like this.
#define JAVA_METHOD (1ULL << 61)
#define JAVA_METHOD_BELOW 24

// What stands for the interpreted method that a walk has come to; 0 if it is in none.
static __always_inline u64 java_method(struct cursor *at)
{
	u64 method;

	if (at->ip - at->java_start >= at->java_end - at->java_start ||
	    !read_word(at, at->fp - JAVA_METHOD_BELOW, &method) || method >= JAVA_METHOD)
		return 0;
	return JAVA_METHOD | method;
}

#endif
