//! The picture as an SVG reader sees it.

use std::collections::HashMap;

use proptest::prelude::*;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::curves::{Line, PANELS};
use super::{Undrawn, svg};
use crate::catalogue::kind;
use crate::figure::Figure;
use crate::kind::{Axis, Unit};
use crate::machine::{FileSystem, Machine};
use crate::report::{Noise, Report, VERSION};
use crate::spread::Spread;
use crate::steps::Step;

fn spread(low: f64, median: f64, high: f64) -> Spread {
    Spread {
        best: low,
        low,
        median,
        high,
        samples: 9,
    }
}

fn figure(id: &str, at: u64, spread: Spread) -> Figure {
    Figure {
        id: id.to_owned(),
        at: Some(at),
        unit: Unit::Ns,
        spread,
        disturbed: None,
    }
}

fn report(figures: Vec<Figure>) -> Report {
    Report {
        version: VERSION,
        hangdog: "0.1.0".to_owned(),
        taken_unix_s: 951_826_154,
        took_s: 80.0,
        quick: false,
        machine: Machine {
            cpu: "A CPU".to_owned(),
            cpus: 2,
            kernel: "6.1.0".to_owned(),
            files: FileSystem {
                kind: "ext4".to_owned(),
                device: "/dev/vda1".to_owned(),
                ..FileSystem::default()
            },
            ..Machine::default()
        },
        noise: Noise::default(),
        steps: Vec::new(),
        figures,
        methods: Vec::new(),
    }
}

/// Three points, rising tenfold each.
fn rising(id: &str) -> Vec<Figure> {
    let point = |power: i32| {
        let value = 10f64.powi(power);
        let size = 4096 << (4 * power);
        figure(id, size, spread(0.9 * value, value, 1.2 * value))
    };
    (0..3).map(point).collect()
}

fn ids() -> Vec<&'static str> {
    let mut ids: Vec<&str> = lines().map(|line| line.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn lines() -> impl Iterator<Item = &'static Line> {
    PANELS.iter().flat_map(|plan| plan.lines)
}

#[derive(Debug)]
struct Element {
    name: String,
    attributes: HashMap<String, String>,
    text: String,
}

impl Element {
    fn of(start: &BytesStart) -> Element {
        let attribute = |attribute: quick_xml::events::attributes::Attribute| {
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            (
                String::from_utf8(attribute.key.0.to_vec()).unwrap(),
                value.unwrap().into_owned(),
            )
        };
        Element {
            name: String::from_utf8(start.name().0.to_vec()).unwrap(),
            attributes: start
                .attributes()
                .map(|result| attribute(result.unwrap()))
                .collect(),
            text: String::new(),
        }
    }

    fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    fn points(&self) -> Vec<(i32, i32)> {
        let points = self.attribute("points").split_whitespace();
        points
            .map(|point| {
                let (x, y) = point.split_once(',').unwrap();
                (x.parse().unwrap(), y.parse().unwrap())
            })
            .collect()
    }
}

