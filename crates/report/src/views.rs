//! Views: ways to look at a trace that have a name. The command takes them from templates.

use serde::Serialize;

/// How threads are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The busiest first.
    Busy,
    /// Those that waited longest for a CPU first.
    Waiting,
    /// By name.
    Name,
}

/// A way to look at a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct View {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// How threads are sorted; none leaves that as it is.
    pub sort: Option<Order>,
    /// What is in the field that finds threads.
    pub filter: String,
}

/// The views that there are.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Views {
    /// By name.
    pub views: Vec<View>,
    /// The name of the one that the page begins with; none if it begins with none of them.
    pub chosen: Option<String>,
}
