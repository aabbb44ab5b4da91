//! What stands for the name of a function that nobody names: the file and where in it the function
//! begins. Two places of one function so have one name, and two functions have two.

use std::path::Path;

use hangdog_unwind::Functions;

use super::name::{Name, Names};

/// Names those of the places in a file that have no name yet. `path` is what the file is called;
/// `image` is where it can be read now.
pub(super) fn name_rest(path: &Path, image: &Path, offsets: &[u64], names: &mut [Names]) {
    let Some(file) = path.file_name().and_then(|name| name.to_str()) else {
        return;
    };
    if names.iter().all(|names| !names.is_empty()) {
        return;
    }
    // A file that does not tell where its functions are leaves them without a name.
    let Ok(functions) = Functions::from_file(image) else {
        return;
    };
    for (names, &offset) in names.iter_mut().zip(offsets) {
        if names.is_empty()
            && let Some((start, _)) = functions.find(offset)
        {
            names.push(Name {
                function: format!("{file}+{start:#x}"),
                offset: offset - start,
                ..Name::default()
            });
        }
    }
}