/// All elements; panics unless it is well-formed XML 1.0 with one root, within the picture.
fn read(picture: &str) -> Vec<Element> {
    let holds =
        |letter: char| matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    assert!(picture.chars().all(holds), "what XML cannot hold");
    let mut reader = Reader::from_str(picture);
    let (mut elements, mut open) = (Vec::<Element>::new(), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => {
                open.push(elements.len());
                elements.push(Element::of(&start));
            }
            Event::Empty(start) => elements.push(Element::of(&start)),
            Event::End(_) => {
                let closed = open.pop().unwrap();
                elements[closed].text = elements[closed].text.trim().to_owned();
            }
            Event::Text(text) => {
                let text = text.decode().unwrap();
                match open.last() {
                    Some(&inner) => elements[inner].text.push_str(&text),
                    None => assert_eq!(text.trim(), ""),
                }
            }
            Event::GeneralRef(reference) => {
                let letter = match reference.decode().unwrap().as_ref() {
                    "lt" => '<',
                    "gt" => '>',
                    "amp" => '&',
                    "quot" => '"',
                    "apos" => '\'',
                    other => panic!("&{other};"),
                };
                elements[*open.last().unwrap()].text.push(letter);
            }
            Event::Eof => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(open.is_empty());
    let size = |name: &str| -> i32 { elements[0].attribute(name).parse().unwrap() };
    let (width, height) = (size("width"), size("height"));
    for (x, y) in elements.iter().flat_map(Element::points) {
        assert!(
            (0..=width).contains(&x) && (0..=height).contains(&y),
            "{x},{y}"
        );
    }
    elements
}

fn picture(report: &Report) -> Vec<Element> {
    read(&svg(report).unwrap())
}

fn texts(elements: &[Element]) -> Vec<&str> {
    let texts = elements.iter().filter(|element| element.name == "text");
    texts.map(|element| element.text.as_str()).collect()
}

/// Curves of three points, with their colour. A legend's sample has two.
fn curves(elements: &[Element]) -> Vec<(&str, Vec<(i32, i32)>)> {
    let thick =
        |element: &&Element| element.name == "polyline" && element.attribute("stroke-width") == "2";
    let curves = elements.iter().filter(thick);
    curves
        .map(|element| (element.attribute("stroke"), element.points()))
        .filter(|(_, points)| points.len() == 3)
        .collect()
}

/// Each curve is drawn once in each panel that it belongs to, in its colour, with its name, from
/// left to right and upwards: the figures rise with the size, and so do the speeds of reading.
#[test]
fn every_curve_is_drawn() {
    let all = report(ids().into_iter().flat_map(rising).collect());
    let elements = picture(&all);
    let drawn = curves(&elements);
    assert_eq!(drawn.len(), lines().count());
    for ((color, points), line) in drawn.iter().zip(lines()) {
        let (red, green, blue) = (line.color.0, line.color.1, line.color.2);
        assert_eq!(
            *color,
            format!("#{red:02X}{green:02X}{blue:02X}"),
            "{}",
            line.id
        );
        assert!(
            points.is_sorted_by(|one, next| one.0 < next.0),
            "{}",
            line.id
        );
        // The size grows by 16 from point to point, the figure by 10: all rise.
        assert!(
            points.is_sorted_by(|one, next| one.1 > next.1),
            "{}",
            line.id
        );
    }
    let texts = texts(&elements);
    for line in lines() {
        let shown = texts.iter().filter(|text| **text == line.name).count();
        let wanted = lines().filter(|other| other.name == line.name).count();
        assert_eq!(shown, wanted, "{}", line.name);
    }
    for plan in PANELS {
        assert!(texts.contains(&plan.title));
    }
}

/// A curve that was not measured is left out with its name, and so is a panel without curves.
#[test]
fn what_was_not_measured_is_left_out() {
    let elements = picture(&report(rising("memory.copy")));
    assert_eq!(curves(&elements).len(), 1);
    let texts = texts(&elements);
    assert!(texts.contains(&"memcpy"));
    assert!(!texts.contains(&"read each"));
    let titles = PANELS.iter().filter(|plan| texts.contains(&plan.title));
    assert_eq!(titles.count(), 1);
}

/// Figures that a panel names exist, as curves over bytes.
#[test]
fn figures_are_those_that_are_measured() {
    for line in lines() {
        let kind = kind(line.id).unwrap_or_else(|| panic!("{} is not measured", line.id));
        assert_eq!(kind.over, Some(Axis::Bytes), "{}", line.id);
    }
}

/// Text of somebody else's is shown as it is, and makes no elements; what XML cannot hold is gone.
#[test]
fn text_is_escaped() {
    let mut report = report(rising("memory.latency"));
    let evil = "</text><script>alert('1')</script> & \"\0\u{1b}\u{ffff}";
    report.machine.cpu = evil.to_owned();
    report.machine.kernel = evil.to_owned();
    report.machine.files.device = evil.to_owned();
    report.hangdog = evil.to_owned();
    report.steps = vec![Step {
        name: "<a>&\"'\0".to_owned(),
        bytes: Some(8192),
        said_bytes: Some(16384),
        latency: spread(1.0, 1.0, 1.0),
    }];
    let elements = picture(&report);
    assert!(
        elements
            .iter()
            .all(|element| element.name != "script" && element.name != "a")
    );
    let texts = texts(&elements);
    let shown = "</text><script>alert('1')</script> & \"";
    assert!(texts[0].starts_with(shown), "{}", texts[0]);
    assert!(texts.iter().any(|text| text.starts_with("<a>&\"'")));
}

/// Without a curve there is an error that says so, even where there are single figures.
#[test]
fn no_curve_is_an_error() {
    let mut single = figure("memory.latency", 0, spread(1.0, 2.0, 3.0));
    single.at = None;
    for figures in [vec![], vec![single], rising("pingpong.pipe")] {
        let error = svg(&report(figures)).unwrap_err();
        assert!(matches!(error, Undrawn::NoCurve));
        assert!(error.to_string().contains("no curve"), "{error}");
    }
}

/// The head says which machine, when, which file system; and a disturbed run says by what.
#[test]
fn the_head_says_where_and_when() {
    let mut report = report(rising("file.read"));
    let quiet = picture(&report);
    let head = texts(&quiet)[..2].join(" ");
    for part in [
        "A CPU, 2 CPUs",
        "Linux 6.1.0",
        "2000-02-29 12:09 UTC",
        "ext4 (/dev/vda1)",
    ] {
        assert!(head.contains(part), "{head}");
    }
    assert!(
        !texts(&quiet)
            .iter()
            .any(|text| text.starts_with("Disturbed"))
    );
    report.noise.others = 0.12;
    let disturbed = picture(&report);
    let warning = "Disturbed: other programs used 12 % of the CPUs";
    assert!(texts(&disturbed).contains(&warning));
}

/// A level has its latency, a line where it was found to end, and a dashed one where the system
/// says; a size beyond the curve has a label that points there, and no line.
#[test]
fn levels_are_shown() {
    let step = |name: &str, bytes, said_bytes, ns| Step {
        name: name.to_owned(),
        bytes,
        said_bytes,
        latency: spread(ns, ns, ns),
    };
    let mut report = report(rising("memory.latency"));
    let without = picture(&report);
    report.steps = vec![
        step("L1", Some(12 << 10), Some(48 << 10), 1.25),
        step("L3", Some(384 << 10), Some(480 << 20), 15.0),
        step("RAM", None, None, 130.0),
    ];
    let with = picture(&report);
    let labels = [
        "L1 1.25 ns",
        "L3 15 ns",
        "RAM 130 ns",
        "L1 12 KiB",
        "L3 384 KiB",
        "L1 48 KiB",
        "L3 480 MiB →",
    ];
    for label in labels {
        assert!(texts(&with).contains(&label), "{label}");
    }
    let upright = |elements: &[Element]| -> Vec<i32> {
        let lines = elements.iter().filter(|element| element.name == "polyline");
        let points = lines
            .map(Element::points)
            .filter(|points| points.len() == 2);
        points
            .filter(|ends| ends[0].0 == ends[1].0)
            .map(|ends| ends[0].0)
            .collect()
    };
    // The axes are upright too, and a dashed line has many parts.
    let mut places = upright(&with);
    let dashes = places.len() - upright(&without).len() - 2;
    assert!(dashes > 20, "{dashes}");
    for place in upright(&without) {
        places.retain(|other| *other != place);
    }
    places.sort_unstable();
    places.dedup();
    // 12, 48 and 384 KiB, none of which is a tick: two and three octaves apart.
    let [first, said, last] = places[..] else {
        panic!("{places:?}");
    };
    let octave = f64::from(last - first) / 5.0;
    assert!(
        (f64::from(said - first) - 2.0 * octave).abs() < 2.0,
        "{places:?}"
    );
}

/// The size 0 has a place of its own, labelled 0, left of the others.
#[test]
fn zero_bytes_are_at_the_left() {
    let sizes = [0, 1024, 4096];
    let figures = sizes.map(|size| figure("file.create", size, spread(9e3, 1e4, 2e4)));
    let elements = picture(&report(figures.to_vec()));
    let (_, points) = curves(&elements)[0].clone();
    assert!(points[0].0 < points[1].0 && points[1].0 < points[2].0);
    let zero = elements.iter().find(|element| element.text == "0").unwrap();
    let x: i32 = zero.attribute("x").parse().unwrap();
    assert!((x - points[0].0).abs() <= 1, "{x} {points:?}");
}

/// Values that have no place on an axis of powers are left out, and do not spoil the others.
#[test]
fn values_without_a_place_are_left_out() {
    let strange = [0.0, -5.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    for (index, value) in strange.into_iter().enumerate() {
        let id = "memory.latency";
        let mut figures = rising(id);
        figures.push(figure(id, 1 << 30, spread(value, value, value)));
        // A spread of which an end has none.
        figures[index % 3].spread.low = value;
        let elements = picture(&report(figures));
        assert_eq!(curves(&elements).len(), 1, "{value}");
        let alone = report(vec![figure(id, 4096, spread(value, value, value))]);
        assert!(matches!(svg(&alone), Err(Undrawn::NoCurve)), "{value}");
    }
}

proptest! {
    /// Whatever curves and levels there are, also single points, the picture is well-formed and
    /// everything lies within it.
    #[test]
    fn any_curves_are_drawn(
        points in prop::collection::vec(
            (0..lines().count(), 0..64u32, any::<u64>(), -300..300i32, 0.0..2.0f64), 1..40),
        steps in prop::collection::vec(
            (".*", any::<Option<u64>>(), any::<Option<u64>>(), any::<f64>()), 0..9),
        cpu in ".*",
        taken: u64,
        others: f64,
    ) {
        let point = |(line, shift, size, power, wide): (usize, u32, u64, i32, f64)| {
            let value = 10f64.powi(power);
            let spread = spread(value / (1.0 + wide), value, value * (1.0 + wide));
            figure(lines().nth(line).unwrap().id, size >> shift, spread)
        };
        let mut report = report(points.into_iter().map(point).collect());
        let step = |(name, bytes, said_bytes, ns): (String, Option<u64>, Option<u64>, f64)| Step {
            name,
            bytes,
            said_bytes,
            latency: spread(ns, ns, ns),
        };
        report.steps = steps.into_iter().map(step).collect();
        report.machine.cpu = cpu;
        report.taken_unix_s = taken;
        report.noise.others = others;
        match svg(&report) {
            Ok(picture) => {
                read(&picture);
            }
            // A time for a size of 0 has no speed, but is drawn as a time: there is always a curve.
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}
