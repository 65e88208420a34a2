"""Checks that objects compiled for one instruction set define no symbol that a linker could merge with another's.

usage: check_isa_symbols.py NAMESPACE OBJECT...
Every symbol with external or weak linkage must lie in NAMESPACE; anything else (an inline function of the standard library,
say) might be taken from here by code that runs on any processor.
"""
import subprocess
import sys


def strays(namespace, path):
    lines = subprocess.run(["nm", "-C", "--defined-only", path], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        kind, name = line.split(maxsplit=2)[1:] if line[0] != " " else line.split(maxsplit=1)
        if kind in "TWVuBDRS" and namespace not in name and not name.startswith("DW.ref"):
            yield name


def main():
    namespace, objects = sys.argv[1], sys.argv[2:]
    found = [f"{path}: {name}" for path in objects for name in strays(namespace, path)]
    print("\n".join(found) if found else f"{len(objects)} objects define symbols of {namespace} only")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
