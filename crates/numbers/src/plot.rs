//! A report as a picture.
