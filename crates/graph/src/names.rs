//! Functions whose presence in a stack tells how a thread waits or wakes.
//!
//! The names are those of glibc 2.31 and later, musl, and Linux 6.1 and later. A stack without
//! names tells nothing, and the edge says so by its strength.

/// A mutex is being waited for.
pub const LOCK_WAIT: &[&str] = &[
    "__lll_lock_wait",
    "__lll_lock_wait_private",
    "__GI___lll_lock_wait",
    "__lll_timedlock_wait",
    "__lll_clocklock_wait",
    "__GI___lll_clocklock_wait",
    "pthread_mutex_lock",
    "___pthread_mutex_lock",
    "__pthread_mutex_lock",
    "__pthread_mutex_timedlock",
    "___pthread_mutex_timedlock",
    "pthread_mutex_timedlock",
    "__pthread_rwlock_rdlock",
    "__pthread_rwlock_wrlock",
    "rb_mutex_lock",
    "rb_mutex_synchronize",
    "ObjectMonitor::enter",
    "ObjectMonitor::EnterI",
    "futex::Mutex::lock_contended",
    "futex::RwLock::read_contended",
    "futex::RwLock::write_contended",
    "RawMutex::lock_slow",
    "RawRwLock::lock_shared_slow",
    "RawRwLock::lock_exclusive_slow",
    // The same as newer compilers of Rust name them.
    "futex::Mutex>::lock_contended",
    "futex::RwLock>::read_contended",
    "futex::RwLock>::write_contended",
    "RawMutex>::lock_slow",
    "RawRwLock>::lock_shared_slow",
    "RawRwLock>::lock_exclusive_slow",
    "absl::Mutex::LockSlow",
];

/// Functions of the C library's allocator.
pub(crate) const ALLOCATOR: &[&str] = &[
    "malloc",
    "free",
    "calloc",
    "realloc",
    "__GI___libc_malloc",
    "__GI___libc_free",
    "__libc_malloc",
    "__libc_free",
    "__libc_calloc",
    "__libc_realloc",
    "_int_malloc",
    "_int_free",
    "_int_realloc",
    "malloc_consolidate",
    "sysmalloc",
];

/// A condition is being waited for; where that is a wait for a lock, it is the condition's own,
/// which the thread gets back before it looks.
pub const CONDITION_WAIT: &[&str] = &[
    "pthread_mutex_cond_lock",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
];

/// A semaphore is being waited for.
pub const SEMAPHORE: &[&str] = &[
    "__new_sem_wait_slow",
    "__new_sem_wait_slow64",
    "__old_sem_wait",
    "sem_wait",
    "__sem_wait",
    "sem_timedwait",
    "sem_clockwait",
];

/// A mutex is being given back.
pub const UNLOCK: &[&str] = &[
    "__lll_lock_wake",
    "__lll_lock_wake_private",
    "__GI___lll_lock_wake",
    "__GI___lll_lock_wake_private",
    "pthread_mutex_unlock",
    "___pthread_mutex_unlock",
    "__pthread_mutex_unlock",
    "__pthread_mutex_unlock_usercnt",
    "__GI___pthread_mutex_unlock_usercnt",
    "__pthread_rwlock_unlock",
];

/// A condition is being signalled.
pub const SIGNAL: &[&str] = &[
    "pthread_cond_signal",
    "___pthread_cond_signal",
    "__pthread_cond_signal",
    "pthread_cond_broadcast",
    "___pthread_cond_broadcast",
    "__pthread_cond_broadcast",
    "sem_post",
    "__new_sem_post",
    "pthread_barrier_wait",
];

