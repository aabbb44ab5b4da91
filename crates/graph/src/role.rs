//! What a thread is for, by its name: the same from run to run and from machine to machine.

/// A thread's or process's name with each run of digits as `#`: `worker-3` and `worker-12` have
/// one role.
pub fn role(name: &str) -> String {
    let mut role = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter.is_ascii_digit() {
            true if role.ends_with('#') => {}
            true => role.push('#'),
            false => role.push(letter),
        }
    }
    role
}

#[cfg(test)]
mod tests {
    use super::role;

    /// Numbers tell threads of one role apart, whatever their length; nothing else does.
    #[test]
    fn numbers_are_no_role() {
        assert_eq!(role("worker-3"), role("worker-12"));
        assert_eq!(role("kworker/0:1H"), "kworker/#:#H");
        assert_ne!(role("reader"), role("writer"));
    }
}
