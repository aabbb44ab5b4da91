//! How the values of a column become values of Parquet and come back.
//!
//! Parquet has neither small nor unsigned integers: they are kept as 32- or 64-bit ones with the
//! true type beside them, which other readers (DuckDB, pandas) turn back.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::Type;

use crate::budget::Budget;

/// Values that are converted at a time, so that the intermediate form stays in the cache.
const CHUNK: usize = 8192;
/// A text is no longer, bytes.
const LONGEST_TEXT: usize = 1 << 20;
/// A list (the frames of a stack) is no longer.
const LONGEST_LIST: usize = 1 << 16;

/// A type that a column can have.
pub trait Cell: Clone + Default + Send + Sync + 'static {
    /// The Parquet type that holds it.
    const PHYSICAL: Physical;

    /// Describes a column of that type.
    fn field(name: &str) -> ParquetResult<Type>;

    /// Writes a column.
    fn write(values: &[Self], out: &mut SerializedColumnWriter<'_>) -> ParquetResult<()>;

    /// Reads the next values into `out`, as many as there are of those that fit, and tells how many. What
    /// they hold beside themselves is taken from the budget.
    ///
    /// The caller has made sure of [`Cell::PHYSICAL`].
    fn read(column: ColumnReader, out: &mut [Self], budget: &Budget) -> Result<usize, String>;
}

fn primitive(name: &str, physical: Physical, logical: Option<LogicalType>) -> ParquetResult<Type> {
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(logical)
        .build()
}

/// Reads a column's values into `out`, a chunk at a time, each value by `convert`. Tells how many there were.
fn for_chunks<P: DataType, T>(
    column: ColumnReader,
    out: &mut [T],
    convert: impl Fn(&P::T) -> Result<T, String>,
) -> Result<usize, String> {
    let mut column = get_typed_column_reader::<P>(column);
    let mut chunk = Vec::with_capacity(CHUNK.min(out.len()));
    let mut filled = 0;
    while filled < out.len() {
        chunk.clear();
        column
            .read_records((out.len() - filled).min(CHUNK), None, None, &mut chunk)
            .map_err(|e| e.to_string())?;
        if chunk.is_empty() {
            break;
        }
        for (slot, value) in out[filled..].iter_mut().zip(&chunk) {
            *slot = convert(value)?;
        }
        filled += chunk.len();
    }
    Ok(filled)
}

macro_rules! integer {
    ($kind:ty, $physical:ident, $parquet:ident, $wide:ty, $bits:literal, $signed:literal, $value:ident => $narrow:expr) => {
        impl Cell for $kind {
            const PHYSICAL: Physical = Physical::$physical;

            fn field(name: &str) -> ParquetResult<Type> {
                let logical = LogicalType::integer($bits, $signed);
                primitive(name, Self::PHYSICAL, Some(logical))
            }

            fn write(values: &[Self], out: &mut SerializedColumnWriter<'_>) -> ParquetResult<()> {
                let mut wide = Vec::with_capacity(CHUNK.min(values.len()));
                for chunk in values.chunks(CHUNK) {
                    wide.clear();
                    wide.extend(chunk.iter().map(|&v| v as $wide));
                    out.typed::<$parquet>().write_batch(&wide, None, None)?;
                }
                Ok(())
            }

            fn read(column: ColumnReader, out: &mut [Self], _: &Budget) -> Result<usize, String> {
                let narrow = |$value: $wide| -> Option<$kind> { $narrow };
                for_chunks::<$parquet, _>(column, out, |&value| {
                    narrow(value).ok_or_else(|| format!("{value} is out of range"))
                })
            }
        }
    };
}

integer!(u8, INT32, Int32Type, i32, 8, false, v => v.try_into().ok());
integer!(u16, INT32, Int32Type, i32, 16, false, v => v.try_into().ok());
integer!(i16, INT32, Int32Type, i32, 16, true, v => v.try_into().ok());
integer!(u32, INT32, Int32Type, i32, 32, false, v => Some(v as u32));
integer!(u64, INT64, Int64Type, i64, 64, false, v => Some(v as u64));
integer!(i64, INT64, Int64Type, i64, 64, true, v => Some(v));