/// The scheduler of goroutines has none for a thread, which waits for whatever comes next.
pub const IDLE: &[&str] = &[
    // The thread that started a Java program, once `main` has returned.
    "jni_DestroyJavaVM",
    "runtime.findRunnable",
    "runtime.findrunnable",
    "runtime.stopm",
    "runtime.stoplockedm",
    "runtime.sysmon",
    "runtime.templateThread",
    // Where a goroutine waits.
    "runtime.gopark",
    "os/signal.signal_recv",
    // Erlang's, of processes.
    "erts_schedule",
    // Node's thread that waits for a signal to start its debugger.
    "node::inspector::(anonymous*",
    // Its thread for tasks that are due later.
    "node::WorkerThreadsTaskRunner::DelayedTaskScheduler::*",
    "java.util.concurrent.ThreadPoolExecutor.getTask",
    "java.util.concurrent.ForkJoinPool.awaitWork",
    "java.lang.ref.Reference.waitForReferencePendingList",
    "java.lang.ref.ReferenceQueue.remove",
    // The thread of a server that waits until its pool has a worker for what came.
    "Puma::ThreadPool#wait_until_not_full",
    // The thread of WEBrick that ends what takes too long.
    "WEBrick::Utils::TimeoutHandler#watch",
    // Varnish's manager and its child, which look after each other.
    "VEV_Loop",
    "VCLS_Poll",
    // Python's, of the threads that a pool of processes keeps for itself.
    "Pool._handle_tasks",
    "Pool._handle_results",
    "Pool._handle_workers",
    "Queue._feed",
    "_ExecutorManagerThread.wait_result_broken_or_wakeup",
    // Those of Python's debugger, which wait for what it is to do.
    "PyDBDaemonThread.run",
    // A thread that gets a job's token from make or cargo, for whoever wants one.
    "std::sys::backtrace::__rust_begin_short_backtrace::<jobserver::imp::spawn_helper*",
];

/// Those of them in which a thread waits that runs any of its language's tasks.
pub(crate) const SCHEDULER: &[&str] = &[
    "runtime.findRunnable",
    "runtime.findrunnable",
    "runtime.stopm",
    "runtime.stoplockedm",
    "runtime.sysmon",
    "runtime.gopark",
    "erts_schedule",
];

/// Functions of Go in which a goroutine waits for another: a lock, a channel, one of several channels, a group.
pub(crate) const AWAITS_TASK: &[&str] = &[
    "runtime.chanrecv1",
    "runtime.chanrecv2",
    "runtime.chansend1",
    "runtime.selectgo",
    "sync.runtime_Semacquire*",
    "sync.runtime_notifyListWait",
    "internal/sync.runtime_Semacquire*",
];

/// Those of them that wait for a lock.
pub(crate) const AWAITS_TASK_LOCK: &[&str] = &[
    "sync.runtime_SemacquireMutex",
    "sync.runtime_SemacquireRWMutex*",
    "internal/sync.runtime_SemacquireMutex",
];

/// Functions in which an asynchronous runtime executes a task: of Rust, Python and Kotlin.
pub(crate) const RUNS_TASK: &[&str] = &[
    "tokio::runtime::task::*",
    "<core::pin::Pin<P> as core::future::future::Future>::poll",
    "async_task::raw::*",
    "Handle._run",
    "kotlinx.coroutines.DispatchedTask.run",
    "void kotlinx.coroutines.DispatchedTask.run()",
];

/// Functions that take tasks from a queue, by parts of their names: who waits right within them has none.
pub const TAKES_TASKS: &[&str] = &["node::(anonymous namespace)::PlatformWorkerThread("];

/// Kernel code that waits for a block device, or for a file system that waits for one.
pub const DISK_WAIT: &[&str] = &[
    "io_schedule",
    "io_schedule_timeout",
    "blk_io_schedule",
    "submit_bio_wait",
    "__iomap_dio_rw",
    "__blockdev_direct_IO",
    "blkdev_issue_flush",
    "wait_on_page_bit",
    "folio_wait_bit",
    "folio_wait_bit_common",
    "folio_wait_writeback",
    // What a file system reads of its own, by functions of which the kernel leaves out those that wait.
    "__ext4_get_inode_loc",
    "ext4_read_bh",
    "ext4_bread",
    "__bread_gfp",
    "bh_uptodate_or_lock",
    "jread",
    "xfs_buf_iowait",
    "jbd2_log_wait_commit",
    "jbd2_journal_commit_transaction",
    "balance_dirty_pages",
    "wbt_wait",
    "rq_qos_wait",
    "blk_mq_get_tag",
    "__wait_on_buffer",
    "xlog_wait_on_iclog",
    "btrfs_wait_ordered_range",
];

/// What a wait for a disk is for, by functions of the kernel that show it: where the call itself does not tell.
pub(crate) const DISK_PURPOSES: &[(&str, &str)] = &[
    (
        "ovl_copy_up_file",
        "overlayfs copies the whole file up, as it is opened to be changed",
    ),
    (
        "balance_dirty_pages",
        "too much of what was written is not on the disk yet",
    ),
    (
        "jbd2_journal_recover",
        "the file system's journal is replayed, as it is mounted",
    ),
];

