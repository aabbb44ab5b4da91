//! What a method of measuring is.

use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::place::Place;

/// One way of measuring. It is visited once in each pass, and makes anew each time what it needs.
#[derive(Debug)]
pub struct Method {
    /// Its name: `thread.life`.
    pub id: &'static str,
    /// Which part of the table its figures are in.
    pub section: Section,
    /// What it gives.
    pub figures: &'static [Kind],
    /// How it measures, in a sentence or two.
    pub how: &'static str,
    /// Where the method comes from.
    pub source: &'static str,
    /// Its part of a pass's time; a method with one figure has 1.
    pub weight: u32,
    /// Measures until the meter's time is used, roughly.
    pub run: fn(&Place, &mut Meter) -> Result<(), Untried>,
}
