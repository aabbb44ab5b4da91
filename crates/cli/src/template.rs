//! Templates: what to record and how to look, in a file of the user's, so that one word says it.
//!
//! A template is TOML. `[record]`, `[flight]` and `[watch]` hold options of these commands by their long
//! names; they become arguments, so that what an option may be is decided in one place. An option that
//! is given on the command line replaces the template's. `next` names commands that are proposed when
//! the trace is there, and `[view]` says how the page begins.
//!
//! A name is looked for in the user's folder, under sudo in that of the caller, and among those that come
//! with hangdog; what has a slash is the path of a file.

use crate::args::Cli;
use crate::home::{self, Kind};
use anyhow::{Context, Result, bail};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory, FromArgMatches};
use hangdog_report::views::{Order, View};
use serde::Serialize;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table, Value};

/// The commands that take a template.
pub const COMMANDS: [&str; 3] = ["record", "flight", "watch"];
/// The options of these that are no matter of a template: what names a file to write or a command to run is
/// nothing that root takes from a file of somebody else's.
const NOT_IN_TEMPLATES: [&str; 5] = ["output", "dir", "template", "help", "command"];
/// The longest file that is read, bytes.
const LONGEST: u64 = 1 << 20;
/// Those that come with hangdog.
const SHIPPED: [(&str, &str); 4] = [
    ("hang", include_str!("../templates/hang.toml")),
    ("latency", include_str!("../templates/latency.toml")),
    ("desktop", include_str!("../templates/desktop.toml")),
    ("paging", include_str!("../templates/paging.toml")),
];

/// Where a template is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Origin {
    /// It comes with hangdog.
    Shipped,
    /// A file.
    File(PathBuf),
}

impl Origin {
    /// As it is printed.
    pub fn text(&self) -> String {
        match self {
            Origin::Shipped => "shipped".to_owned(),
            Origin::File(path) => path.display().to_string(),
        }
    }
}

/// A template.
#[derive(Debug)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Where it is from.
    pub origin: Origin,
    /// All that it holds.
    pub document: DocumentMut,
}

impl Template {
    fn parse(name: &str, origin: Origin, text: &str) -> Result<Template> {
        let template = Template {
            name: name.to_owned(),
            origin,
            document: text.parse().context("it is no TOML")?,
        };
        template.check()?;
        Ok(template)
    }

    fn read(name: &str, path: &Path) -> Result<Template> {
        let cannot = || format!("template {}", path.display());
        let text = home::text(path, LONGEST).with_context(cannot)?;
        Template::parse(name, Origin::File(path.to_owned()), &text).with_context(cannot)
    }

    /// Refuses what means nothing, so that a mistyped word is not passed over.
    fn check(&self) -> Result<()> {
        for (key, item) in self.document.iter() {
            match key {
                "description" => {
                    item.as_str().context("description is no text")?;
                }
                "next" => {
                    self.next().context("next is no list of texts")?;
                }
                "view" => {
                    self.view()?;
                }
                command if COMMANDS.contains(&command) => {
                    self.arguments(command, |_| true)?;
                }
                other => bail!(
                    "it has '{other}', which is unknown: a template has description, next, record, \
                     flight, watch and view"
                ),
            }
        }
        Ok(())
    }

    /// What it is for; empty if it does not say.
    pub fn description(&self) -> &str {
        let description = self.document.get("description");
        description.and_then(Item::as_str).unwrap_or("")
    }

    /// The commands for which it has options.
    pub fn commands(&self) -> Vec<&'static str> {
        let has = |command: &&str| self.document.contains_key(command);
        COMMANDS.into_iter().filter(has).collect()
    }

    /// The commands that are proposed when the trace is there; none if that is no list of texts.
    pub fn next(&self) -> Option<Vec<String>> {
        let Some(next) = self.document.get("next") else {
            return Some(Vec::new());
        };
        let texts = next.as_array()?.iter();
        texts.map(|text| text.as_str().map(str::to_owned)).collect()
    }

    /// How the page begins.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn view(&self) -> Result<View> {
        let mut view = View {
            name: self.name.clone(),
            description: self.description().to_owned(),
            ..View::default()
        };
        let Some(table) = self.document.get("view") else {
            return Ok(view);
        };
        let table = table.as_table_like().context("[view] is no table")?;
        for (key, item) in table.iter() {
            let text = item.as_str();
            match (key, text) {
                ("sort", Some("busy")) => view.sort = Some(Order::Busy),
                ("sort", Some("waiting")) => view.sort = Some(Order::Waiting),
                ("sort", Some("name")) => view.sort = Some(Order::Name),
                ("sort", _) => bail!("[view] sort is \"busy\", \"waiting\" or \"name\""),
                ("filter", Some(filter)) => view.filter = filter.to_owned(),
                ("filter", None) => bail!("[view] filter is no text"),
                (other, _) => bail!("[view] has '{other}'; it has sort and filter only"),
            }
        }
        Ok(view)
    }

    /// The arguments of a command for those options, by clap's id, that are `wanted`.
    fn arguments(&self, command: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<OsString>> {
        let Some(options) = self.document.get(command) else {
            return Ok(Vec::new());
        };
        let options = options
            .as_table_like()
            .with_context(|| format!("[{command}] is no table"))?;
        let cli = Cli::command();
        let known = cli
            .find_subcommand(command)
            .with_context(|| format!("there is no command {command}"))?;
        let mut arguments = Vec::new();
        for (key, item) in options.iter() {
            let option = known
                .get_arguments()
                .find(|argument| argument.get_long() == Some(key));
            let option =
                option.filter(|option| !NOT_IN_TEMPLATES.contains(&option.get_id().as_str()));
            let Some(option) = option else {
                bail!(
                    "[{command}] has no option '{key}' that can be in a template; \
                     `hangdog {command} --help` lists them"
                );
            };
            let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
            let values = texts(item)
                .filter(|values| is_flag == item.is_bool() && (is_flag || !values.is_empty()))
                .with_context(|| {
                    let what = if is_flag { "true or false" } else { "a value" };
                    format!("[{command}] {key} needs {what}")
                })?;
            if !wanted(option.get_id().as_str()) {
                continue;
            }
            match item.as_bool() {
                Some(true) => arguments.push(format!("--{key}").into()),
                Some(false) => {}
                None => {
                    let argument = |value| OsString::from(format!("--{key}={value}"));
                    arguments.extend(values.into_iter().map(argument));
                }
            }
        }
        Ok(arguments)
    }
}

