//! Encoding a part of a table, in memory: it goes to disk in one write, and an error of the disk is never mixed
//! with one of the format.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use crate::error::Result;
use crate::part::{Encoder, Schema, encoding};
use crate::tables::Table;

/// The bytes of a part that holds the table's `rows`. `path` is where it will go, for errors.
pub(crate) fn encode<T: Table>(
    table: &T,
    rows: std::ops::Range<usize>,
    path: &Path,
) -> Result<Vec<u8>> {
    let mut schema = Schema::default();
    T::declare(&mut schema);
    let mut file = schema
        .build(T::NAME)
        .and_then(|schema| {
            SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties::<T>()?))
        })
        .map_err(|e| encoding(path, e))?;
    {
        let group = file.next_row_group().map_err(|e| encoding(path, e))?;
        let mut encoder = Encoder { group, path };
        table.encode(rows, &mut encoder)?;
        encoder.group.close().map_err(|e| encoding(path, e))?;
    }
    file.into_inner().map_err(|e| encoding(path, e))
}

/// Encodings by column: times, lengths and arguments of marks are kept as differences, everything else
/// by dictionary.
fn properties<T: Table>() -> ParquetResult<WriterProperties> {
    // Of a fuzzer's many small traces, most of the time would go there.
    let compression = match cfg!(fuzzing) {
        true => Compression::UNCOMPRESSED,
        false => Compression::ZSTD(ZstdLevel::try_new(1)?),
    };
    let mut properties = WriterProperties::builder()
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None);
    for column in T::COLUMNS {
        let path = ColumnPath::from(column.name);
        if column.name == "ts" {
            // Lets other readers skip parts by time.
            properties =
                properties.set_column_statistics_enabled(path.clone(), EnabledStatistics::Chunk);
        }
        // What a program gives with its marks mostly counts up, or stays the same.
        if matches!(column.name, "ts" | "duration") || column.kind == "i64" {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}
