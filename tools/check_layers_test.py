#!/usr/bin/env python3
"""Tests of check_layers.py on small trees."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import check_layers

LAYERS = """# comment
base : ; fmt
hal : base ; fmt dl
hal/cpu : base hal ; fmt
"""


class CheckLayers(unittest.TestCase):
    def offences(self, files, layers=LAYERS):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "tessera").mkdir()
            (root / "layers.txt").write_text(layers)
            for name, text in files.items():
                path = root / "tessera" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return check_layers.check(root)

    def test_allowed(self):
        text = ('#include "tessera/hal/cpu/a.h"\n#include "tessera/hal/queue.h"\n#include <vector>\n'
                '#include <sys/mman.h>\n#include <fmt/format.h>\n#include "tessera/tessera_plugin.h"\n')
        self.assertEqual(self.offences({"hal/cpu/a.cc": text}), [])

    def test_module_below(self):
        self.assertEqual(self.offences({"base/a.h": '\n  #  include "tessera/hal/a.h"\n'}),
                         ["tessera/base/a.h:2: base may not include hal"])

    def test_not_inherited(self):
        found = self.offences({"hal/a.cc": '#include "tessera/hal/cpu/a.h"\n'})
        self.assertEqual(found, ["tessera/hal/a.cc:1: hal may not include hal/cpu"])

    def test_library(self):
        found = self.offences({"hal/cpu/a.cc": "#include <dlfcn.h>\n"})
        self.assertEqual(found, ["tessera/hal/cpu/a.cc:1: hal/cpu may not use dl"])

    def test_unknown_header(self):
        found = self.offences({"base/a.cc": "#include <boost/any.hpp>\n"})
        self.assertIn("boost/any.hpp belongs to no library", found[0])

    def test_gtest_in_tests_only(self):
        text = "#include <gtest/gtest.h>\n"
        self.assertEqual(self.offences({"base/a_test.cc": text}), [])
        self.assertEqual(self.offences({"base/a.cc": text}), ["tessera/base/a.cc:1: base may not use gtest"])

    def test_homeless_file(self):
        self.assertEqual(self.offences({"stray/a.cc": ""}), ["tessera/stray/a.cc: in no module of layers.txt"])
        found = self.offences({"base/a.cc": '#include "tessera/stray/a.h"\n'})
        self.assertEqual(found, ["tessera/base/a.cc:1: tessera/stray/a.h is in no module of layers.txt"])

    def test_plugin_header_belongs_to_hal(self):
        found = self.offences({"base/a.cc": '#include "tessera/tessera_plugin.h"\n'})
        self.assertEqual(found, ["tessera/base/a.cc:1: base may not include hal"])

    def test_layers_file(self):
        found = self.offences({}, "a : b ; fmt\nb : ;\nb : ;\nc : ; nonsense\nwhat\n")
        self.assertEqual(found, ["layers.txt:1: a may not include b: it does not stand above",
                                 "layers.txt:3: b has two rows", "layers.txt:4: c names the unknown library nonsense",
                                 "layers.txt:5: not 'module : modules ; libraries'"])


if __name__ == "__main__":
    unittest.main()