/// The values of an option; none if it is a table or a date.
fn texts(item: &Item) -> Option<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        _ => None,
    };
    match item.as_value()? {
        Value::Array(values) => values.iter().map(text).collect(),
        Value::Boolean(_) => Some(Vec::new()),
        value => Some(vec![text(value)?]),
    }
}

/// The folders in which templates are looked for, the user's own first.
fn folders() -> impl Iterator<Item = PathBuf> {
    let folders = [home::own(Kind::Config), home::of_caller(Kind::Config)];
    folders.into_iter().flatten().map(|it| it.join("templates"))
}

/// Where the user's own template of that name is.
///
/// # Errors
/// If it is no name, or there is no home.
pub fn own_path(name: &str) -> Result<PathBuf> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_plain) {
        bail!("a template's name has letters, digits, - and _ only");
    }
    let folder = home::own(Kind::Config).context("neither XDG_CONFIG_HOME nor HOME is set")?;
    Ok(folder.join("templates").join(format!("{name}.toml")))
}

/// The template of a name, or in a file.
///
/// # Errors
/// If there is none, or something is wrong with it.
pub fn find(name: &str) -> Result<Template> {
    if name.contains('/') {
        let path = Path::new(name);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        return Template::read(&stem, path);
    }
    for folder in folders() {
        let path = folder.join(format!("{name}.toml"));
        if path.exists() {
            return Template::read(name, &path);
        }
    }
    match SHIPPED.into_iter().find(|(shipped, _)| *shipped == name) {
        Some((_, text)) => Template::parse(name, Origin::Shipped, text),
        None => bail!("there is no template '{name}'; `hangdog template list` lists them"),
    }
}

/// All that there are, by name, and what is wrong with files that are none.
pub fn all() -> (Vec<Template>, Vec<anyhow::Error>) {
    let mut names: Vec<String> = SHIPPED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut wrong = Vec::new();
    for folder in folders() {
        let files = match fs::read_dir(&folder) {
            Ok(files) => files,
            Err(why) if why.kind() == ErrorKind::NotFound => continue,
            Err(why) => {
                wrong.push(anyhow::Error::from(why).context(folder.display().to_string()));
                continue;
            }
        };
        for path in files.flatten().map(|file| file.path()) {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if let (Some(name), Some("toml")) = (stem, path.extension().and_then(|it| it.to_str()))
            {
                names.push(name.to_owned());
            }
        }
    }
    names.sort();
    names.dedup();
    let mut templates = Vec::new();
    for name in names {
        match find(&name) {
            Ok(template) => templates.push(template),
            Err(why) => wrong.push(why),
        }
    }
    (templates, wrong)
}

/// The command line, with the options of the template that it names.
///
/// # Errors
/// If there is no such template, or an option of it is wrong. Leaves the process as clap does where the
/// command line itself is.
pub fn command_line() -> Result<Cli> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let matches = Cli::command().get_matches_from(&arguments);
    let given = given(&matches)?;
    let matches = match given {
        None => matches,
        Some((template, extra)) => {
            // The command is the first argument: there is no option before it.
            let (head, tail) = arguments.split_at(arguments.len().min(2));
            let all = head.iter().chain(&extra).chain(tail);
            Cli::command()
                .try_get_matches_from(all)
                .with_context(|| format!("template {}", template.name))?
        }
    };
    Ok(Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
}

