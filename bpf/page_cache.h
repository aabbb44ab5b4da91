// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Which pages of files came into memory, were used there, and went: only where that is asked for.
// Pages in a row become one record: each CPU keeps the last row until another begins, the fault
// ends or the thread leaves.
#pragma once

#include <bpf/bpf_tracing.h>

#include "area.h"

const volatile bool follow_cache;

// The longest row, pages.
#define MOST_IN_A_ROW 4096

static __always_inline void flush_cache(u32 cpu, u64 ts, u32 tid, const bool undisturbed)
{
	struct cpu_state *state = this_cpu(cpu);
	u32 pages = state->row_pages;
	u64 *record;

	if (!pages)
		return;
	state->row_pages = 0;
	record = reserve(cpu, ts, tid, 4, undisturbed);
	if (!record)
		return;
	record[1] = PAIR(state->row_device, pages);
	record[2] = state->row_inode;
	record[3] = state->row_first;
	commit(record, RECORD(ts, EVENT_PAGING, 0, PAGING_CACHE | state->row_step << 4));
}

static __always_inline void note_cache(struct inode *inode, u64 first, u32 pages, u32 step)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = this_cpu(cpu);
	u64 number = BPF_CORE_READ(inode, i_ino);
	u32 device = BPF_CORE_READ(inode, i_sb, s_dev), row = state->row_pages;

	if (row && row < MOST_IN_A_ROW && state->row_inode == number &&
	    state->row_device == device && state->row_step == step &&
	    state->row_first + row == first) {
		state->row_pages = row + pages;
		return;
	}
	flush_cache(cpu, bpf_ktime_get_ns(), (u32)bpf_get_current_pid_tgid(), false);
	describe_file(as_number(inode), 0);
	state->row_inode = number;
	state->row_device = device;
	state->row_step = step;
	state->row_first = first;
	state->row_pages = pages;
}

static __always_inline u32 folio_pages(struct folio *folio)
{
	if (!(*(unsigned long *)folio & (1UL << bpf_core_enum_value(enum pageflags, PG_head))))
		return 1;
	return 1U << (folio->_flags_1 & 0x1f);
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_cache_add, struct folio *folio)
{
	note_cache(folio->mapping->host, folio->index, folio_pages(folio), CACHE_ADDED);
	return 0;
}

SEC("tp_btf/mm_filemap_delete_from_page_cache")
int BPF_PROG(on_cache_remove, struct folio *folio)
{
	note_cache(folio->mapping->host, folio->index, folio_pages(folio), CACHE_REMOVED);
	return 0;
}

SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(on_cache_map, struct address_space *mapping, unsigned long first, unsigned long last)
{
	if (last >= first)
		note_cache(mapping->host, first, (u32)(last - first) + 1, CACHE_MAPPED);
	return 0;
}

SEC("tp_btf/mm_filemap_get_pages")
int BPF_PROG(on_cache_read, struct address_space *mapping, unsigned long first, unsigned long last)
{
	// `last` is the one behind.
	note_cache(mapping->host, first, last > first ? (u32)(last - first) : 1, CACHE_READ);
	return 0;
}
