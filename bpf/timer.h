// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Timers that threads arm: who armed it, when it fires, and that it was disarmed. Those of sleeps
// and timeouts are the waiting thread's own and are left aside, and so is what the kernel arms for
// itself: a timer counts once it is armed by one of the calls that arm timers.
#pragma once

#include <bpf/bpf_tracing.h>

#include "handoff.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u64); // the timerfd
} armed_timers SEC(".maps");

// Whether a timer of that place was ever armed: nearly all that fire are of other places, and need
// not be looked up.
#define TIMER_PLACES 4096

u8 armed_places[TIMER_PLACES];

static __always_inline u8 *place_of(u64 timer)
{
	// The verifier does not let us calculate with an address, but with a distance.
	u64 distance = timer - (u64)armed_places;

	return &armed_places[(distance >> 6 ^ distance >> 18) & (TIMER_PLACES - 1)];
}

static __always_inline void timer_step(u64 timer, u64 object, u8 step)
{
	struct handoff handoff = {
		.key = timer,
		.object = object,
		.kind = HANDOFF_TIMER,
		.step = step,
	};

	emit_handoff(&handoff);
}

static __always_inline bool arms_timers(s16 call)
{
	return call == CALL_TIMERFD_SETTIME || call == CALL_TIMER_SETTIME ||
	       call == CALL_SETITIMER || call == CALL_ALARM;
}

SEC("tp_btf/hrtimer_start")
int BPF_PROG(on_timer_arm, struct hrtimer *timer)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 key = (u64)timer, object = 0;
	s16 call = own_call(task, regs);

	if (!arms_timers(call))
		return 0;
	if (call == CALL_TIMERFD_SETTIME)
		object = descriptor_object(task, (u32)REGS_ARG0(regs));
	*place_of(key) = 1;
	bpf_map_update_elem(&armed_timers, &key, &object, BPF_ANY);
	timer_step(key, object, STEP_SUBMITTED);
	return 0;
}

SEC("tp_btf/hrtimer_cancel")
int BPF_PROG(on_timer_disarm, struct hrtimer *timer)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 key = (u64)timer, *object;

	if (!arms_timers(own_call(task, (struct pt_regs *)bpf_task_pt_regs(task))))
		return 0;
	object = bpf_map_lookup_elem(&armed_timers, &key);
	if (object)
		timer_step(key, *object, STEP_CANCELLED);
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_hrtimer_entry, struct hrtimer *timer)
{
	struct cpu_state *state = this_cpu(bpf_get_smp_processor_id());
	u64 key = (u64)timer, *object = 0;

	state->in_hrtimer = 1;
	if (*place_of(key))
		object = bpf_map_lookup_elem(&armed_timers, &key);
	state->armed_timer = object ? key : 0;
	if (object)
		timer_step(key, *object, STEP_BEGUN);
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(on_hrtimer_exit, struct hrtimer *timer)
{
	struct cpu_state *state = this_cpu(bpf_get_smp_processor_id());

	if (state->armed_timer)
		timer_step(state->armed_timer, 0, STEP_DONE);
	state->armed_timer = 0;
	state->in_hrtimer = 0;
	return 0;
}
