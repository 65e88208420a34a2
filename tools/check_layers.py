#!/usr/bin/env python3
"""Checks that every #include in the tree is one that layers.txt allows, and that layers.txt itself is in order.

    tools/check_layers.py [ROOT]

A file belongs to the module with the longest matching folder name. It may include its own module, the modules that its
row names, the standard library, the system's headers and the row's external libraries; tests may also include gtest,
benchmarks Google Benchmark and the rivals, oneDNN or by dlopen. Prints one line per offence and exits with 1 if there is any.
"""
import re
import sys
from pathlib import Path

# A header's beginning -> the name that layers.txt gives to its library. A new library is a row here, one in
# cmake/TesseraModules.cmake and one in docs/dependencies.md.
EXTERNAL = {
    "CLI/": "cli11",
    "Python.h": "pybind11",
    "benchmark/": "benchmark",
    "dlfcn.h": "dl",
    "dlpack/": "dlpack",
    "fmt/": "fmt",
    "gmock/": "gtest",
    "gtest/": "gtest",
    "hwloc.h": "hwloc",
    "hwloc/": "hwloc",
    "jpeglib.h": "jpeg",
    "llvm-c/": "mlir",
    "llvm/": "llvm",
    "mlir-c/": "mlir",
    "nlohmann/": "json",
    "oneapi/": "dnnl",
    "openjpeg.h": "openjp2",
    "png.h": "png",
    "protozero/": "protozero",
    "pybind11/": "pybind11",
    "re2/": "re2",
    "tiffio.h": "tiff",
    "tl/": "expected",
    "webp/": "webp",
    "zlib.h": "zlib",
}

# The C headers for strangers in include/tessera, and the module whose face each is.
PUBLIC = {"tessera/tessera_error.h": "base", "tessera/tessera_plugin.h": "hal", "tessera/tessera.h": "capi"}

BY_SUFFIX = {"_test.cc": {"gtest"}, "_bench.cc": {"benchmark", "dl", "dnnl"}, "_bench.h": {"dnnl"}}

STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits
clocale cmath compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio
cstdlib cstring ctime cuchar cwchar cwctype deque exception execution filesystem forward_list fstream functional future
initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex
new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex
source_location span sstream stack stdexcept stop_token streambuf string string_view syncstream system_error thread
tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version cxxabi.h
assert.h ctype.h errno.h fenv.h float.h inttypes.h limits.h locale.h math.h setjmp.h signal.h stdalign.h stdarg.h
stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h threads.h time.h uchar.h wchar.h
dirent.h elf.h fcntl.h getopt.h glob.h link.h poll.h pthread.h sched.h spawn.h strings.h termios.h ucontext.h unistd.h
cpuid.h immintrin.h x86intrin.h arm_neon.h arm_sve.h
""".split())
SYSTEM_FOLDERS = ("sys/", "linux/", "asm/", "sanitizer/", "netinet/", "arpa/")

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


class Row:
    def __init__(self, modules, external):
        self.modules, self.external = modules, external


def read_rows(text):
    """layers.txt -> ({module: Row}, offences)."""
    rows, offences = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"([a-z0-9_/]+) *:([^;]*);([^;]*)", line)
        if not match:
            offences.append(f"layers.txt:{number}: not 'module : modules ; libraries'")
            continue
        name, modules, external = match[1], match[2].split(), match[3].split()
        where = f"layers.txt:{number}: {name}"
        if name in rows:
            offences.append(f"{where} has two rows")
        offences += [f"{where} may not include {m}: it does not stand above" for m in modules if m not in rows]
        known = set(EXTERNAL.values())
        offences += [f"{where} names the unknown library {e}" for e in external if e not in known]
        rows[name] = Row(set(modules), set(external))
    return rows, offences


def module_of(path, rows):
    """The module that owns a path below tessera/, or None."""
    folder = Path(path).parent
    while str(folder) != ".":
        if str(folder) in rows:
            return str(folder)
        folder = folder.parent
    return None


def library_of(header):
    return next((name for prefix, name in EXTERNAL.items() if header.startswith(prefix)), None)


def offence(header, module, row, extra, rows):
    """Why `module` may not include `header`, or None if it may."""
    if header in PUBLIC or header.startswith("tessera/"):
        owner = PUBLIC.get(header) or module_of(header.removeprefix("tessera/"), rows)
        if owner is None:
            return f"{header} is in no module of layers.txt"
        return None if owner == module or owner in row.modules else f"{module} may not include {owner}"
    library = library_of(header)
    if library:
        return None if library in row.external | extra else f"{module} may not use {library}"
    if header in STANDARD or header.startswith(SYSTEM_FOLDERS):
        return None
    return f"{header} belongs to no library known to tools/check_layers.py"


def check_file(path, root, rows):
    name = path.relative_to(root).as_posix()
    module = module_of(name.removeprefix("tessera/"), rows)
    if module is None:
        return [f"{name}: in no module of layers.txt"]
    extra = {library for suffix, own in BY_SUFFIX.items() if name.endswith(suffix) for library in own}
    offences = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        reason = match and offence(match[1], module, rows[module], extra, rows)
        if reason:
            offences.append(f"{name}:{number}: {reason}")
    return offences


def check(root):
    rows, offences = read_rows((root / "layers.txt").read_text())
    for path in sorted((root / "tessera").rglob("*")):
        if path.suffix in (".h", ".cc", ".c", ".inc"):
            offences += check_file(path, root, rows)
    return offences


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    offences = check(root)
    print("\n".join(offences) if offences else "layers: every include is allowed")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
