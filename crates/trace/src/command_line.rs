//! What a command line says of the program: the file that is meant, and the script of an interpreter.
//!
//! Arguments are divided by blanks, as traces keep them; one that contains blanks is taken for several.

/// Whether a command line is of this program or script, by its path or the last part of it. A class of
/// Java stands behind the class path.
pub(crate) fn runs(command: &str, wanted: &str) -> bool {
    let is_meant = |word: &str| word == wanted || file(word) == wanted;
    let mut words = command.split(' ');
    let Some(program) = words.next() else {
        return false;
    };
    let looked_at = if file(program) == "java" { 2 } else { 1 };
    let mut arguments = words.filter(|word| !word.starts_with('-'));
    is_meant(program) || arguments.by_ref().take(looked_at).any(is_meant)
}

/// An interpreter, and those of its options that matter for where its script stands.
struct Interpreter {
    /// Its names, without a version behind.
    names: &'static [&'static str],
    /// Options whose value is the next word.
    valued: &'static [&'static str],
    /// Options with which the program stands in the command line itself, or in none of its words.
    inline: &'static [&'static str],
    /// Options whose value is what it runs.
    runs: &'static [&'static str],
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["python", "pypy"],
        valued: &["-W", "-X", "--check-hash-based-pycs"],
        inline: &["-c"],
        runs: &["-m"],
    },
    Interpreter {
        names: &["sh", "bash", "dash", "zsh", "ksh"],
        valued: &["-o", "-O", "+o", "+O", "--rcfile", "--init-file"],
        inline: &["-c", "-s"],
        runs: &[],
    },
    Interpreter {
        names: &["node", "nodejs"],
        valued: &[
            "-r",
            "--require",
            "--import",
            "--loader",
            "-C",
            "--conditions",
        ],
        inline: &["-e", "--eval", "-p", "--print", "-pe"],
        runs: &[],
    },
    Interpreter {
        names: &["ruby", "perl"],
        valued: &["-I", "-r", "-C"],
        inline: &["-e", "-E"],
        runs: &[],
    },
    Interpreter {
        names: &["php"],
        valued: &["-d", "-c", "-S", "-t", "-z"],
        inline: &["-r", "-R", "-B", "-E"],
        runs: &["-f"],
    },
    Interpreter {
        names: &["java"],
        valued: &[
            "-cp",
            "-classpath",
            "--class-path",
            "-p",
            "--module-path",
            "--add-modules",
            "--add-opens",
            "--add-exports",
            "--add-reads",
        ],
        inline: &[],
        runs: &["-jar", "-m", "--module"],
    },
    Interpreter {
        names: &[
            "lua", "luajit", "tclsh", "wish", "gjs", "Rscript", "mono", "guile",
        ],
        valued: &["-l"],
        inline: &["-e", "-c"],
        runs: &[],
    },
];

/// What the interpreter of a command line runs: a script's file without its folders, a module or a
/// class; `None` if it is none that is known, or its program is given in other ways.
pub(crate) fn script(command: &str) -> Option<&str> {
    let mut words = command.split(' ').filter(|word| !word.is_empty());
    let program = file(words.next()?);
    let program = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let interpreter = INTERPRETERS
        .iter()
        .find(|interpreter| interpreter.names.contains(&program))?;
    let is_shell = interpreter.names.contains(&"sh");
    while let Some(word) = words.next() {
        if interpreter.runs.contains(&word) {
            return words.next().map(file);
        }
        // Shells take several options as one word: `bash -ec`.
        let is_combined = is_shell && word.starts_with('-') && !word.starts_with("--");
        if interpreter.inline.contains(&word) || is_combined && word.contains('c') {
            return None;
        }
        if interpreter.valued.contains(&word) {
            words.next();
        } else if !word.starts_with(['-', '+']) {
            // A pipe or a here-document has no name.
            let is_file = !word.starts_with("/dev/") && !word.starts_with("/proc/");
            return Some(file(word)).filter(|file| is_file && !file.is_empty());
        }
    }
    None
}

