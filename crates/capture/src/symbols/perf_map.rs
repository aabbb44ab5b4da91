//! Perf maps: the text file in which a just-in-time compiler says what it put where.
//!
//! A line a piece of code: start and size in hexadecimal, and what it is. A line that does not
//! read so is passed over: the file may be cut short, or be written to right now.

use super::spans::Spans;

/// The code that the lines name.
pub(super) fn parse(bytes: &[u8]) -> Spans<String> {
    let mut code = Spans::default();
    for line in bytes.split(|&byte| byte == b'\n') {
        if let Some((start, size, name)) = piece(&String::from_utf8_lossy(line)) {
            code.insert(start, size, name.to_owned());
        }
    }
    code
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

    /// Lines name code; damaged lines and lines without a name do not, and hide no others.
    #[test]
    fn lines_are_read() {
        let code = parse(b"1000 10 first one\nnonsense\n0x2000 0x20 second\n3000 8 \n4000 8\n50");
        let at = |address| {
            code.find(address)
                .map(|(start, name)| (start, name.as_str()))
        };
        assert_eq!(at(0x100f), Some((0x1000, "first one")));
        assert_eq!(at(0x1010), None);
        assert_eq!(at(0x201f), Some((0x2000, "second")));
        assert_eq!((at(0x3000), at(0x4000), at(0x50)), (None, None, None));
    }

    /// Code that was moved away or thrown away gives its place to what came after it.
    #[test]
    fn the_last_line_counts() {
        let code = parse(b"1000 10 old\n1008 10 new\n");
        assert_eq!(code.find(0x1004), None);
        assert_eq!(code.find(0x1008), Some((0x1008, &"new".to_owned())));
    }

    proptest! {
        /// Whatever the file holds, reading it ends, and every piece found lies where it was said.
        #[test]
        fn damage_is_survived(bytes: Vec<u8>, address: u64) {
            let code = parse(&bytes);
            if let Some((start, name)) = code.find(address) {
                prop_assert!(start <= address && !name.is_empty());
            }
        }
    }
}