/// Programs that draw what others show, by the start of their names.
pub const DISPLAY_SERVERS: &[&str] = &[
    "Xorg",
    "Xvfb",
    "Xwayland",
    "Xephyr",
    "Xtigervnc",
    "Xvnc",
    "gnome-shell",
    "kwin_",
    "sway",
    "weston",
    "mutter",
    "labwc",
];

/// Other programs over whose connections come events, and not only answers, by the start of their
/// names.
pub const MESSAGE_BUSES: &[&str] = &[
    "dbus-daemon",
    "dbus-broker",
    "pulseaudio",
    "pipewire",
    "ibus-daemon",
    "at-spi",
];

/// Functions of the kernel in which somebody waits who opens a FIFO.
pub(crate) const OPENS_FIFO: &[&str] = &["wait_for_partner"];

/// Those of the functions below that ask somebody on a message bus.
pub(crate) const ASKS_BUS: &[&str] = &[
    "g_dbus_connection_call_sync",
    "g_dbus_connection_send_message_with_reply_sync",
    "g_dbus_proxy_call_sync",
    "g_dbus_proxy_new_sync",
    "dbus_connection_send_with_reply_and_block",
    "dbus_pending_call_block",
    "sd_bus_call",
];

/// Functions of libraries that ask somebody and come back with the answer.
pub const ASKS: &[&str] = &[
    "_UnaryUnaryMultiCallable._blocking",
    "_UnaryStreamMultiCallable._blocking",
    "_StreamUnaryMultiCallable._blocking",
    "io.grpc.stub.ClientCalls.blockingUnaryCall",
    "grpc::CompletionQueue::Pluck(*",
    "g_dbus_connection_call_sync",
    "g_dbus_connection_send_message_with_reply_sync",
    "g_dbus_proxy_call_sync",
    "g_dbus_proxy_new_sync",
    "g_initable_new",
    "g_initable_init",
    "dbus_connection_send_with_reply_and_block",
    "dbus_pending_call_block",
    "sd_bus_call",
    "_XReply",
    "XWindowEvent",
    "xcb_wait_for_reply",
    "xcb_wait_for_reply64",
    "xcb_request_check",
    "xcb_connect_to_fd",
    "wl_display_roundtrip",
    "wl_display_roundtrip_queue",
    "PQexec",
    "PQgetResult",
    "mysql_real_query",
    "redisGetReply",
    "gearman_client_run_tasks",
    "getaddrinfo",
    "__GI_getaddrinfo",
    // The C library's other look-ups, which ask the servers of its name services.
    "gethostbyname*",
    "gethostbyaddr*",
    "__gethostbyname*",
    "__gethostbyaddr*",
    "getnameinfo",
    "__GI_getnameinfo",
    "getpwnam",
    "getpwnam_r",
    "__getpwnam_r",
    "getpwuid",
    "getpwuid_r",
    "__getpwuid_r",
    "getpwent",
    "getgrnam",
    "getgrnam_r",
    "__getgrnam_r",
    "getgrgid",
    "getgrgid_r",
    "__getgrgid_r",
    "getgrent",
    "getgrouplist",
    "initgroups",
    "getspnam",
    "getspnam_r",
    "__res_context_send",
    "__GI___res_context_send",
    "ma_pvio_read",
    "ma_net_read",
    // pika, which waits for RabbitMQ.
    "BlockingConnection._flush_output",
];

/// Functions of a Java virtual machine in which a thread waits until the machine's own thread has collected garbage,
/// or done something else for it that stops all threads.
pub(crate) const ASKS_MACHINE: &[&str] = &["VMThread::wait_until_executed*"];

/// Functions in which a thread waits for others that do parts of its own work, as V8's collection of garbage.
pub(crate) const JOINS_HELPERS: &[&str] = &["v8::platform::DefaultJobState::Join*"];

/// Functions by which a session of PostgreSQL takes a lock that a client may keep beyond its transactions.
pub(crate) const ADVISORY_LOCK: &[&str] = &["pg_advisory_*"];

/// Functions in which a session of PostgreSQL waits for another process of the server: for a checkpoint, or for its log to be archived.
pub(crate) const AWAITS_UPKEEP: &[&str] = &["RequestCheckpoint", AWAITS_ARCHIVE];

/// The one of them that waits for the archive.
pub(crate) const AWAITS_ARCHIVE: &str = "do_pg_backup_stop";