/// Programs of which the first argument tells what they do.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "apt-get",
    "aptitude",
    "brew",
    "btrfs",
    "buildah",
    "cargo",
    "ceph",
    "consul",
    "cryptsetup",
    "dnf",
    "docker",
    "dotnet",
    "flatpak",
    "gh",
    "git",
    "go",
    "helm",
    "hg",
    "incus",
    "ip",
    "kubectl",
    "lxc",
    "minikube",
    "nix",
    "nmcli",
    "openssl",
    "podman",
    "rclone",
    "restic",
    "rustup",
    "skopeo",
    "snap",
    "svn",
    "systemctl",
    "terraform",
    "vault",
    "virsh",
    "yum",
    "zfs",
    "zpool",
    "zypper",
];

/// Options of these before the subcommand whose value is the next word.
const VALUED: &[&str] = &[
    "-C",
    "-c",
    "-H",
    "-R",
    "-n",
    "-o",
    "--cgroup-manager",
    "--config",
    "--context",
    "--git-dir",
    "--host",
    "--kubeconfig",
    "--log-level",
    "--namespace",
    "--option",
    "--root",
    "--runroot",
    "--runtime",
    "--storage-driver",
    "--tmpdir",
    "--work-tree",
];

/// What such a program was asked to do; `None` of any other.
pub(crate) fn subcommand(command: &str) -> Option<&str> {
    let mut words = command.split(' ');
    let program = file(words.next()?);
    let first = loop {
        match words.next()? {
            option if VALUED.contains(&option) => drop(words.next()),
            option if option.starts_with(['-', '+']) => {}
            first => break first,
        }
    };
    let is_word = first.starts_with(|c: char| c.is_ascii_lowercase())
        && first
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (WITH_SUBCOMMANDS.contains(&program) && is_word).then_some(first)
}

fn file(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{runs, script, subcommand};

    /// The first argument counts that is no option and no option's value, and only of programs that have several
    /// uses.
    #[test]
    fn subcommands_are_found() {
        assert_eq!(subcommand("/usr/bin/podman commit c img"), Some("commit"));
        assert_eq!(subcommand("apt-get -y install x"), Some("install"));
        assert_eq!(subcommand("git -C docs --no-pager log"), Some("log"));
        assert_eq!(subcommand("cargo +nightly build"), Some("build"));
        assert_eq!(subcommand("git /srv/repo"), None);
        assert_eq!(subcommand("ls status"), None);
        assert_eq!(subcommand("git"), None);
    }

    /// A script is known by its file, whoever interprets it.
    #[test]
    fn scripts_are_found() {
        assert!(runs("python3 -u /srv/server.py --port 1", "server.py"));
        assert!(runs("/usr/bin/gunicorn app:main", "gunicorn"));
        assert!(runs("node server.js", "server.js"));
        assert!(runs("/usr/bin/java -cp target Shop 7", "Shop"));
        assert!(!runs("vim notes server.py", "server.py"));
        assert!(!runs("", "server.py"));
    }

    /// Options, and the values of options, are no scripts; a program given inline has none.
    #[test]
    fn scripts_are_told() {
        for (command, expected) in [
            ("python3 -u /srv/server.py --port 1", Some("server.py")),
            (
                "/usr/bin/python3.11 -W ignore -m http.server 80",
                Some("http.server"),
            ),
            ("python3 -c import_time", None),
            ("python3", None),
            ("bash -e /tmp/deploy.sh now", Some("deploy.sh")),
            ("bash -ec true", None),
            ("sh -c exec /srv/run", None),
            ("-bash", None),
            ("bash /dev/fd/3", None),
            (
                "node --inspect -r dotenv/config /app/server.js",
                Some("server.js"),
            ),
            ("node -e setTimeout(f)", None),
            ("ruby -I lib bin/rails server", Some("rails")),
            ("php -S 127.0.0.1:80 router.php", Some("router.php")),
            (
                "java -Xmx1g -cp a.jar:b.jar org.example.Main x",
                Some("org.example.Main"),
            ),
            ("java -jar /opt/shop.jar", Some("shop.jar")),
            ("vim server.py", None),
            ("", None),
        ] {
            assert_eq!(script(command), expected, "{command}");
        }
    }
}
