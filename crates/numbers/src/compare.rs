//! What differs between two reports by more than their spread.

use serde::Serialize;

use crate::figure::Figure;
use crate::kind::Unit;
use crate::report::Report;
use crate::spread::Spread;

/// A figure in both reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The figure's name.
    pub id: String,
    /// The place on the curve.
    pub at: Option<u64>,
    /// What it counts.
    pub unit: Unit,
    /// In the first report.
    pub a: Spread,
    /// In the second.
    pub b: Spread,
    /// The second's median by the first's; none where that is zero.
    pub ratio: Option<f64>,
    /// Whether one median lies within the other's spread.
    pub agrees: bool,
}

/// Two reports side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether both are of one machine with one kernel.
    pub same_machine: bool,
    /// How many rows agree.
    pub agreeing: usize,
    /// The figures of both, in the first's order.
    pub rows: Vec<Row>,
    /// Figures that only the first has.
    pub only_a: Vec<String>,
    /// Figures that only the second has.
    pub only_b: Vec<String>,
}

/// Puts two reports side by side.
pub fn compare(a: &Report, b: &Report) -> Comparison {
    let rows: Vec<Row> = a
        .figures
        .iter()
        .filter_map(|a| Some(row(a, like(b, a)?)))
        .collect();
    let only = |these: &Report, those: &Report| {
        let missing = these
            .figures
            .iter()
            .filter(|figure| like(those, figure).is_none());
        missing.map(Figure::name).collect()
    };
    Comparison {
        same_machine: a.machine.key == b.machine.key && a.machine.kernel == b.machine.kernel,
        agreeing: rows.iter().filter(|row| row.agrees).count(),
        rows,
        only_a: only(a, b),
        only_b: only(b, a),
    }
}

fn like<'a>(report: &'a Report, figure: &Figure) -> Option<&'a Figure> {
    let same = |other: &&Figure| {
        other.id == figure.id && other.at == figure.at && other.unit == figure.unit
    };
    report.figures.iter().find(same)
}

fn row(a: &Figure, b: &Figure) -> Row {
    Row {
        id: a.id.clone(),
        at: a.at,
        unit: a.unit,
        a: a.spread,
        b: b.spread,
        ratio: (a.spread.median != 0.0).then(|| b.spread.median / a.spread.median),
        agrees: a.spread.agrees_with(&b.spread),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(figures: &[(&str, Option<u64>, f64)]) -> Report {
        let figure = |&(id, at, median): &(&str, Option<u64>, f64)| {
            serde_json::json!({
                "id": id, "at": at, "unit": "ns", "best": median * 0.9, "low": median * 0.95,
                "median": median, "high": median * 1.05, "samples": 9, "disturbed": null
            })
        };
        let machine = crate::Machine::default();
        let report = serde_json::json!({
            "version": 1, "hangdog": "0", "taken_unix_s": 0, "took_s": 1.0, "quick": false,
            "machine": machine, "noise": crate::Noise::default(), "steps": [], "methods": [],
            "figures": figures.iter().map(figure).collect::<Vec<_>>(),
        });
        Report::parse(&report.to_string()).unwrap()
    }

    /// 4 % is within a spread of 5 %, 11 % is not; what one report alone has is named.
    #[test]
    fn differences_beyond_the_spread_are_told() {
        let a = report(&[
            ("x.y", None, 100.0),
            ("c.d", Some(64), 10.0),
            ("a.only", None, 1.0),
        ]);
        let b = report(&[
            ("x.y", None, 104.0),
            ("c.d", Some(64), 11.1),
            ("b.only", Some(2), 1.0),
        ]);
        let compared = compare(&a, &b);
        assert!(compared.same_machine);
        assert_eq!(compared.agreeing, 1);
        let told: Vec<_> = compared
            .rows
            .iter()
            .map(|row| (row.id.as_str(), row.agrees))
            .collect();
        assert_eq!(told, [("x.y", true), ("c.d", false)]);
        assert_eq!(compared.rows[0].ratio, Some(1.04));
        assert_eq!(
            (compared.only_a, compared.only_b),
            (vec!["a.only".into()], vec!["b.only at 2".into()])
        );
    }

    /// A file that is none, that is newer, or whose figures are in disorder is refused, and why.
    #[test]
    fn damaged_reports_are_refused() {
        let good = serde_json::to_string(&report(&[("x.y", None, 100.0)])).unwrap();
        assert!(Report::parse(&good).is_ok());
        let newer = good.replace("\"version\":1", "\"version\":2");
        assert!(Report::parse(&newer).unwrap_err().contains("newer hangdog"));
        let disorder = good.replace("\"low\":95.0", "\"low\":195.0");
        assert!(Report::parse(&disorder).unwrap_err().contains("x.y"));
        for damaged in ["", "[]", "{}", &good[..good.len() / 2], "\u{0}"] {
            assert!(
                Report::parse(damaged)
                    .unwrap_err()
                    .contains("hangdog numbers --json")
            );
        }
    }
}
