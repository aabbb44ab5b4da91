//! `hangdog template`: templates listed, shown and saved.

use crate::args::{Cli, SaveArgs, TemplateCommand};
use crate::output::{self, Paint};
use crate::table;
use crate::template::{self, Origin};
use crate::whole_file::WholeFile;
use anyhow::{Context, Result, bail};
use clap::CommandFactory;
use serde::Serialize;
use std::fs;
use std::io::{ErrorKind, Write};
use toml_edit::{Array, DocumentMut, Item, value};

/// A row of the list in JSON.
#[derive(Serialize)]
struct Row {
    name: String,
    description: String,
    commands: Vec<&'static str>,
    next: Vec<String>,
    /// Null where it comes with hangdog.
    file: Option<String>,
}

/// The list in JSON.
#[derive(Serialize)]
struct Answer {
    templates: Vec<Row>,
}

/// Does what was asked.
pub fn run(command: &TemplateCommand) -> Result<()> {
    match command {
        TemplateCommand::List { json } => list(*json),
        TemplateCommand::Show { name } => {
            let template = template::find(name)?;
            let mut out = output::stdout();
            write!(out, "{}", template.document)?;
            Ok(out.flush()?)
        }
        TemplateCommand::Save(args) => save(args),
    }
}

fn list(json: bool) -> Result<()> {
    let (templates, wrong) = template::all();
    for why in &wrong {
        say!("hangdog: {why:#}; skipped");
    }
    if json {
        let rows = templates.iter().map(|template| Row {
            name: template.name.clone(),
            description: template.description().to_owned(),
            commands: template.commands(),
            next: template.next().unwrap_or_default(),
            file: match &template.origin {
                Origin::Shipped => None,
                origin => Some(origin.text()),
            },
        });
        return output::json(&Answer {
            templates: rows.collect(),
        });
    }
    let paint = Paint::for_stdout();
    let mut listed = table::new(paint, &["template", "for", "from", "description"]);
    for template in &templates {
        listed.add_row([
            template.name.clone(),
            template.commands().join(", "),
            template.origin.text(),
            template.description().to_owned(),
        ]);
    }
    let mut out = output::stdout();
    table::write(&mut out, &listed)?;
    Ok(out.flush()?)
}

fn save(args: &SaveArgs) -> Result<()> {
    let command = args.line.first().map(String::as_str).unwrap_or("");
    if !template::COMMANDS.contains(&command) {
        bail!(
            "give the options after one of the commands {}, as in \
             `hangdog template save mine record --sample 1000`",
            template::COMMANDS.join(", ")
        );
    }
    let words = ["hangdog"].into_iter();
    let words = words.chain(args.line.iter().map(String::as_str));
    let matches = Cli::command()
        .try_get_matches_from(words)
        .unwrap_or_else(|error| error.exit());
    let (_, matches) = matches.subcommand().context("a command is missing")?;
    let path = template::own_path(&args.name)?;
    let mut document = match fs::read_to_string(&path) {
        Ok(_) => template::find(&args.name)?.document,
        Err(why) if why.kind() == ErrorKind::NotFound => DocumentMut::new(),
        Err(why) => {
            return Err(why).with_context(|| format!("cannot read {}", path.display()));
        }
    };
    if document.contains_key(command) && !args.replace {
        bail!(
            "template {} has options for {command} already; --replace puts these in their place",
            args.name
        );
    }
    if let Some(description) = &args.description {
        document.insert("description", value(description.as_str()));
    }
    if !args.next.is_empty() {
        document.insert("next", value(Array::from_iter(&args.next)));
    }
    document.insert(command, Item::Table(template::options(command, matches)?));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let mut file = WholeFile::create(&path)?;
    file.write_all(document.to_string().as_bytes())?;
    file.finish(&path)?;
    say!(
        "hangdog: {}: hangdog {command} --template {} uses it",
        path.display(),
        args.name
    );
    Ok(())
}
