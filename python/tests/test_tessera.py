"""Tests of the package. PYTHONPATH names the folder that holds it."""
import os
import struct
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

sys.path.append(os.path.join(os.path.dirname(__file__), "../../tools"))
sys.dont_write_bytecode = True
import onnx_writer as onnx

import tessera

ADD = onnx.model(
    [onnx.node("Add", ["x", "w"], ["y"])], [onnx.value("x", onnx.FLOAT, ["batch", 2])], [onnx.value("y", onnx.FLOAT, ["batch", 2])],
    [onnx.floats("w", [2], [1, -2])])
X = np.array([[1, 2], [3, 4]], np.float32)
Y = np.array([[2, 0], [4, 2]], np.float32)


def identity(dtype, dims=("n",)):
    return tessera.load(onnx.model([onnx.node("Identity", ["x"], ["y"])], [onnx.value("x", dtype, dims)], [onnx.value("y", dtype, dims)]))


class Foreign:
    """An array of another library's: it speaks DLPack only."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Load(unittest.TestCase):
    def test_path_and_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            with open(path, "wb") as file:
                file.write(ADD)
            np.testing.assert_array_equal(tessera.load(path)(x=X), Y)
        np.testing.assert_array_equal(tessera.load(ADD)(x=X), Y)

    def test_ports(self):
        m = tessera.load(ADD, threads=1)
        (x,) = m.inputs
        self.assertEqual((x.name, x.type, x.dtype, x.shape), ("x", "f32[batch,2]", "f32", ("batch", 2)))
        self.assertEqual([p.name for p in m.outputs], ["y"])
        self.assertIn("f32[batch,2]", repr(m))
        self.assertEqual(tessera.load(ADD, dims={"batch": 3}).inputs[0].shape, (3, 2))
        self.assertEqual(tessera.load(ADD, shapes={"x": (5, 2)}).inputs[0].shape, (5, 2))

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "absent.onnx") as caught:
            tessera.load("absent.onnx")
        self.assertIsInstance(caught.exception, tessera.InputError)
        self.assertEqual(caught.exception.code, "not found")
        for bad in (b"nonsense", ADD[:-9], b""):
            with self.assertRaises(tessera.InputError):
                tessera.load(bad)
        with self.assertRaisesRegex(tessera.Error, "abacus"):
            tessera.load(ADD, device="abacus")
        with self.assertRaisesRegex(tessera.InputError, "'batch' is -1"):
            tessera.load(ADD, dims={"batch": -1})
        unknown = onnx.model([onnx.node("Frobnicate", ["x"], ["y"])], [onnx.value("x", onnx.FLOAT, [1])], [onnx.value("y", onnx.FLOAT, [1])])
        with self.assertRaisesRegex(RuntimeError, "Frobnicate") as caught:
            tessera.load(unknown)
        self.assertIsInstance(caught.exception, tessera.UnavailableError)


class Run(unittest.TestCase):
    def setUp(self):
        self.m = tessera.load(ADD)

    def test_sizes_may_change_from_call_to_call(self):
        for batch in (1, 3, 0, 7):
            x = np.arange(2 * batch, dtype=np.float32).reshape(batch, 2)
            np.testing.assert_array_equal(self.m(x=x), x + np.array([1, -2], np.float32))
        self.assertLessEqual(self.m.counters["plans"], 2)

    def test_any_layout(self):
        for x in (X.T.copy().T, np.repeat(X, 2, axis=1)[:, ::2], X[::-1][::-1], X.astype(">f4"), np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 2)):
            np.testing.assert_array_equal(self.m(x=x), Y)

    def test_plain_python_values(self):
        np.testing.assert_array_equal(self.m(x=[[1, 2], [3, 4]]), Y)
        with self.assertRaisesRegex(tessera.InputError, "f32"):
            self.m(x=[["one", "two"]])
        with self.assertRaisesRegex(tessera.InputError, "f32"):
            self.m(x=[[1, 2], [3]])

    def test_outputs_are_the_callers(self):
        m = identity(onnx.FLOAT)
        x = np.array([1, 2], np.float32)
        y = m(x=x)
        x[0] = 9
        self.assertEqual(y[0], 1)
        y[1] = 7
        self.assertEqual(x[1], 2)
        constant = tessera.load(onnx.model([onnx.node("Neg", ["w"], ["y"])], [], [onnx.value("y", onnx.FLOAT, [2])], [onnx.floats("w", [2], [1, 2])]))
        constant()[0] = 100
        np.testing.assert_array_equal(constant(), [-1, -2])
        del m, constant
        self.assertEqual(y[0], 1)

    def test_dlpack_in(self):
        np.testing.assert_array_equal(self.m(x=Foreign(X)), Y)
        np.testing.assert_array_equal(self.m(x=Foreign(np.asfortranarray(X))), Y)
        with self.assertRaisesRegex(tessera.InputError, "f64"):
            self.m(x=Foreign(X.astype(np.float64)))

    def test_dlpack_out(self):
        y = self.m.run({"x": X}, dlpack=True)["y"]
        self.assertIsInstance(y, tessera.Tensor)
        self.assertEqual((y.dtype, y.shape, y.__dlpack_device__()), ("f32", (2, 2), (1, 0)))
        array = np.from_dlpack(y)
        np.testing.assert_array_equal(array, Y)
        self.assertEqual(array.__array_interface__["data"][0], np.from_dlpack(y).__array_interface__["data"][0])
        del y
        np.testing.assert_array_equal(array, Y)
        # A tensor goes in again, and a numpy output speaks DLPack, too.
        again = self.m.run({"x": X}, dlpack=True)["y"]
        np.testing.assert_array_equal(self.m(x=again), Y + np.array([1, -2], np.float32))
        self.assertEqual(self.m(x=X).__dlpack_device__(), (1, 0))

    def test_large_aligned_arrays_are_not_copied(self):
        m = identity(onnx.FLOAT)
        raw = np.zeros(4 << 20, np.float32)
        tensor = tessera._convert.from_python(raw, {"kind": "tensor", "dtype": "f32", "type": ""})
        self.assertEqual(np.frombuffer(tensor, np.uint8).__array_interface__["data"][0], raw.__array_interface__["data"][0])
        references = sys.getrefcount(raw)
        del tensor
        self.assertEqual(sys.getrefcount(raw), references - 1)
        m(x=raw)
        self.assertEqual(sys.getrefcount(raw), references - 1)

    def test_wrong_inputs(self):
        with self.assertRaisesRegex(ValueError, r"input 'x' \(f32\[batch,2\]\) is missing"):
            self.m()
        with self.assertRaisesRegex(tessera.InputError, "no input 'q'.*'x', 'f32"):
            self.m(x=X, q=X)
        with self.assertRaisesRegex(tessera.InputError, "f64, need f32"):
            self.m(x=X.astype(np.float64))
        with self.assertRaisesRegex(tessera.InputError, "dim 1 is 3, need 2"):
            self.m(x=np.zeros((1, 3), np.float32))
        with self.assertRaisesRegex(tessera.InputError, "rank 1"):
            self.m(x=np.zeros(2, np.float32))
        with self.assertRaises(tessera.Error):
            self.m(x=None)
        with self.assertRaisesRegex(tessera.InputError, "f32"):
            self.m(x=object())

    def test_several_outputs(self):
        m = tessera.load(onnx.model([onnx.node("Add", ["x", "x"], ["y"]), onnx.node("Neg", ["x"], ["z"])], [onnx.value("x", onnx.FLOAT, [1])],
                                    [onnx.value("y", onnx.FLOAT, [1]), onnx.value("z", onnx.FLOAT, [1])]))
        self.assertEqual({k: v.tolist() for k, v in m(x=np.ones(1, np.float32)).items()}, {"y": [2], "z": [-1]})


class Types(unittest.TestCase):
    def test_numpy_types(self):
        codes = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
                 11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64, 15: np.complex128}
        for code, dtype in codes.items():
            x = np.array([0, 1, 1, 0]).astype(dtype)
            y = identity(code)(x=x)
            self.assertEqual(y.dtype, x.dtype)
            np.testing.assert_array_equal(y, x)
        self.assertEqual(identity(onnx.FLOAT, ())(x=np.float32(3)).shape, ())

    def test_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        codes = {16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4", 22: "int4",
                 23: "float4_e2m1fn", 24: "float8_e8m0fnu"}
        for code, name in codes.items():
            dtype = np.dtype(getattr(ml_dtypes, name))
            x = np.array([1, 2, -4 if "uint" not in name and "e8m0" not in name else 4, 1, 2]).astype(dtype)
            y = identity(code)(x=x)
            self.assertEqual(y.dtype, dtype)
            np.testing.assert_array_equal(y.astype(np.float32), x.astype(np.float32), name)

    def test_strings(self):
        y = identity(onnx.STRING)(x=["one", "zwei ä"])
        self.assertEqual(y.tolist(), ["one", "zwei ä"])

    def test_sequences(self):
        m = tessera.load(onnx.model([onnx.node("SequenceConstruct", ["x", "x"], ["s"])], [onnx.value("x", onnx.FLOAT, [1])], [onnx.sequence_value("s", onnx.FLOAT)]))
        self.assertEqual([a.tolist() for a in m(x=np.ones(1, np.float32))], [[1], [1]])
        m = tessera.load(onnx.model([onnx.node("SequenceLength", ["s"], ["n"])], [onnx.sequence_value("s", onnx.FLOAT)], [onnx.value("n", onnx.INT64, [])]))
        self.assertEqual(m(s=[np.ones(1, np.float32)] * 3), 3)
        with self.assertRaisesRegex(tessera.InputError, "list"):
            m(s=np.ones(1, np.float32))


class Threads(unittest.TestCase):
    # A loop of n rounds around a small product keeps the library busy for a while.
    def slow(self):
        size = 64
        return tessera.load(onnx.model(
            [onnx.node("MatMul", [f"v{i}" if i else "x", "w"], [f"v{i + 1}"]) for i in range(200)],
            [onnx.value("x", onnx.FLOAT, ["n", size])], [onnx.value("v200", onnx.FLOAT, ["n", size])],
            [onnx.floats("w", [size, size], [1 / size] * size * size)]), threads=1)

    def test_the_lock_is_let_go(self):
        m = self.slow()
        x = np.ones((2000, 64), np.float32)
        m(x=x)
        ticks, done = 0, threading.Event()

        def run():
            m(x=x)
            done.set()
        thread = threading.Thread(target=run)
        thread.start()
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)
        thread.join()
        self.assertGreater(ticks, 3)

    def test_one_model_in_many_threads(self):
        m = tessera.load(ADD)
        wrong = []

        def run(n):
            for i in range(50):
                x = np.full((1 + (n + i) % 3, 2), n * 100 + i, np.float32)
                if not np.array_equal(m(x=x), x + np.array([1, -2], np.float32)):
                    wrong.append((n, i))
        threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_timeout(self):
        with self.assertRaisesRegex(tessera.UnavailableError, "time limit") as caught:
            self.slow().run({"x": np.ones((20000, 64), np.float32)}, timeout=0.01)
        self.assertEqual(caught.exception.code, "deadline exceeded")


class Chips(unittest.TestCase):
    def test_names(self):
        names = tessera.chips()
        self.assertEqual(names, sorted(names))
        self.assertIn("ascend910b2", names)

    def test_a_chip_has_its_file_and_its_peaks(self):
        chip = tessera.chip("h100_sxm")
        self.assertEqual(chip.id, "h100_sxm")
        self.assertEqual(chip.data["cores"]["sm"]["count"]["value"], 132)
        self.assertTrue(chip.data["cores"]["sm"]["count"]["cite"].startswith("published: "))
        fastest = max(p["flops_per_second"] for p in chip.peaks if p["type"] == "f16")
        self.assertAlmostEqual(fastest / 1e12, 989.4, delta=0.1)
        self.assertTrue(all(p["ridge"] > 0 and p["arithmetic"] for p in chip.peaks))

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.json")
            with open(path, "w") as file:
                file.write('{"schema": "tessera.chip/1", "extends": "gemmini", "name": "Mine"}')
            self.assertEqual(tessera.chip(path).data["name"], "Mine")
            with open(path, "w") as file:
                file.write('{"schema": "tessera.chip/1", "extends": "gemmini", "nome": 1}')
            with self.assertRaisesRegex(tessera.InputError, "/nome"):
                tessera.chip(path)

    def test_an_unknown_name_is_told_with_similar_ones(self):
        with self.assertRaisesRegex(tessera.Error, "h100_sxm"):
            tessera.chip("h100")


if __name__ == "__main__":
    unittest.main()
