// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// All programs in one object, so that they share rings and per-CPU state; each concern has a file.
// The helpers' headers need its types: it comes first.
#include "kernel.h"

#include "block.h"
#include "call_log.h"
#include "descriptors.h"
#include "fault.h"
#include "file_lock.h"
#include "flag.h"
#include "interrupt.h"
#include "io_uring.h"
#include "life.h"
#include "marker.h"
#include "probe.h"
#include "sample.h"
#include "sched.h"
#include "signal.h"
#include "stall.h"
#include "timer.h"
#include "transfer.h"
#include "waiting.h"
#include "work.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
