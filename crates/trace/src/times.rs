//! Whether a table's times can be: within the recording, and in order where they are to be.

use std::any::Any;

/// Looks at the columns `ts` and `duration` of a table whose parts have so many rows each; `latest`
/// is the latest time that can be, ns since the trace's start.
///
/// # Errors
/// The first row that cannot be, and why.
pub(crate) fn check(
    columns: &[(&str, &dyn Any)],
    ascends: bool,
    parts: impl Iterator<Item = usize>,
    latest: u64,
) -> Result<(), (usize, String)> {
    let column = |wanted: &str| -> &[u64] {
        let found = columns.iter().find(|(name, _)| *name == wanted);
        let values = found.and_then(|(_, values)| values.downcast_ref::<Vec<u64>>());
        values.map_or(&[], Vec::as_slice)
    };
    let (ts, durations) = (column("ts"), column("duration"));
    if let Some(row) = ts.iter().position(|&ts| ts > latest) {
        return Err((
            row,
            format!("a time in it, {} ns, lies outside the recording", ts[row]),
        ));
    }
    let too_long = |(&ts, &duration): (&u64, &u64)| duration > latest - ts;
    if let Some(row) = ts.iter().zip(durations).position(too_long) {
        return Err((
            row,
            "something in it lasts longer than the recording".to_owned(),
        ));
    }
    if ascends {
        let mut first = 0;
        for rows in parts {
            let times = ts.get(first..first + rows).unwrap_or_default();
            if let Some(row) = times.windows(2).position(|pair| pair[0] > pair[1]) {
                return Err((first + row + 1, "its times do not ascend".to_owned()));
            }
            first += rows;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_bad(ts: &[u64], duration: &[u64], ascends: bool, parts: &[usize]) -> Option<usize> {
        let (ts, duration) = (ts.to_vec(), duration.to_vec());
        let columns: [(&str, &dyn Any); 2] = [("ts", &ts), ("duration", &duration)];
        let outcome = check(&columns, ascends, parts.iter().copied(), 100);
        outcome.err().map(|(row, _)| row)
    }

    /// A time after the end is found, and one that leads there.
    #[test]
    fn within_the_recording() {
        assert_eq!(first_bad(&[1, 100], &[], true, &[2]), None);
        assert_eq!(first_bad(&[1, 101], &[], true, &[2]), Some(1));
        assert_eq!(first_bad(&[1, 40], &[99, 60], false, &[2]), None);
        assert_eq!(first_bad(&[1, 40], &[99, 61], false, &[2]), Some(1));
        assert_eq!(first_bad(&[1], &[u64::MAX], false, &[1]), Some(0));
    }

    /// Times ascend within a part, not from one to the next.
    #[test]
    fn in_order_within_a_part() {
        assert_eq!(first_bad(&[5, 5, 9, 1, 2], &[], true, &[3, 2]), None);
        assert_eq!(first_bad(&[5, 5, 9, 2, 1], &[], true, &[3, 2]), Some(4));
        assert_eq!(first_bad(&[5, 5, 9, 2, 1], &[], false, &[3, 2]), None);
    }
}
