#!/usr/bin/env python3
"""Builds the Python package as `pip install .` does, unpacks it into a scratch folder and runs the package's tests on it. Run by a
Python that has pip and numpy.

    tools/wheel_test.py
"""
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.resolve()


def main():
    # The compilers by the names that CMake gives them: what the release build left in ccache is found again.
    environment = {**os.environ, "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", "CC": "cc", "CXX": "c++", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if shutil.which("ccache"):
        environment["CMAKE_CXX_COMPILER_LAUNCHER"] = environment["CMAKE_C_COMPILER_LAUNCHER"] = "ccache"
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", scratch, str(ROOT)], env=environment, check=True)
        (wheel,) = Path(scratch).glob("tessera-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(Path(scratch) / "package")
            names = archive.namelist()
        for file in ("tessera/__init__.py", "tessera/__init__.pyi", "tessera/py.typed"):
            if file not in names:
                sys.exit(f"{wheel.name} lacks {file}")
        stray = [n for n in names if not n.startswith("tessera")]
        if stray:
            sys.exit(f"{wheel.name} holds more than the package: {stray}")
        environment["PYTHONPATH"] = str(Path(scratch) / "package")
        subprocess.run([sys.executable, ROOT / "python/tests/test_tessera.py"], env=environment, cwd=scratch, check=True)


main()
