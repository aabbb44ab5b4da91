// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What memory a fault is in: each file and each area of a process is described once, when a fault
// waits there first or a page of the file comes or goes.
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "ring.h"

#define VM_WRITE 0x2
#define VM_EXEC 0x4
#define VM_SHARED 0x8
#define VM_GROWSDOWN 0x100
#define PAGE_SHIFT 12

// User space adds to it when it wants every file and area to be described anew.
u32 area_generation;

struct file_key {
	u64 inode;
	u32 device;
	u32 generation;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, struct file_key);
	__type(value, u8);
} described_files SEC(".maps");

// Two programs that a process executes one after the other have different memory.
struct area_key {
	u64 memory;
	u64 start;
	u32 pid;
	u32 generation;
};

struct known_area {
	u64 end;
	u64 inode;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, struct area_key);
	__type(value, struct known_area);
} described_areas SEC(".maps");

// By which name a file is known: of several the one by which it was mapped, otherwise any.
enum { FILE_BY_ANY_NAME = 1, FILE_BY_ITS_NAME = 2 };

// Its names lead from the file to the root of its file system. A file without any, such as one that
// only the kernel uses, is described too. `name` is the directory entry by which it was opened, 0
// where that is not known.
__noinline int describe_file(u64 address, u64 name)
{
	struct inode *inode = (void *)address;
	struct super_block *sb = BPF_CORE_READ(inode, i_sb);
	struct dentry *dentry = (void *)name, *parent;
	struct file_definition *definition;
	struct file_key key = {};
	struct hlist_node *alias;
	u8 now = name ? FILE_BY_ITS_NAME : FILE_BY_ANY_NAME, *known;
	u32 depth = 0;

	key.inode = BPF_CORE_READ(inode, i_ino);
	key.device = BPF_CORE_READ(sb, s_dev);
	key.generation = area_generation;
	known = bpf_map_lookup_elem(&described_files, &key);
	if (known && *known >= now)
		return 0;
	definition = bpf_ringbuf_reserve(&definitions, sizeof(*definition), 0);
	if (!definition) {
		this_cpu(bpf_get_smp_processor_id())->lost_definitions++;
		return 0;
	}
	for (u32 i = 0; i < PATH_DEPTH; i++)
		definition->names[i][0] = 0;
	definition->ts = bpf_ktime_get_ns();
	definition->kind = DEFINITION_FILE;
	definition->device = key.device;
	definition->inode = key.inode;
	definition->magic = (u32)BPF_CORE_READ(sb, s_magic);
	alias = BPF_CORE_READ(inode, i_dentry.first);
	if (!dentry && alias)
		dentry = (void *)alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
	if (dentry) {
		for (; depth < PATH_DEPTH; depth++) {
			parent = BPF_CORE_READ(dentry, d_parent);
			// The name of a file that lies in no directory has no parent either.
			if (!parent || (parent == dentry && depth))
				break;
			bpf_probe_read_kernel_str(definition->names[depth], NAME_LENGTH,
						  BPF_CORE_READ(dentry, d_name.name));
			if (parent == dentry)
				break;
			dentry = parent;
		}
		if (depth == PATH_DEPTH && BPF_CORE_READ(dentry, d_parent) != dentry)
			depth++;
	}
	definition->depth = depth;
	bpf_ringbuf_submit(definition, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&described_files, &key, &now, BPF_ANY);
	return 0;
}

// Which process's memory is looked at, and where what was found lies.
struct area_look {
	u64 start;
	u64 end; // 0: nothing was found
	u64 inode;
	u32 pid;
	u32 padding;
};

static long describe_area(struct task_struct *task, struct vm_area_struct *vma,
			  struct area_look *look)
{
	struct mm_struct *mm = vma->vm_mm;
	struct area_key key = {};
	struct known_area area = {}, *known;
	struct file *file = vma->vm_file;
	struct area_definition *definition;
	u64 flags = vma->vm_flags;
	struct inode *inode = 0;
	u32 device = 0, what = 0;

	key.memory = (u64)mm;
	key.start = vma->vm_start;
	key.pid = look->pid;
	key.generation = area_generation;
	area.end = vma->vm_end;
	if (file) {
		inode = BPF_CORE_READ(file, f_mapping, host);
		area.inode = BPF_CORE_READ(inode, i_ino);
		device = BPF_CORE_READ(inode, i_sb, s_dev);
	}
	look->start = key.start;
	look->end = area.end;
	look->inode = area.inode;
	known = bpf_map_lookup_elem(&described_areas, &key);
	if (known && known->end == area.end && known->inode == area.inode)
		return 0;
	if (inode)
		describe_file((u64)inode, (u64)BPF_CORE_READ(file, f_path.dentry));
	if (flags & VM_WRITE)
		what |= AREA_WRITABLE;
	if (flags & VM_EXEC)
		what |= AREA_EXECUTABLE;
	if (flags & VM_SHARED)
		what |= AREA_SHARED;
	if (flags & VM_GROWSDOWN ||
	    (vma->vm_start <= mm->start_stack && mm->start_stack < area.end))
		what |= AREA_STACK;
	if (!file && vma->vm_start < mm->brk && area.end > mm->start_brk)
		what |= AREA_HEAP;
	if (inode && BPF_CORE_READ(mm, exe_file, f_mapping, host) == inode)
		what |= AREA_PROGRAM;
	definition = bpf_ringbuf_reserve(&definitions, sizeof(*definition), 0);
	if (!definition) {
		this_cpu(bpf_get_smp_processor_id())->lost_definitions++;
		return 0;
	}
	definition->ts = bpf_ktime_get_ns();
	definition->kind = DEFINITION_AREA;
	definition->pid = look->pid;
	definition->start = key.start;
	definition->end = area.end;
	definition->file_offset = file ? vma->vm_pgoff << PAGE_SHIFT : 0;
	definition->inode = area.inode;
	definition->device = device;
	definition->flags = what;
	bpf_ringbuf_submit(definition, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&described_areas, &key, &area, BPF_ANY);
	return 0;
}

#define NEIGHBOURHOOD_SHIFT 16

// The area that was found in a neighbourhood last.
struct neighbourhood {
	u64 start;
	u64 end;
	u64 inode;
	u32 generation;
	u32 padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 13);
	__type(key, u64);
	__type(value, struct neighbourhood);
} neighbourhoods SEC(".maps");

// Describes where `address` of a process lies, in a mapping of the file `inode` if that is not 0.
// Where the memory is being changed right now, the next fault there tells. A look raises an
// interrupt, which takes 3 us on a virtual machine: so it is done once in a neighbourhood, until
// another area or file is met there.
static __always_inline void note_area(struct task_struct *task, u64 address, u64 inode)
{
	u64 key = (u64)task->tgid << 40 ^ task->self_exec_id << 32 ^ address >> NEIGHBOURHOOD_SHIFT;
	struct area_look look = {.pid = task->tgid};
	struct neighbourhood now = {}, *known;

	known = bpf_map_lookup_elem(&neighbourhoods, &key);
	if (known && known->generation == area_generation && known->start <= address &&
	    address < known->end && (!inode || known->inode == inode))
		return;
	bpf_find_vma(task, address, describe_area, &look, 0);
	if (!look.end)
		return;
	now.start = look.start;
	now.end = look.end;
	now.inode = look.inode;
	now.generation = area_generation;
	bpf_map_update_elem(&neighbourhoods, &key, &now, BPF_ANY);
}
