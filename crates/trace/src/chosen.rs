//! Values of columns as the fuzzer chooses them.

/// A value of a column, made of a number.
pub(crate) trait Chosen {
    /// The number, cut to what the column holds; of a text and a list also how long it is.
    fn of(value: u64) -> Self;
}

macro_rules! numbers {
    ($($kind:ty),+) => {$(
        impl Chosen for $kind {
            fn of(value: u64) -> $kind {
                value as $kind
            }
        }
    )+};
}
numbers!(u8, u16, i16, u32, u64, i64);

impl Chosen for bool {
    fn of(value: u64) -> bool {
        value & 1 != 0
    }
}

impl Chosen for String {
    fn of(value: u64) -> String {
        /// What programs, functions and files are called, and what nobody expects.
        const TEXTS: [&str; 24] = [
            "",
            "sh",
            "Xorg",
            "postgres",
            "main",
            "poll",
            "__libc_start_main",
            "futex_wait",
            "g_main_context_iterate",
            "pthread_cond_wait",
            "/usr/lib/libc.so.6",
            "/tmp/a (deleted)",
            "[vdso]",
            "x.py:7",
            "a/b",
            "é",
            "\u{0}",
            "\n",
            "%s",
            "kworker/0:1",
            "mysqld",
            "uv__io_poll",
            "std::thread::park",
            "sleep",
        ];
        let text = TEXTS[value as usize % TEXTS.len()];
        match value >> 8 & 0xf {
            0 => format!("{text}{}", value >> 12 & 0xffff),
            15 => text.repeat((value >> 12 & 0xfff) as usize),
            _ => text.to_owned(),
        }
    }
}

impl Chosen for Vec<u32> {
    fn of(value: u64) -> Vec<u32> {
        let step = (value >> 8 & 0xf) as u32;
        let first = (value >> 12) as u32;
        let count = match value & 0xff {
            0xff => 4096,
            count => count as u32 & 0x1f,
        };
        (0..count)
            .map(|at| first.wrapping_add(at.wrapping_mul(step)))
            .collect()
    }
}
