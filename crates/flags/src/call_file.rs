//! A call that was stepped, as a file: so that a good run can be kept for the day when it goes badly.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::call::Call;

/// What such a file begins with.
const MAGIC: &[u8] = b"hangdog call 1\n";
/// A larger file is none.
const MOST_BYTES: u64 = 2 << 30;

/// A call, and what it is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The function, as the file's symbols have it.
    pub function: String,
    /// The process's name.
    pub process: String,
    /// The process.
    pub pid: u32,
    /// The call.
    pub call: Call,
}

impl Recorded {
    /// Writes it; a file of this name is replaced once the whole is written.
    ///
    /// # Errors
    /// What the system says.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let bytes = postcard::to_stdvec(self).map_err(io::Error::other)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = path.with_file_name(name);
        let mut file = File::create(&part)?;
        let written = (file.write_all(MAGIC))
            .and_then(|()| file.write_all(&bytes))
            .and_then(|()| file.sync_all());
        written
            .and_then(|()| fs::rename(&part, path))
            .inspect_err(|_| {
                let _ = fs::remove_file(&part);
            })
    }

    /// Reads it.
    ///
    /// # Errors
    /// What the system says, or that it is no such file.
    pub fn load(path: &Path) -> io::Result<Recorded> {
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut bytes = Vec::new();
        let mut file = File::open(path)?.take(MOST_BYTES + 1);
        let mut magic = [0; MAGIC.len()];
        if file.read_exact(&mut magic).is_err() || magic != MAGIC {
            return Err(wrong(
                "it is no file of hangdog step, or of another version",
            ));
        }
        file.read_to_end(&mut bytes)?;
        postcard::from_bytes(&bytes).map_err(|_| wrong("it is damaged or cut short"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{End, Loaded, Seen};
    use crate::registers::Step;

    fn recorded() -> Recorded {
        let step = Step {
            ip: 0x1000,
            ..Step::default()
        };
        let loads = vec![Loaded {
            address: 8,
            size: 4,
            value: u64::MAX,
        }];
        Recorded {
            function: "serve".into(),
            process: "shop".into(),
            pid: 7,
            call: Call {
                tid: 8,
                end: End::Returned,
                maps: Vec::new(),
                code: [(0x1000, vec![0x90])].into(),
                steps: vec![Seen { step, loads }],
            },
        }
    }

    /// What was written is read back, and replaces what was there.
    #[test]
    fn files_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("good.call");
        fs::write(&path, "old").unwrap();
        recorded().save(&path).unwrap();
        assert_eq!(Recorded::load(&path).unwrap(), recorded());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// No file, another file, and one that is cut short or has any byte changed: an error or another call,
    /// and no panic.
    #[test]
    fn damaged_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.call");
        assert!(Recorded::load(&path).is_err());
        recorded().save(&path).unwrap();
        let good = fs::read(&path).unwrap();
        for length in 0..good.len() {
            fs::write(&path, &good[..length]).unwrap();
            assert!(Recorded::load(&path).is_err(), "{length}");
        }
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 0xff;
            fs::write(&path, &bytes).unwrap();
            if let Ok(other) = Recorded::load(&path) {
                let _ = crate::diverge::compare(&recorded().call, &other.call);
            }
        }
    }
}
