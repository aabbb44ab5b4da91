//! What the diagnosis says of traces that are small enough to read, in one program: to link one for each file
//! takes longer than to run them.

mod baseline;
mod before;
mod causes;
mod chains;
mod compare;
mod file_locks;
mod frames;
mod helpers;
mod idle;
mod knots;
mod loops;
mod loss;
mod many;
mod pipes;
mod problems;
mod properties;
mod questions;
mod ran;
mod ranking;
mod servers;
mod signature;
mod slice;
mod stretches;
mod support;
mod thinned;
mod trial_kernel;
mod trial_locks;
mod trial_messages;
mod trial_programs;
mod trial_schedulers;
mod verdict;
mod what_if;
mod whole;
