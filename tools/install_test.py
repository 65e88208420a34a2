#!/usr/bin/env python3
"""Installs a build into a scratch folder and uses it from there as a stranger would: the program, and the C example built with
pkg-config.

    tools/install_test.py BUILD_FOLDER CMAKE
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import onnx_writer as onnx

EXAMPLE = Path(__file__).parent.parent / "examples/c/run_model.c"


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120, **more)
    if done.returncode:
        sys.exit(f"exit {done.returncode}: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(what, actual, expected):
    if actual != expected:
        sys.exit(f"{what}: {actual!r}, expected {expected!r}")


def main():
    build, cmake = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        prefix = Path(scratch) / "prefix"
        run(cmake, "--install", build, "--prefix", prefix)
        model = Path(scratch) / "m.onnx"
        model.write_bytes(onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [onnx.value("x", onnx.FLOAT, ["batch", 2])],
                                     [onnx.value("y", onnx.FLOAT, ["batch", 2])], [onnx.floats("w", [2], [1, 0.5])]))
        (package,) = prefix.rglob("tessera.pc")
        (library,) = [p for p in prefix.rglob("libtessera.so") if p.exists()]
        environment = {**os.environ, "PKG_CONFIG_PATH": str(package.parent), "LD_LIBRARY_PATH": str(library.parent)}
        flags = run("pkg-config", "--cflags", "--libs", "tessera", env=environment).split()
        for compiler, extra in (("cc", ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]), ("c++", ["-std=c++20", "-x", "c++", "-fsyntax-only", "-include", "tessera/tessera.h"])):
            source = EXAMPLE if compiler == "cc" else "/dev/null"
            run(compiler, *extra, source, *flags, "-o", Path(scratch) / "run_model", env=environment)
        expect("the C example", run(Path(scratch) / "run_model", model, env=environment), "y [1,2] 2 1.5\n")
        exported = [line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", library).splitlines()]
        expect("symbols that are not the interface's", [s for s in exported if not s.startswith("tessera_")], [])
        if not shutil.which("bash") or not list(prefix.rglob("completions/tessera")):
            sys.exit("no bash completion was installed")
        expect("the version", run(prefix / "bin/tessera", "--version").strip(), run("pkg-config", "--modversion", "tessera", env=environment).strip())
        expect("the catalog of chips", run(prefix / "bin/tessera", "devices", "h100_sxm", cwd=scratch).split(":")[0], "h100_sxm")
    print("the installed program, library and headers work")


main()