impl Cell for bool {
    const PHYSICAL: Physical = Physical::BOOLEAN;

    fn field(name: &str) -> ParquetResult<Type> {
        primitive(name, Self::PHYSICAL, None)
    }

    fn write(values: &[Self], out: &mut SerializedColumnWriter<'_>) -> ParquetResult<()> {
        out.typed::<BoolType>()
            .write_batch(values, None, None)
            .map(drop)
    }

    fn read(column: ColumnReader, out: &mut [Self], _: &Budget) -> Result<usize, String> {
        for_chunks::<BoolType, _>(column, out, |&value| Ok(value))
    }
}

impl Cell for String {
    const PHYSICAL: Physical = Physical::BYTE_ARRAY;

    fn field(name: &str) -> ParquetResult<Type> {
        primitive(name, Self::PHYSICAL, Some(LogicalType::String))
    }

    fn write(values: &[Self], out: &mut SerializedColumnWriter<'_>) -> ParquetResult<()> {
        let values: Vec<ByteArray> = values.iter().map(|s| s.as_str().into()).collect();
        out.typed::<ByteArrayType>()
            .write_batch(&values, None, None)
            .map(drop)
    }

    fn read(column: ColumnReader, out: &mut [Self], budget: &Budget) -> Result<usize, String> {
        for_chunks::<ByteArrayType, _>(column, out, |value| {
            if value.len() > LONGEST_TEXT {
                return Err(format!("a text of it has more than {LONGEST_TEXT} bytes"));
            }
            budget.take(value.len())?;
            let text = value.as_utf8().map_err(|_| "its text is not UTF-8")?;
            Ok(text.to_owned())
        })
    }
}

/// A list of numbers, in the three levels that Parquet prescribes, none of which may be null.
impl Cell for Vec<u32> {
    const PHYSICAL: Physical = Physical::INT32;

    fn field(name: &str) -> ParquetResult<Type> {
        let items = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![Arc::new(u32::field("element")?)])
            .build()?;
        Type::group_type_builder(name)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![Arc::new(items)])
            .build()
    }

    fn write(lists: &[Self], out: &mut SerializedColumnWriter<'_>) -> ParquetResult<()> {
        let (mut items, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        for list in lists {
            // An empty list is one entry that is not defined.
            defined.extend(std::iter::repeat_n(
                i16::from(!list.is_empty()),
                list.len().max(1),
            ));
            repeated.push(0);
            repeated.extend(std::iter::repeat_n(1, list.len().saturating_sub(1)));
            items.extend(list.iter().map(|&item| item as i32));
        }
        out.typed::<Int32Type>()
            .write_batch(&items, Some(&defined), Some(&repeated))
            .map(drop)
    }

    fn read(column: ColumnReader, out: &mut [Self], budget: &Budget) -> Result<usize, String> {
        let mut column = get_typed_column_reader::<Int32Type>(column);
        let (mut items, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        let mut filled = 0;
        while filled < out.len() {
            items.clear();
            defined.clear();
            repeated.clear();
            let (records, ..) = column
                .read_records(
                    (out.len() - filled).min(CHUNK),
                    Some(&mut defined),
                    Some(&mut repeated),
                    &mut items,
                )
                .map_err(|e| e.to_string())?;
            if records == 0 {
                break;
            }
            budget.take(size_of_val(items.as_slice()))?;
            let mut items = items.iter();
            let mut lists = out[filled..].iter_mut();
            let mut list = None;
            for (&defined, &repeated) in defined.iter().zip(&repeated) {
                if repeated == 0 {
                    list = Some(lists.next().ok_or("its lists are broken")?);
                    filled += 1;
                }
                if defined == 1 {
                    let (Some(list), Some(&item)) = (&mut list, items.next()) else {
                        return Err("its lists are broken".into());
                    };
                    if list.len() == LONGEST_LIST {
                        return Err(format!("a list of it has more than {LONGEST_LIST} numbers"));
                    }
                    list.push(item as u32);
                }
            }
        }
        Ok(filled)
    }
}
