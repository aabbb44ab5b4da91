// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// PHP's functions and methods in the stacks of PHP 8.2 without threads, as distributions build it.
//
// execute_ex() is the interpreter's loop. A chain of frames, one for each function that runs, of C
// too, begins in a global variable. One that has ZEND_CALL_TOP is the outermost of a call of the
// loop.
//
//   executor_globals.current_execute_data ─→ frame ─→ frame (TOP) ─→ frame ─→ frame (TOP)
//                                             a call of the loop      the one around it
#pragma once

#include "chain.h"

#ifdef HAS_UNWIND_RULES

// Where PHP 8.2 keeps what: offsetof() with its own headers (zend_globals.h, zend_compile.h), which
// have the same executor_globals of 1,800 bytes as the interpreter.

// zend_execute_data.
struct php_frame {
	u64 instruction;
	u64 call;
	u64 value;
	u64 function;
	u64 object;
	u32 info;
	u32 arguments;
	u64 previous;
};

#define PHP_CALL_TOP (1 << 17)

// zend_function, of which zend_op_array has more.
struct php_function {
	u8 type;
	u8 kinds[3];
	u32 flags;
	u64 name;
	u64 class;
};

#define PHP_USER_FUNCTION 2
#define PHP_EVALUATED 4
#define PHP_STATIC 16
#define PHP_FUNCTION_CODE 88
#define PHP_FUNCTION_FILE 152

struct php_source {
	u64 file;
	u32 line;
};

// zend_class_entry
#define PHP_CLASS_NAME 8
// zend_string
#define PHP_TEXT_LENGTH 16
#define PHP_TEXT 24

// The text `object`. Returns how many bytes there are.
static __always_inline u32 read_php_text(u8 *bytes, u32 most, u64 object)
{
	u64 size;

	if (!object || bpf_probe_read_user(&size, sizeof(size), (void *)(object + PHP_TEXT_LENGTH)))
		return 0;
	return read_text(bytes, most, object + PHP_TEXT, size);
}

// What stands for the `function` at an address.
__noinline u64 php_function(u32 scratch, u64 address, u64 ts, u32 pid)
{
	struct chain *chain = chain_of(scratch);
	struct function_definition *definition;
	struct php_function function;
	struct php_source source;
	u64 code, name, key, known;

	if (!chain || bpf_probe_read_user(&function, sizeof(function), (void *)address))
		return FUNCTION;
	if (function.type != PHP_USER_FUNCTION && function.type != PHP_EVALUATED)
		return 0;
	if (bpf_probe_read_user(&code, sizeof(code), (void *)(address + PHP_FUNCTION_CODE)) ||
	    bpf_probe_read_user(&source, sizeof(source), (void *)(address + PHP_FUNCTION_FILE)))
		return FUNCTION;
	// Each object that is a closure has a copy of the function: by its code, not its address.
	key = mix(mix(function_key(pid, code), function.name), function.class);
	key = mix(mix(key, source.file), source.line);
	known = known_function(key);
	if (known)
		return known;
	definition = &chain->definition;
	definition->kind = DEFINITION_PHP;
	definition->line = source.line;
	definition->name_state = function.flags & PHP_STATIC ? SCOPE_IS_OBJECT : 0;
	definition->file_state = 0;
	definition->name_length =
		read_php_text(definition->name, sizeof(definition->name), function.name);
	definition->file_length =
		read_php_text(definition->file, sizeof(definition->file), source.file);
	definition->scope_length = 0;
	if (function.class &&
	    !bpf_probe_read_user(&name, sizeof(name), (void *)(function.class + PHP_CLASS_NAME)))
		definition->scope_length =
			read_php_text(definition->scope, sizeof(definition->scope), name);
	return define_function(chain, key, ts, pid);
}

// Adds the next frame of the chain. Returns whether to go on.
__noinline u32 php_collect(u32 scratch, u64 ts, u32 pid)
{
	struct chain *chain = chain_of(scratch);
	struct php_frame frame;
	u64 word;

	if (!chain || !chain->frame || chain->count >= MAX_FRAMES ||
	    bpf_probe_read_user(&frame, sizeof(frame), (void *)chain->frame))
		return 0;
	chain->frame = frame.previous;
	word = frame.function ? php_function(scratch, frame.function, ts, pid) : 0;
	if (!word)
		return 1;
	chain_add(chain, word);
	if (frame.info & PHP_CALL_TOP)
		chain_add(chain, LOOP_MARK);
	return 1;
}

// Reads the functions that the process is in, whose first frame is told at `current`. Returns 0 if
// there are none.
__noinline u32 php_begin(u32 scratch, u64 current, u64 ts, u32 pid)
{
	struct chain *chain = chain_of(scratch);
	u64 frame;

	if (!chain || bpf_probe_read_user(&frame, sizeof(frame), (void *)current) || !frame)
		return 0;
	chain_begin(chain, LOOP_MARK);
	chain->frame = frame;
	for (u32 i = 0; i < CHAIN_WORDS; i++) {
		if (!php_collect(scratch, ts, pid))
			break;
	}
	chain->words[chain->count & (CHAIN_WORDS - 1)] = 0;
	return 1;
}

#endif