/// Functions of a Java virtual machine that check again and again whether all of its threads have reached a
/// safepoint or handled a handshake.
pub(crate) const AWAITS_SAFEPOINT: &[&str] = &[
    "SafepointSynchronize::synchronize_threads*",
    "SafepointSynchronize::begin*",
    "VM_HandshakeAllThreads::doit*",
    "HandshakeSpinYield::*",
];

/// Functions that wait for Python's global lock. That which does has no name in most builds.
pub(crate) const GLOBAL_LOCK: [&str; 4] = [
    "take_gil",
    "PyEval_RestoreThread",
    "PyEval_AcquireThread",
    "PyGILState_Ensure",
];

/// Functions of languages that wait for a lock by means that look like a condition: of Python, also
/// for that of a condition or a queue, and of Java's library.
pub(crate) const LANGUAGE_LOCK: &[&str] = &[
    "PyThread_acquire_lock_timed",
    GLOBAL_LOCK[0],
    GLOBAL_LOCK[1],
    GLOBAL_LOCK[2],
    GLOBAL_LOCK[3],
    "java.util.concurrent.locks.ReentrantLock.lock*",
    "java.util.concurrent.locks.ReentrantReadWriteLock$ReadLock.lock*",
    "java.util.concurrent.locks.ReentrantReadWriteLock$WriteLock.lock*",
    "java.util.concurrent.locks.StampedLock.readLock*",
    "java.util.concurrent.locks.StampedLock.writeLock*",
];

/// Functions of Python's library in which a lock is not what is waited for.
pub(crate) const LANGUAGE_CONDITION: &[&str] = &[
    "Condition.wait",
    // A queue of C, and gunicorn's master that waits for signals by one: a build without symbols shows only that.
    "_queue_SimpleQueue_get*",
    "Arbiter.wait_for_signals",
    "Thread._wait_for_tstate_lock",
    "_worker",
    "_shutdown",
];

/// Functions in which a program waits for its threads to end, as it ends itself: that of Python's `threading`.
pub(crate) const AWAITS_THREADS: &[&str] = &["_shutdown"];

/// Functions in which a program waits for a debugger to attach, or to let it go on: of node, of Python's debugpy.
pub(crate) const AWAITS_DEBUGGER: &[&str] = &[
    "node::inspector::MainThreadInterface::WaitForFrontendEvent*",
    "PyDB.block_until_configuration_done",
];

/// Functions of Python that import a module, and have its lock meanwhile.
pub(crate) const IMPORTS: &[&str] = &["_find_and_load", "_find_and_load_unlocked"];

/// The function of Python that waits for the lock of a module that another thread imports.
pub(crate) const AWAITS_IMPORT: &[&str] = &["_ModuleLock.acquire"];

/// The function of Python that waits for another thread to end.
pub(crate) const JOINS: &[&str] = &["Thread.join"];

/// Functions of Java that wait for the tasks of a pool to end.
pub(crate) const AWAITS_POOL: &[&str] = &[
    "java.util.concurrent.ThreadPoolExecutor.awaitTermination",
    "java.util.concurrent.Executors$DelegatedExecutorService.awaitTermination",
];

/// The function of Java in which a program that ends waits for its shutdown hooks, each a thread.
pub(crate) const AWAITS_HOOKS: &[&str] = &["java.lang.ApplicationShutdownHooks.runHooks"];

/// Functions by which a thread sleeps in another way than by the system call.
pub(crate) const SLEEPS: &[&str] = &[
    "JVM_Sleep",
    "JavaThread::sleep",
    "JavaThread::sleep(long)",
    "rb_thread_sleep",
    "rb_thread_wait_for",
    "std::thread::sleep",
    // MariaDB, while a file system is full.
    "mariadb_sleep_for_space",
    "my_sleep_for_space",
];

/// Functions of PostgreSQL and MariaDB that wait for a lock on a row, a table or a number, or for a
/// standby; by the start of their names (`*`). What else a storage engine waits for is no condition.
pub(crate) const DATABASE_LOCK: &[&str] = &[
    "ProcSleep",
    "SyncRepWaitForLSN",
    "lock_wait(*",
    "thr_multi_lock",
    "lock_wait_suspend_thread(*",
    "MDL_wait::timed_wait(*",
    "MDL_context::acquire_lock(*",
    "handler::ha_index_*",
    "handler::ha_rnd_*",
    "handler::ha_read_*",
    "handler::ha_write_row(*",
    "handler::ha_update_row(*",
    "handler::ha_delete_row(*",
];

/// Those of them in which it waits until another server, its standby, has what it commits.
pub(crate) const AWAITS_STANDBY: &[&str] = &["SyncRepWaitForLSN"];