/// The template of a command line, and the arguments that it adds.
fn given(matches: &ArgMatches) -> Result<Option<(Template, Vec<OsString>)>> {
    let Some((command, matches)) = matches.subcommand() else {
        return Ok(None);
    };
    if !COMMANDS.contains(&command) {
        return Ok(None);
    }
    let Some(name) = matches.get_one::<String>("template") else {
        return Ok(None);
    };
    let template = find(name)?;
    let commands = template.commands();
    if !commands.contains(&command) {
        bail!(
            "template {name} is not for {command}: it is for {}",
            commands.join(", ")
        );
    }
    let is_typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let extra = template.arguments(command, |id| !is_typed(id))?;
    Ok(Some((template, extra)))
}

/// The options of a command line as a template holds them.
///
/// # Errors
/// If a template cannot hold one.
pub fn options(command: &str, matches: &ArgMatches) -> Result<Table> {
    let cli = Cli::command();
    let known = cli
        .find_subcommand(command)
        .with_context(|| format!("there is no command {command}"))?;
    let mut table = Table::new();
    for option in known.get_arguments() {
        let id = option.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let Some(long) = option
            .get_long()
            .filter(|_| !NOT_IN_TEMPLATES.contains(&id))
        else {
            bail!("a template holds no {id}");
        };
        let value = match option.get_action() {
            ArgAction::SetTrue => Value::from(true),
            action => {
                let raw = matches.get_raw(id).into_iter().flatten();
                let mut values: Vec<Value> = Vec::new();
                for value in raw {
                    let text = value
                        .to_str()
                        .with_context(|| format!("--{long} is not plain text"))?;
                    values.push(match text.parse::<i64>() {
                        Ok(number) if number.to_string() == text => number.into(),
                        _ => text.into(),
                    });
                }
                match (action, values.pop()) {
                    (ArgAction::Append, last) => {
                        Value::from(Array::from_iter(values.into_iter().chain(last)))
                    }
                    (_, Some(last)) => last,
                    (_, None) => continue,
                }
            }
        };
        table.insert(long, Item::Value(value));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Template> {
        Template::parse("t", Origin::Shipped, text)
    }

    /// Those that come with hangdog are right, and say what they are for.
    #[test]
    fn shipped() -> Result<()> {
        for (name, text) in SHIPPED {
            let template = Template::parse(name, Origin::Shipped, text)?;
            assert!(!template.description().is_empty(), "{name}");
            assert!(template.commands().contains(&"record"), "{name}");
            for command in template.commands() {
                let arguments = template.arguments(command, |_| true)?;
                let words = ["hangdog".into(), command.into()];
                Cli::command().try_get_matches_from(words.into_iter().chain(arguments))?;
            }
            for next in template.next().into_iter().flatten() {
                let words: Vec<&str> = next.split(' ').collect();
                let words = ["hangdog"].into_iter().chain(words).chain(["a.hang"]);
                Cli::command().try_get_matches_from(words)?;
            }
        }
        Ok(())
    }

    /// Values become arguments; those that were typed are left out.
    #[test]
    fn arguments() -> Result<()> {
        let template = parse(
            "[record]\nsample = 1000\nmemory = '1G'\nfaults = true\ntransfers = false\n\
             uprobe = ['a:b', 'a:c']\n",
        )?;
        let all = template.arguments("record", |_| true)?;
        let expected = [
            "--sample=1000",
            "--memory=1G",
            "--faults",
            "--uprobe=a:b",
            "--uprobe=a:c",
        ];
        assert_eq!(all, expected.map(OsString::from));
        let some = template.arguments("record", |id| id != "uprobe" && id != "sample")?;
        assert_eq!(some, ["--memory=1G", "--faults"].map(OsString::from));
        Ok(())
    }

    /// What means nothing is refused, and the sentence says what.
    #[test]
    fn refused() {
        for (text, word) in [
            ("[recrod]\n", "recrod"),
            ("[record]\nsampel = 1\n", "sampel"),
            ("[record]\noutput = 'x'\n", "output"),
            ("[watch]\ndir = '/etc'\n", "dir"),
            ("[record]\nfaults = 'yes'\n", "true or false"),
            ("[record]\nmemory = true\n", "a value"),
            ("[record]\nuprobe = []\n", "a value"),
            ("[record.memory]\n", "a value"),
            ("record = 1\n", "no table"),
            ("next = 'why'\n", "list"),
            ("description = 1\n", "text"),
            ("[view]\nsort = 'size'\n", "busy"),
            ("[view]\nzoom = 1\n", "zoom"),
            ("[record\n", "no TOML"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(format!("{error:#}").contains(word), "{text}: {error:#}");
        }
    }

    /// What was typed, saved and read gives the same arguments.
    #[test]
    fn saved_and_read() -> Result<()> {
        let typed = ["--sample=1000", "--faults", "--uprobe=a:b", "--uprobe=007"];
        let words = ["hangdog", "record"].into_iter().chain(typed);
        let matches = Cli::command().try_get_matches_from(words)?;
        let (command, matches) = matches.subcommand().context("a command")?;
        let mut document = DocumentMut::new();
        document.insert(command, Item::Table(options(command, matches)?));
        let template = parse(&document.to_string())?;
        assert_eq!(
            template.arguments(command, |_| true)?,
            typed.map(OsString::from)
        );
        Ok(())
    }
}
