//! What a problem's time went to, in as much detail as a screen can show.
//!
//! A thread that waits a million times leaves a million spans, which no screen has room for and which take longer to
//! send and to draw than to find. Then the problem is cut into equal parts, and in each the spans of one thread and
//! kind are one, in the order in which they first came: areas stay exact.

use hangdog_diagnose::verdict::BlameSpan;

/// So many are drawn one by one.
const MOST: usize = 32_768;
/// Into so many parts it is cut otherwise.
const PARTS: u64 = 8_192;

/// The spans, or what they come to in each part of their time; they are in order.
pub(crate) fn drawable(spans: Vec<BlameSpan>) -> Vec<BlameSpan> {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return spans;
    };
    if spans.len() <= MOST {
        return spans;
    }
    let from = first.from_ns;
    let width = last.to_ns.saturating_sub(from).div_ceil(PARTS).max(1);
    let mut drawn = Vec::new();
    let mut part = 0;
    let mut of_part: Vec<BlameSpan> = Vec::new();
    for span in &spans {
        let mut start = span.from_ns;
        while start < span.to_ns {
            let at = start.saturating_sub(from) / width;
            if at != part {
                flush(&mut drawn, &mut of_part, from + part * width);
                part = at;
            }
            let end = span.to_ns.min(from.saturating_add((at + 1) * width));
            let alike = |known: &&mut BlameSpan| (known.utid, known.kind) == (span.utid, span.kind);
            match of_part.iter_mut().find(alike) {
                Some(known) => known.to_ns += end - start,
                None => of_part.push(BlameSpan {
                    from_ns: 0,
                    to_ns: end - start,
                    ..*span
                }),
            }
            start = end;
        }
    }
    flush(&mut drawn, &mut of_part, from + part * width);
    drawn
}

/// Puts the spans of a part, whose ends are their lengths, one behind the other from `at` on.
fn flush(drawn: &mut Vec<BlameSpan>, of_part: &mut Vec<BlameSpan>, mut at: u64) {
    for span in of_part.drain(..) {
        let end = at + span.to_ns;
        match drawn.last_mut() {
            Some(last) if last.to_ns == at && (last.utid, last.kind) == (span.utid, span.kind) => {
                last.to_ns = end;
            }
            _ => drawn.push(BlameSpan {
                from_ns: at,
                to_ns: end,
                ..span
            }),
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn sums(spans: &[BlameSpan]) -> BTreeMap<(u32, &'static str), u64> {
        let mut sums = BTreeMap::new();
        for span in spans {
            *sums.entry((span.utid, span.kind)).or_default() += span.to_ns - span.from_ns;
        }
        sums
    }

    /// Three kinds in turn, and a long wait among them: less is drawn, without gap, and each has the time that it
    /// had.
    #[test]
    fn areas_stay() {
        let mut spans = Vec::new();
        let mut at = 1_000;
        for turn in 0..60_000u64 {
            for (utid, kind, ns) in [
                (1, "run", 700 + turn % 7),
                (2, "run", 300),
                (1, "lock", 150),
            ] {
                spans.push(BlameSpan {
                    from_ns: at,
                    to_ns: at + ns,
                    utid,
                    kind,
                });
                at += ns;
            }
            if turn == 30_000 {
                spans.push(BlameSpan {
                    from_ns: at,
                    to_ns: at + 50_000_000,
                    utid: 3,
                    kind: "disk",
                });
                at += 50_000_000;
            }
        }
        let drawn = drawable(spans.clone());
        assert!(drawn.len() < 4 * PARTS as usize, "{}", drawn.len());
        assert_eq!(sums(&drawn), sums(&spans));
        assert!(
            drawn
                .windows(2)
                .all(|pair| pair[0].to_ns == pair[1].from_ns)
        );
        assert_eq!(
            (drawn[0].from_ns, drawn[drawn.len() - 1].to_ns),
            (1_000, at)
        );
        // The long wait is one span, but for where a part begins or ends.
        assert!(
            drawn
                .iter()
                .any(|span| span.to_ns - span.from_ns > 49_000_000)
        );
        let few = spans[..300].to_vec();
        assert_eq!(drawable(few.clone()), few);
    }
}
