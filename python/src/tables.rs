//! The tables of a run directory in the columns of Apache Arrow, which other packages take without a copy.

use crate::{detached, error};
use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchOptions, StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use pyo3::types::{PyCapsule, PyList};
use pyo3::{Bound, IntoPyObjectExt, PyAny, PyResult, Python, pyclass, pymethods};
use serde_json::{Map, Value};
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of a stream of arrays (Apache Arrow, the PyCapsule interface).
const STREAM: &CStr = c"arrow_array_stream";

/// A table. Columns are integers where all values are, otherwise text; empty values are null.
#[pyclass(frozen)]
pub struct Table {
    batch: RecordBatch,
}

/// A table of rows: `value` is the text in row and column, empty where there is none.
fn table(names: &[String], rows: usize, value: impl Fn(usize, usize) -> String) -> PyResult<Table> {
    let column = |column: usize| {
        let is_whole = |row: usize| {
            let text = value(row, column);
            text.is_empty() || text.parse::<i64>().is_ok()
        };
        if (0..rows).all(is_whole) {
            let mut whole = Int64Builder::with_capacity(rows);
            (0..rows).for_each(|row| whole.append_option(value(row, column).parse().ok()));
            return Arc::new(whole.finish()) as ArrayRef;
        }
        let mut texts = StringBuilder::new();
        for row in 0..rows {
            texts.append_option(Some(value(row, column)).filter(|text| !text.is_empty()));
        }
        Arc::new(texts.finish())
    };
    let columns: Vec<ArrayRef> = (0..names.len()).map(column).collect();
    let fields = names.iter().zip(&columns);
    let fields = fields.map(|(name, column)| Field::new(name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(schema, columns, &options);
    Ok(Table { batch: batch.map_err(error)? })
}

impl Table {
    fn index(&self, name: &str) -> PyResult<usize> {
        self.batch.schema().index_of(name).map_err(error)
    }
}

/// A value of a column as Python's.
fn item<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let any = column.as_any();
    if column.is_null(row) {
        Ok(py.None().into_bound(py))
    } else if let Some(whole) = any.downcast_ref::<Int64Array>() {
        whole.value(row).into_bound_py_any(py)
    } else {
        let texts = any.downcast_ref::<StringArray>().expect("columns are of two types");
        texts.value(row).into_bound_py_any(py)
    }
}

#[pymethods]
impl Table {
    /// The table in a CSV file.
    #[staticmethod]
    fn from_csv(py: Python<'_>, file: PathBuf) -> PyResult<Table> {
        detached(py, || {
            let mut reader = csv::Reader::from_path(&file).map_err(error)?;
            let names: Vec<String> =
                reader.headers().map_err(error)?.iter().map(str::to_owned).collect();
            let rows: Vec<csv::StringRecord> =
                reader.records().collect::<Result<_, _>>().map_err(error)?;
            table(&names, rows.len(), |row, column| rows[row][column].to_owned())
        })
    }

    /// The table of the JSON objects in the lines of a file: a column for each key, in order of first use. Values that are
    /// neither numbers nor text remain JSON.
    #[staticmethod]
    fn from_jsonl(py: Python<'_>, file: PathBuf) -> PyResult<Table> {
        detached(py, || {
            let text = std::fs::read_to_string(&file)?;
            let objects = text.lines().map(serde_json::from_str::<Map<String, Value>>);
            let rows: Vec<_> = objects.collect::<Result<_, _>>().map_err(error)?;
            let mut names: Vec<String> = Vec::new();
            for key in rows.iter().flat_map(Map::keys) {
                if !names.contains(key) {
                    names.push(key.clone());
                }
            }
            table(&names, rows.len(), |row, column| match rows[row].get(&names[column]) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            })
        })
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The values of a column.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.batch.column(self.index(name)?);
        let values = (0..column.len()).map(|row| item(py, column, row));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }

    fn __repr__(&self) -> String {
        let word = |field: &Arc<Field>| match field.data_type() {
            DataType::Int64 => format!("{}: int", field.name()),
            _ => format!("{}: str", field.name()),
        };
        let columns: Vec<String> = self.batch.schema().fields().iter().map(word).collect();
        format!("<pausebed.Table, {} rows: {}>", self.batch.num_rows(), columns.join(", "))
    }

    /// The Arrow stream of the table; its buffers are those of this table. A schema that is asked for is not followed.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }
}