/// Functions of the kernel by which the freezer of a control group stops threads and lets them go on.
pub(crate) const FROZEN: &[&str] = &[
    "do_freezer_trap",
    "__refrigerator",
    "cgroup_freeze_write",
    "cgroup_do_freeze",
    "freezer_write",
    "__thaw_task",
];

/// Where a thread that a signal stopped is.
pub(crate) const STOPPED_BY_SIGNAL: &[&str] = &["do_signal_stop"];

/// Where a thread that a debugger or tracer stopped is.
pub(crate) const STOPPED_BY_TRACER: &[&str] = &["ptrace_stop"];

/// Functions of the kernel that sleep so that any signal ends it, and during which the freezer of a
/// control group leaves a thread where it is: then its state is that of an uninterruptible sleep.
pub(crate) const FREEZABLE: &[&str] = &[
    "poll_schedule_timeout*",
    "futex_wait_queue*",
    "__futex_wait",
    "do_nanosleep",
    "do_sigtimedwait",
];

/// Functions of the kernel that wait for a signal to be read from a signalfd.
pub(crate) const READS_SIGNAL: &[&str] = &["signalfd_read*", "signalfd_dequeue"];

/// Functions of the kernel that handle a page fault, on x86-64 and arm64.
pub(crate) const PAGE_FAULT: &[&str] = &["exc_page_fault", "do_user_addr_fault", "do_page_fault"];

/// The function of the kernel that brings in a page that was swapped out.
pub(crate) const SWAP_IN: &[&str] = &["do_swap_page"];

/// Parts of the names of functions that wait for a limited time.
pub(crate) const TIMED: &[&str] = &["timedwait", "clockwait", "timedlock", "clocklock"];

/// The function of the kernel that waits for a lock of which each CPU has a part.
pub(crate) const PERCPU_LOCK: &[&str] = &["percpu_rwsem_wait"];

/// Functions of the kernel that read pages of a file: `sendfile` and `splice` do, which write to another.
pub(crate) const READS_PAGES: &[&str] =
    &["filemap_get_pages", "filemap_splice_read", "filemap_read"];

/// Functions of the kernel that begin to change a file system, for which that must not be frozen.
pub(crate) const CHANGES_FILES: &[&str] = &[
    "mnt_want_write*",
    "vfs_write",
    "vfs_writev",
    "vfs_iter_write",
    "vfs_fallocate",
    "vfs_copy_file_range",
    "io_write",
    "ext4_page_mkwrite",
    "filemap_page_mkwrite",
    "iomap_page_mkwrite",
];

/// Functions of the kernel that wait until a control group uses less memory.
pub(crate) const MEMORY_LIMIT: &[&str] = &[
    "mem_cgroup_oom_synchronize",
    "mem_cgroup_handle_over_high",
    "__mem_cgroup_handle_over_high",
];

/// Functions of the kernel by which a person changes a setting that keeps others waiting.
pub(crate) const SETTING: &[&str] = &[
    "cgroup_file_write",
    "mem_cgroup_write",
    "mem_cgroup_resize_max",
    "memory_max_write",
    "memory_high_write",
    "thaw_super",
    "thaw_super_locked",
    "bdev_thaw",
];

/// Programs that lend the connections to a database to one client at a time.
pub(crate) const POOLERS: &[&str] = &["pgbouncer", "pgpool", "odyssey", "proxysql"];

/// Programs that keep what one client sends until another takes it, by the start of their names.
pub(crate) const BROKERS: &[&str] = &[
    "redis-server",
    "valkey-server",
    "keydb-server",
    "beanstalkd",
    "gearmand",
    "nats-server",
    "mosquitto",
    "beam.smp",
];

/// Functions of libraries that sleep before they try again what failed, each as it was found on the stack
/// of such a sleep.
pub(crate) const RETRIES: &[&str] = &[
    // urllib3, which pip has too
    "Retry._sleep_backoff",
    "Retry.sleep_for_retry",
    "Retry.sleep",
    // botocore
    "Endpoint._needs_retry",
    // google-api-core
    "retry_target",
    // tenacity
    "Retrying.__call__",
    // backoff
    "retry_exception.<locals>.retry",
    "retry_predicate.<locals>.retry",
    // bash, which was refused another process
    "make_child",
];

