//! A random order of things without a list of them: the place of each is computed.
//!
//! Shuffling a list of 32 million lines would take longer than measuring. Instead a one-to-one
//! function on numbers of some bits (multiply by an odd number, fold the upper half onto the lower;
//! both can be undone, as the mixers of hash functions are) sends index to place; where it leads
//! outside, it is applied again, which must come back inside because it is one-to-one.

/// An order of `0..count`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    count: u64,
    mask: u64,
    fold: u32,
    salt: u64,
}

/// Odd, and without a pattern: the fractional parts of the golden ratio and of two square roots.
const FACTORS: [u64; 3] = [
    0x9e37_79b9_7f4a_7c15,
    0xbb67_ae85_84ca_a73b,
    0x6a09_e667_f3bc_c909,
];

impl Order {
    /// A random order of `count` things, at least 2; another one for another `salt`.
    pub fn random(count: u64, salt: u64) -> Order {
        let bits = u64::BITS - (count - 1).leading_zeros();
        Order {
            count,
            mask: u64::MAX >> (u64::BITS - bits),
            fold: bits.div_ceil(2),
            salt,
        }
    }

    /// The place of the thing that comes at `index`.
    #[inline]
    pub fn place(&self, index: u64) -> u64 {
        let mut place = index;
        loop {
            place ^= self.salt & self.mask;
            for factor in FACTORS {
                place = place.wrapping_mul(factor) & self.mask;
                place ^= place >> self.fold;
            }
            if place < self.count {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Every place comes exactly once, for any count.
        #[test]
        fn every_place_comes_once(count in 2u64..3000, salt: u64) {
            let order = Order::random(count, salt);
            let mut places: Vec<u64> = (0..count).map(|index| order.place(index)).collect();
            places.sort_unstable();
            prop_assert!(places.into_iter().eq(0..count));
        }
    }

    /// No stride is common: what fetches ahead by a fixed distance finds nothing to go by.
    #[test]
    fn no_stride_is_common() {
        for count in [1 << 12, 100_000, 1 << 20] {
            let order = Order::random(count, 7);
            let mut strides: HashMap<i64, u64> = HashMap::new();
            for index in 1..count {
                let stride = order.place(index) as i64 - order.place(index - 1) as i64;
                *strides.entry(stride).or_default() += 1;
            }
            let most = *strides.values().max().unwrap();
            assert!(
                most * 100 < count,
                "{most} of {count} steps have one stride"
            );
        }
    }
}
