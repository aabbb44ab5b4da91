//! Differences of two reports.
