//! Compiles bpf/ and makes its skeleton.

use std::{env, path::PathBuf};

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let bpf =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../bpf");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let target = match arch.as_str() {
        "x86_64" => "-D__TARGET_ARCH_x86",
        "aarch64" => "-D__TARGET_ARCH_arm64",
        other => panic!("hangdog has no register layout for {other}"),
    };
    // Debian keeps <asm/types.h> here, where a compiler for BPF does not look.
    let multiarch = format!("-I/usr/include/{arch}-linux-gnu");
    println!("cargo:rerun-if-changed={}", bpf.display());
    SkeletonBuilder::new()
        .source(bpf.join("hangdog.bpf.c"))
        .clang_args([
            "-mcpu=v3",
            "-Wall",
            "-Wextra",
            "-Wno-unused-parameter",
            target,
            &multiarch,
        ])
        .build_and_generate(out.join("hangdog.skel.rs"))
        .expect("bpf/ must compile: clang and the kernel's user headers are needed (make setup)");
}
