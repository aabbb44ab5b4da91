//! What stands for the name of a function that nobody names: the file and where in it the function
//! begins. Two places of one function so have one name, and two functions have two.

use std::fs::File;

use hangdog_unwind::Functions;

use crate::name::{Name, Names};

/// Names those of the places in a file, which is called `name`, that have no name yet.
pub(crate) fn name_rest(name: &str, file: &File, offsets: &[u64], names: &mut [Names]) {
    if names.iter().all(|names| !names.is_empty()) {
        return;
    }
    // A file that does not tell where its functions are leaves them without a name.
    let Ok(functions) = Functions::of(file) else {
        return;
    };
    for (names, &offset) in names.iter_mut().zip(offsets) {
        if names.is_empty()
            && let Some((start, _)) = functions.find(offset)
        {
            names.push(Name {
                function: format!("{name}+{start:#x}"),
                offset: offset - start,
                ..Name::default()
            });
        }
    }
}