/// Functions of libraries that try again and again to make a file that serves as a lock, with sleeps in
/// between, as they were found on the stacks of such sleeps.
pub(crate) const POLLS_LOCK: &[&str] = &[
    // borg
    "ExclusiveLock.acquire",
    "TimeoutTimer.timed_out_or_sleep",
    // filelock
    "BaseFileLock.acquire",
    // fasteners
    "InterProcessLock.acquire",
    // portalocker
    "LockBase._timeout_generator",
    // lockfile
    "LinkLockFile.acquire",
    "MkdirLockFile.acquire",
    "SymlinkLockFile.acquire",
    "PIDLockFile.acquire",
    // Mercurial
    "localrepository._lock",
    // apt
    "pkgCacheFile::BuildCaches*",
];

/// Programs that have the lock of dpkg's files, or wait for it.
pub(crate) const PACKAGE_MANAGERS: &[&str] = &[
    "apt",
    "apt-get",
    "aptitude",
    "aptd",
    "dpkg",
    "packagekitd",
    "synaptic",
    "unattended-upgr",
];

/// Programs that show a dialog for a service of the desktop, and run for as long as that: for passwords and keys. Those
/// that run all the time, as the agents of polkit do, may show none.
pub(crate) const PROMPTERS: &[&str] = &["gcr-prompter*", "gcr4-prompter*"];

/// Functions of a shell that wait for one child, and for any on the way to that.
pub(crate) const AWAITS_ONE_CHILD: &[&str] = &["wait_for", "wait_for_single_pid"];

/// Functions that wait for a child to end, by looking again and again or by its pipes.
pub(crate) const AWAITS_CHILD: &[&str] = &[
    "Popen._wait",
    "Popen.wait",
    "Popen._communicate",
    "Popen.communicate",
    "g_spawn_sync",
    "g_subprocess_wait",
    "g_subprocess_communicate",
    "QProcess::waitForFinished",
    "QProcess::waitForFinished(int)",
    "<std::process::Command>::output",
    "<std::process::Child>::wait_with_output",
    "node::SyncProcessRunner::*",
    "spawnSync",
    "command_substitute",
    // vim
    "call_shell",
    "mch_call_shell",
    "java.lang.ProcessImpl.waitFor",
];

/// Functions in which a shell or another interpreter reads what it is to do next.
pub(crate) const READS_COMMANDS: &[&str] = &[
    "read_builtin",
    "readline",
    "rl_getc",
    "el_gets",
    "yy_readline_get",
    "PyOS_Readline",
    "linenoise*",
    "batch_readline*",
];

/// Functions of toolkits and of pools of threads that hand an event or a task to the program's own
/// code. A worker without a task is not in any of them.
pub(crate) const HANDLES: &[&str] = &[
    "g_main_context_dispatch",
    "g_closure_invoke",
    "g_task_thread_pool_thread",
    "dbus_connection_dispatch",
    "QCoreApplication::notify*",
    "QApplication::notify*",
    "_WorkItem.run",
    "mapstar",
    "starmapstar",
    "std::packaged_task<*",
    "<rayon_core::job::*",
    "java.util.concurrent.ThreadPoolExecutor.runWorker",
    "java.util.concurrent.FutureTask.run",
    "java.util.concurrent.ForkJoinTask.doExec",
    "java.util.concurrent.CompletableFuture$AsyncSupply.run",
    "java.util.concurrent.CompletableFuture$AsyncRun.run",
    "void java.util.concurrent.FutureTask.run()",
    "int java.util.concurrent.ForkJoinTask.doExec()",
];

/// What the files of libraries and virtual machines start with in which threads wait for locks, whatever the
/// program wants with them.
pub(crate) const RUNTIMES: &[&str] = &[
    "libc.so",
    "libc-",
    "ld-linux",
    "libpthread",
    "libstdc++",
    "libjvm",
    "libglib-",
    "libruby",
    "python3",
    "libpython",
    "ruby",
    "node",
];

/// Functions of languages' libraries in which threads wait for each other, whatever the program wants with them.
pub(crate) const WAITS: &[&str] = &[
    "java.util.concurrent.*",
    "jdk.internal.*",
    "java.lang.Object.wait*",
    "java.lang.Thread.*",
    "Condition.*",
    "Semaphore.*",
    "Event.wait",
    "Barrier.*",
    "Queue.*",
    "runtime.*",
    "sync.*",
    "std::*",
    "core::*",
    "<std::*",
    "__gthread_*",
    "parking_lot*",
    "lock_api*",
];

