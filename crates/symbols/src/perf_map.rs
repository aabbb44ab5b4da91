//! Perf maps: the text file in which a just-in-time compiler says what it put where.
//!
//! A line a piece of code: start and size in hexadecimal, and what it is. A line that does not
//! read so is passed over: the file may be cut short, or be written to right now.

use std::io::{BufRead, BufReader, Read};

use crate::spans::Sought;

/// What is longer is cut into lines of this length, bytes.
const LONGEST_LINE: u64 = 64 << 10;

/// Reads the lines, up to the last that is whole.
pub(crate) fn parse(file: impl Read, code: &mut Sought<'_>) {
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if let Some((start, size, name)) = piece(&String::from_utf8_lossy(&line)) {
            code.put(start, size, name);
        }
    }
}

fn piece(line: &str) -> Option<(u64, u64, &str)> {
    let mut words = line.trim_end().splitn(3, ' ');
    let mut number = || {
        let word = words.next()?;
        u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = words.next()?.trim();
    (!name.is_empty()).then_some((start, size, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROOM: usize = 1 << 20;

    /// Lines name code; damaged lines and lines without a name do not, and hide no others.
    #[test]
    fn lines_are_read() {
        let text = b"1000 10 first one\nnonsense\n0x2000 0x20 second\n3000 8 \n4000 8\n50";
        let sought = [0x50, 0x100f, 0x1010, 0x201f, 0x3000, 0x4000];
        let mut code = Sought::new(&sought, ROOM);
        parse(&text[..], &mut code);
        let found = sought.map(|address| code.find(address));
        let (first, second) = (Some((0x1000, "first one")), Some((0x2000, "second")));
        assert_eq!(found, [None, first, None, second, None, None]);
    }

    /// Code that was moved away or thrown away gives its place to what came after it.
    #[test]
    fn the_last_line_counts() {
        let mut code = Sought::new(&[0x1004, 0x1008], ROOM);
        parse(&b"1000 10 old\n1008 10 new\n"[..], &mut code);
        assert_eq!(code.find(0x1004), None);
        assert_eq!(code.find(0x1008), Some((0x1008, "new")));
    }

    proptest! {
        /// Whatever the file holds, reading it ends, and every piece found lies where it was said.
        #[test]
        fn damage_is_survived(bytes: Vec<u8>, address: u64) {
            let sought = [address];
            let mut code = Sought::new(&sought, ROOM);
            parse(&bytes[..], &mut code);
            if let Some((start, name)) = code.find(address) {
                prop_assert!(start <= address && !name.is_empty());
            }
        }
    }
}
