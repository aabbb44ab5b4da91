//! Memory that several processes share, found by what is mapped where.

use std::fs;

/// A mapping that others may have too.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shared {
    start: u64,
    end: u64,
    offset: u64,
    /// Device and inode.
    what: String,
}

/// The shared mappings among the lines of a /proc/PID/maps.
fn shared(maps: &str) -> impl Iterator<Item = Shared> + '_ {
    maps.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let permissions = words.next()?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let offset = number(words.next()?)?;
        let what = format!("{} {}", words.next()?, words.next()?);
        permissions.ends_with('s').then_some(())?;
        Some(Shared {
            start: number(start)?,
            end: number(end)?,
            offset,
            what,
        })
    })
}

fn maps(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Where other processes have the memory that lies at `address` in process `pid`, if they share it.
pub(super) fn elsewhere(pid: u32, address: u64) -> Vec<(u32, u64)> {
    let own = maps(pid);
    let Some(own) = shared(&own).find(|it| (it.start..it.end).contains(&address)) else {
        return Vec::new();
    };
    let place = address - own.start + own.offset;
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|&other: &u32| other != pid)
        .filter_map(|other| {
            let found = shared(&maps(other)).find(|it| {
                it.what == own.what
                    && place
                        .checked_sub(it.offset)
                        .is_some_and(|at| at < it.end - it.start)
            })?;
            Some((other, place - found.offset + found.start))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the lines of maps only those that are shared count, each with its file by device and inode.
    #[test]
    fn shared_mappings_are_read() {
        let maps = "1000-3000 rw-s 00002000 00:01 77    /dev/shm/a\n\
                    3000-4000 rw-p 00000000 fe:00 5\n";
        let found: Vec<Shared> = shared(maps).collect();
        let expected = Shared {
            start: 0x1000,
            end: 0x3000,
            offset: 0x2000,
            what: "00:01 77".into(),
        };
        assert_eq!(found, [expected]);
    }
}