/// Functions of event loops that call handlers, beside `EVENT_LOOP` and `HANDLES`: they are on nearly every stack
/// of a program, so they do not say what it did.
pub(crate) const LOOPS: &[&str] = &[
    "ChromeMain",
    "gdk_event_source_dispatch",
    "g_signal_emit*",
    "QObject::event*",
    "QMetaObject::activate*",
    "void doActivate*",
    "QCoreApplicationPrivate::sendPostedEvents*",
    "QCoreApplication::sendPostedEvents*",
    "Tcl_ServiceEvent",
    "Tcl_DoOneEvent",
    "XtDispatchEvent",
    "XtDispatchEventToWidget",
    "uv_run",
    "uv__run_*",
    "event_base_loop",
    "event_base_dispatch",
    "ev_run",
    "ev_invoke_pending",
    "node::SpinEventLoop*",
    "node::Start*",
    "BaseEventLoop.run_forever",
    "BaseEventLoop._run_once",
    "Handle._run",
    // Erlang, for what its own functions ask of the virtual machine.
    "beam_jit_call_bif*",
    "beam_jit_call_nif*",
];

/// Functions by which a thread waits for the next piece of work.
pub(crate) const TAKES_WORK: &[&str] = &[
    "Queue.get",
    "java.util.concurrent.LinkedBlockingQueue.take",
    "java.util.concurrent.ArrayBlockingQueue.take",
    "java.util.concurrent.LinkedBlockingDeque.take*",
    "java.util.concurrent.SynchronousQueue.take",
    // Of queues of jobs that another program has.
    "gearman_worker_grab_job",
    "Redis.blpop",
    "Redis.brpop",
    "Sidekiq::BasicFetch#retrieve_work",
    "Worker.dequeue_job_and_maintain_ttl",
    "PubSub.listen",
    "BlockingChannel.start_consuming",
    "org.apache.kafka.clients.consumer.KafkaConsumer.poll*",
];

/// Functions by which libraries for parallel programs (Open MPI, MPICH, UCX) look for messages until one has come.
pub(crate) const SPINS_FOR_PEERS: &[&str] = &[
    "opal_progress",
    "MPID_Progress_wait",
    "MPIDI_CH3I_Progress",
    "MPIR_Wait_impl",
    "ucp_worker_progress",
];

/// Functions in which a program with a window waits for what another one has in the clipboard.
pub(crate) const AWAITS_SELECTION: &[&str] = &[
    "QInternalMimeData::retrieveData*",
    "QInternalMimeData::hasFormat*",
    "QInternalMimeData::formats*",
    "gtk_clipboard_wait_for_*",
];

/// Functions in which a thread waits for a permit of a semaphore.
pub(crate) const AWAITS_PERMIT: &[&str] = &[
    "java.util.concurrent.Semaphore.acquire*",
    "Semaphore.acquire",
];

/// Functions that take from a queue that several processes take from, as the workers of a pool do, each in turn.
pub(crate) const SHARES_QUEUE: &[&str] = &["SimpleQueue.get"];

/// Functions that wait for what other threads of a program do: the result of a task, or room in a full queue.
pub(crate) const AWAITS_RESULT: &[&str] = &[
    "IMapIterator.next",
    "java.util.concurrent.FutureTask.get*",
    "java.util.concurrent.FutureTask.awaitDone*",
    "java.util.concurrent.CompletableFuture.get*",
    "java.util.concurrent.CompletableFuture.join*",
    "java.util.concurrent.CompletableFuture.waitingGet*",
    // Where what called it is compiled into one with it.
    "java.util.concurrent.CompletableFuture$Signaller.block",
    "java.util.concurrent.AbstractExecutorService.invokeAll*",
    "java.util.concurrent.ForkJoinTask.get*",
    "java.util.concurrent.ForkJoinTask.join*",
    "java.util.concurrent.ForkJoinTask.invoke*",
    "Future.result",
    "ApplyResult.get",
    "ApplyResult.wait",
    "java.util.concurrent.Semaphore.acquire*",
    "Semaphore.acquire",
    "java.util.concurrent.CountDownLatch.await*",
    "java.util.concurrent.CyclicBarrier.await*",
    "Barrier.wait",
    "std::__future_base::_State_baseV2::wait*",
    "std::__basic_future<*",
    // Room in a queue that is full
    "Queue.put",
    "java.util.concurrent.ArrayBlockingQueue.put",
    "java.util.concurrent.LinkedBlockingQueue.put",
    "java.util.concurrent.LinkedBlockingDeque.put*",
    "java.util.concurrent.SynchronousQueue.put",
    // rsyslog
    "qqueueEnqMsg",
];

/// Functions in which a program with a window waits for what comes next.
pub(crate) const EVENT_LOOP: &[&str] = &[
    "g_main_loop_run",
    "g_application_run",
    "gtk_main",
    "gtk_dialog_run",
    "QEventLoop::exec*",
    "QCoreApplication::exec*",
    "QCoreApplication::processEvents*",
    "QEventDispatcherGlib::processEvents*",
    "QEventDispatcherUNIX::processEvents*",
    "QDialog::exec*",
    "g_main_context_iteration",
    "Tk_MainLoop",
    "Tkapp_MainLoop",
    "XtAppMainLoop",
    "XtAppNextEvent",
    "SDL_WaitEvent*",
    "glfwWaitEvents*",
];

/// Kernel code that hands on what came in by a terminal.
pub const TERMINAL: &[&str] = &[
    "flush_to_ldisc",
    "tty_ldisc_receive_buf",
    "n_tty_receive_buf_common",
];

/// Kernel code that waits for a program to mount what is asked for (autofs), or ends that wait.
pub(crate) const AWAITS_MOUNT: &[&str] = &["autofs_wait", "autofs_wait_release"];

/// Kernel code of files that a program serves (FUSE).
pub const SERVED_FILE: &[&str] = &[
    "request_wait_answer",
    "fuse_simple_request",
    "__fuse_simple_request",
    "fuse_file_read_iter",
    "fuse_cache_read_iter",
    "fuse_file_write_iter",
    "fuse_perform_write",
    "fuse_readahead",
    "fuse_read_folio",
    "fuse_page_mkwrite",
    "fuse_flush",
    "fuse_fsync",
    "fuse_do_getattr",
    "fuse_lookup",
    "fuse_lookup_name",
    "fuse_dentry_revalidate",
    "fuse_permission",
    "fuse_statfs",
    "fuse_open",
    "fuse_create_open",
    "fuse_readdir",
    "fuse_dev_do_write",
];

/// Functions of the kernel that wait for a program to allow that a file is opened.
pub(crate) const PERMISSION: &[&str] = &[
    "fanotify_handle_event",
    "fanotify_get_response",
    "__break_lease",
];

/// Kernel code that completes block I/O.
pub const DISK_WAKE: &[&str] = &[
    "bio_endio",
    "blk_mq_end_request",
    "blk_mq_complete_request",
    "blk_done_softirq",
    "blk_update_request",
    "end_bio_bh_io_sync",
    "folio_end_writeback",
    "virtblk_done",
    "nvme_irq",
];

/// Kernel code that runs in a softirq on the way of a packet that a system call just sent: the
/// softirq is the sender's own.
pub const SENDING: &[&str] = &[
    "__sys_sendto",
    "__sys_sendmsg",
    "___sys_sendmsg",
    "sock_write_iter",
    "tcp_sendmsg",
    "tcp_sendmsg_locked",
    "udp_sendmsg",
    "tcp_close",
    "__tcp_close",
    "inet_shutdown",
    "tcp_recvmsg",
];

/// The softirq numbers of the kernel that are the network's.
pub const NETWORK_SOFTIRQS: [u16; 2] = [2, 3];
/// The softirq numbers of the kernel that are block devices'.
pub const BLOCK_SOFTIRQS: [u16; 2] = [4, 5];

/// Threads of a Java virtual machine that run no Java, by the start of their names. A collector may
/// keep threads waiting, but by a safepoint and not by a lock.
pub const JAVA_MACHINE: &[&str] = &[
    "VM Periodic Tas",
    "C1 CompilerThre",
    "C2 CompilerThre",
    "Signal Dispatch",
    "Service Thread",
    // It answers jstack and jcmd.
    "Attach Listener",
    "Monitor Deflati",
    "Notification Th",
    "G1 Refine#",
    "G1 Service",
    "G1 Conc#",
    "G1 Main Marker",
];

/// Threads of Erlang's virtual machine that run no Erlang.
pub(crate) const ERLANG_MACHINE: &[&str] = &["sys_sig_dispatc", "sys_msg_dispatc", "1_aux"];

/// Further threads of a Java virtual machine that wait for work without end.
pub(crate) const JAVA_UPKEEP: &[&str] = &[
    "VM Thread",
    "GC Thread#",
    "Sweeper thread",
    "Reference Handl",
    "Finalizer",
    "Common-Cleaner",
];
