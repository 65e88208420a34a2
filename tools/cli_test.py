#!/usr/bin/env python3
"""Tests of the command line, end to end.

    tools/cli_test.py PATH_TO_TESSERA [unittest's arguments]
"""
import ast
import json
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True
import onnx_writer as onnx

TESSERA = ""
REPOSITORY = Path(__file__).parent.parent


def npy(code, dims, raw, fortran=False):
    header = repr({"descr": code, "fortran_order": fortran, "shape": tuple(dims)}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + raw


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


def read_npy(path):
    raw = Path(path).read_bytes()
    (length,) = struct.unpack("<H", raw[8:10])
    header = ast.literal_eval(raw[10:10 + length].decode())
    assert (10 + length) % 64 == 0 and not header["fortran_order"]
    code = {"<f4": "f", "<i8": "q", "|b1": "?", "<f8": "d"}[header["descr"]]
    body = raw[10 + length:]
    return header["shape"], list(struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body))


# y = x + w, z = relu(y)
ADD = onnx.model(
    [onnx.node("Add", ["x", "w"], ["y"], name="sum"), onnx.node("Relu", ["y"], ["z"])],
    [onnx.value("x", onnx.FLOAT, ["batch", 2])], [onnx.value("z", onnx.FLOAT, ["batch", 2])],
    [onnx.floats("w", [2], [1, -2])])


class Cli(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.write("m.onnx", ADD)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return str(path)

    def start(self, *arguments, code=0, **more):
        done = subprocess.run([TESSERA, *arguments], cwd=self.folder, capture_output=True, timeout=60, **more)
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        return done

    def text(self, *arguments, **more):
        return self.start(*arguments, **more).stdout.decode()

    def json(self, *arguments, **more):
        return json.loads(self.text(*arguments, "--json", **more))

    def refused(self, *arguments, says, code=2, **more):
        done = self.start(*arguments, code=code, **more)
        message = done.stderr.decode()
        self.assertEqual(done.stdout, b"")
        for part in says:
            self.assertIn(part, message)

    def run_model(self, *arguments, model="m.onnx", **more):
        """Outputs by name, read back."""
        report = self.json("run", model, *arguments, "--output-dir", "out", **more)
        return {o["name"]: read_npy(self.folder / "out" / o["file"]) for o in report["outputs"]}


class Help(Cli):
    def test_every_verb_has_examples_and_json(self):
        listed = self.text("--help").split("Subcommands:")[1].split("Examples:")[0]
        verbs = [line.split()[0] for line in listed.splitlines() if line.strip()]
        self.assertEqual(verbs, ["devices", "inspect", "run", "bench", "plan", "explain", "calibrate", "layout"])
        for verb in verbs:
            text = self.text(verb, "--help")
            self.assertIn(f"Examples:\n  tessera {verb}", text)
            self.assertIn("--json", text)

    def test_calibrate_is_used_by_plan(self):
        text = self.text("calibrate", "--output", "c.json", "--chip", "here.json")
        self.assertIn("GFLOP/s", text)
        self.assertIn("measured: tessera calibrate", json.dumps(self.json("devices", "here.json")["chip"]))
        os.environ["TESSERA_CALIBRATION"] = str(self.folder / "c.json")
        try:
            self.assertIn("calibration", self.json("plan", "m.onnx")["rates"])
            os.environ["TESSERA_CALIBRATION"] = "none"
            self.assertEqual(self.json("plan", "m.onnx")["rates"], "default")
        finally:
            del os.environ["TESSERA_CALIBRATION"]

    def test_explain(self):
        report = self.json("explain", "m.onnx")
        self.assertTrue(report["optimal"])
        self.assertEqual(report["lower_bound_ps"], report["cost_ps"])
        self.refused("explain", "m.onnx", "no such node", says=["no such node"])

    def test_bench_convert(self):
        report = self.json("bench", "--convert", "f32[64,48]", "--from", "m n", "--to", "n/16 m/16 m%16 n%16")
        self.assertEqual(report["bytes"], 2 * 64 * 48 * 4)
        self.assertGreater(report["gbps"], 0)
        self.refused("bench", says=["--convert"])
        self.refused("bench", "--convert", "f32[64,48]", "--from", "m n", "--to", "m", says=["--to 'm'"])
        self.refused("bench", "--convert", "f32[64]", "--from", "m n", "--to", "n m", says=["2 letters"])

    def test_roofline(self):
        report = self.json("plan", "m.onnx", "--roofline")
        self.assertAlmostEqual(report["seconds"], sum(n["seconds"] for n in report["nodes"]))

    def test_one_operator_on_a_chip(self):
        r = self.json("plan", "--op", "matmul_float16_k3072n3072m3072", "--device", "ascend910b2")
        self.assertEqual((r["op"], r["device"]), ("matmul_f16_m3072n3072k3072", "ascend910b2"))
        self.assertEqual(r["flops"], 2 * 3072 ** 3)
        self.assertTrue(r["seconds"]["low"] < r["seconds"]["expected"] < r["seconds"]["high"])
        self.assertGreater(r["seconds"]["expected"], r["flops"] / 354e12)
        self.assertIn("gm", r["bytes"])
        both = self.json("plan", "--op", "gelu_f16_n1048576", "--op", "softmax_f16_m64n64", "--device", "sim:h100_sxm")
        self.assertEqual([o["kernel"] for o in both["operators"]], ["elementwise", "softmax"])
        self.assertIn("tensor", self.text("plan", "--op", "matmul_f16_m64n64k64", "--device", "a100_sxm_80gb"))
        self.refused("plan", "--op", "matmul_f16_m1n1", "--device", "h100_sxm", says=["size 'k'"])
        self.refused("plan", "--op", "matmul_f16_m1n1k1", "--device", "h10", says=["h100_sxm"])
        self.refused("plan", "--op", "matmul_f64_m1n1k1", "--device", "tpu_v5e", code=3, says=["tpu_v5e", "f64"])
        self.refused("plan", says=["MODEL", "--op"])

    def test_bench_of_one_operator(self):
        r = self.json("bench", "--op", "matmul_f32_m64n64k64", "--iters", "3")
        self.assertEqual((r["model"], r["iters"]), ("matmul_f32_m64n64k64", 3))
        self.assertGreater(r["ms"], 0)
        self.refused("bench", "--op", "convert_f16_m4n4_nd_nz", says=["--convert"])

    def test_usage_errors(self):
        self.refused(says=["subcommand"])
        self.refused("fly", says=["fly"])
        self.refused("run", says=["model is required"])
        self.refused("run", "m.onnx", "--fast", says=["--fast", "tessera run --help"])
        self.refused("bench", "m.onnx", "--iters", "0", says=["--iters"])
        self.refused("run", "m.onnx", "--threads", "-1", says=["--threads"])
        self.refused("run", "m.onnx", "--rtol", "x", says=["--rtol"])

    def test_completion_reads_the_help(self):
        script = REPOSITORY / "tools/tessera-completion.bash"
        lines = f'source {script}; COMP_WORDS=({TESSERA} "$@"); COMP_CWORD=$#; _tessera {TESSERA} "${{@: -1}}" ""; echo "${{COMPREPLY[@]}}"'
        complete = lambda *words: subprocess.run(["bash", "-c", lines, "bash", *words], capture_output=True, text=True).stdout.split()
        self.assertEqual(complete("be"), ["bench"])
        self.assertEqual(complete("run", "--out"), ["--output", "--output-dir"])


class Devices(Cli):
    def test_lists_the_cpu(self):
        devices = {d["name"]: d for d in self.json("devices")["devices"]}
        self.assertTrue(devices["cpu:0"]["available"])
        self.assertGreater(devices["cpu:0"]["memory"][0]["capacity_bytes"], 0)
        self.assertIn("cpu:0", self.text("devices"))

    def test_catalog(self):
        chips = {c["id"]: c for c in self.json("devices", "--catalog")["chips"]}
        self.assertAlmostEqual(chips["ascend910b2"]["flops_per_second"]["f16"] / 1e12, 353.9, 1)
        self.assertFalse([c for c in chips.values() if "error" in c])
        self.assertIn("tpu_v5e", self.text("devices", "--catalog"))

    def test_one_chip(self):
        text = self.text("devices", "sim:h100_sxm")
        for part in ("132 sm x 4 x 512 x 2 x 1.83 GHz", "989.4 TFLOP/s", "ridge", "occupancy", "sources differ"):
            self.assertIn(part, text)
        chip = self.json("devices", "h100_sxm")
        (peak,) = [p for p in chip["peaks"] if (p["unit"], p["dtype"]) == ("tensor", "f16")]
        self.assertAlmostEqual(peak["ridge_flops_per_byte"], peak["flops_per_second"] / 3.35e12)
        (quarter,) = [o for o in chip["occupancy"] if (o["threads"], o["registers_per_thread"], o["shared_bytes"]) == (128, 32, 48 << 10)]
        self.assertEqual((quarter["blocks"], quarter["occupancy"]), (4, 0.25))
        self.assertIn("published: ", chip["chip"]["memory"]["hbm"]["bytes_per_second"]["cite"])
        self.refused("devices", "h100", says=["h100_pcie", "h100_sxm"])
        self.refused("devices", "h100_sxm", "--catalog", says=["exclude"])

    def test_a_chip_of_ones_own(self):
        (self.folder / "chips").mkdir()
        (self.folder / "chips/abacus.json").write_text(json.dumps({
            "schema": "tessera.chip/1", "extends": "gemmini", "name": "Abacus", "cite": "assumed: made up",
            "cores": {"core": {"count": 4}}}))
        self.assertIn("4 core x 1 x 256 x 2 x 1 GHz", self.text("devices", "chips/abacus.json"))
        (self.folder / "chips/bad.json").write_text('{"schema": "tessera.chip/1", "extends": "abacus", "color": 1}')
        os.environ["TESSERA_CHIPS"] = str(self.folder / "chips")
        try:
            self.assertEqual(self.json("devices", "abacus")["files"], [str(self.folder / "chips/abacus.json"), "gemmini.json"])
            chips = {c["id"]: c for c in self.json("devices", "--catalog")["chips"]}
            self.assertEqual(chips["abacus"]["name"], "Abacus")
            self.assertIn("/color: no such member", chips["bad"]["error"])
            self.refused("devices", "bad", says=["bad.json: /color: no such member"])
        finally:
            del os.environ["TESSERA_CHIPS"]

    def test_unknown_device(self):
        self.refused("run", "m.onnx", "--random", "1", "--device", "abacus", says=["abacus", "cpu"])


class Layout(Cli):
    def test_fractals(self):
        small = self.json("layout", "f16[4,4]", "--to", "mn: n/2 m/2 m%2 n%2")
        self.assertEqual(small["order"], [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15])
        self.assertEqual((small["to"]["padding"], small["to"]["tax"]), (0, 1))
        nz = self.json("layout", "f16[20,28]", "--to", "nz")
        self.assertEqual(nz["to"]["shape"], [2, 2, 16, 16])
        self.assertEqual((nz["to"]["bytes"], nz["to"]["padding"]), (2048, 464))
        self.assertAlmostEqual(nz["to"]["tax"], 2048 / 1120)
        self.assertEqual(nz["order"][:17], list(range(16)) + [28])
        self.assertIsNone(nz["order"][1023])
        self.assertIn("FRACTAL_NZ", nz["formats"])
        self.assertEqual(nz["conversion"], {"read_bytes": 1120, "written_bytes": 2048, "run_bytes": 28})

    def test_pictures(self):
        text = self.text("layout", "f16[4,4]", "--to", "mn: n/2 m/2 m%2 n%2")
        self.assertIn(" 0  1          8  9          2  3         10 11\n", text)
        self.assertIn("layout tax 1.00", text)
        self.assertIn("... ", self.text("layout", "f16[400,4000]", "--to", "nz"))
        self.assertNotIn("where each element", self.text("layout", "f16[4,4]", "--to", "nd", "--rows", "0"))
        self.assertIn("0 places", self.text("layout", "f16[0,4]", "--to", "nz"))
        self.json("layout", "f16[20,28]", "--to", "nz", "--svg", "nz.svg")
        svg = xml.etree.ElementTree.parse(self.folder / "nz.svg").getroot()
        tips = [t.text for t in svg.iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(tips.count("padding"), 464)
        self.assertEqual(sum(t.startswith("element ") for t in tips), 560)
        self.assertIn("m 1 n 0: place 16", tips)

    def test_however_it_is_written(self):
        tiled = self.json("layout", "bf16[20,300]{1,0:T(8,128)(2,1)}")
        self.assertEqual(tiled["to"]["layout"], "ab: a/8 b/128 a%8/2 b%128 a%2")
        self.assertIn("TPU_TILED", tiled["formats"])
        self.assertEqual(self.json("layout", "f32[3,5]", "--to", "{1,0:T(2,2)}")["to"]["bytes"], 96)
        image = self.json("layout", "f16[1,224,224,3]", "--to", "5hd", "--letters", "nhwc")
        self.assertEqual(image["to"]["shape"], [1, 1, 224, 224, 16])
        self.assertAlmostEqual(image["to"]["tax"], 16 / 3)
        grouped = self.json("layout", "f16[32,1,3,3]", "--to", "fractal_z", "--groups", "32")
        self.assertEqual(grouped["to"]["shape"], [18, 1, 16, 16])
        self.assertTrue(self.json("layout", "f16[8,16]", "--to", "zz", "--from", "mn: m n")["same_places"])
        self.assertEqual(self.json("layout", "f16[8,9]", "--to", "n m", "--from", "mn: m n")["to"]["layout"], "mn: n m")

    def test_list(self):
        formats = {f["name"]: f for f in self.json("layout", "--list", "--dtype", "i8")["formats"]}
        self.assertEqual(formats["FRACTAL_NZ"]["layout"], "mn: n/32 m/16 m%16 n%32")
        self.assertIn("32 bits", formats["AMX_C"]["refused"])
        taking = [f["name"] for f in self.json("layout", "f16[1,3,8,8]", "--list")["formats"]]
        self.assertIn("NC1HWC0_C04", taking)
        self.assertNotIn("ND_RNN_BIAS", taking)
        self.assertIn("FRACTAL_Z_3D", self.text("layout", "--list"))

    def test_what_is_wrong(self):
        self.refused("layout", says=["TYPE is missing"])
        self.refused("layout", "f16[4,4]", says=["--to is missing", "--list"])
        self.refused("layout", "f17[4,4]", "--to", "nz", says=["f17"])
        self.refused("layout", "f16[4,x]", "--to", "nz", says=["no type with sizes"])
        self.refused("layout", "f16[4]", "--to", "nz", says=["FRACTAL_NZ", "--to 'nz' of f16[4]"])
        self.refused("layout", "f16[4,4]", "--to", "fractal", says=["no layout format 'fractal'", "FRACTAL_NZ"])
        self.refused("layout", "f16[4,4]", "--to", "m%3 n", "--letters", "mn", says=["--to 'm%3 n'"])
        self.refused("layout", "f16[4,4]", "--to", "{1,0:T(8,128)", says=["expected", "XLA layout"])
        self.refused("layout", "f32[4,4]", "--to", "amx_a", says=["8 or 16 bits, f32 has 32"])
        self.refused("layout", "f16[4,4]", "--to", "nz", "--svg", "no/such/place.svg", says=["place.svg"])


class Inspect(Cli):
    def test_report(self):
        report = self.json("inspect", "m.onnx")
        self.assertEqual(report["inputs"], [{"name": "x", "type": "f32[batch,2]", "dtype": "f32", "shape": ["batch", 2]}])
        self.assertEqual(report["operators"], {"Add": 1, "Relu": 1})
        self.assertEqual(report["parameters"], 2)
        self.assertEqual(report["symbols"], ["batch"])
        self.assertEqual(self.json("inspect", "m.onnx", "--dim", "batch=8")["flops"], 8 * report["flops"])
        self.assertIn("batch", self.text("inspect", "m.onnx"))

    def test_ir(self):
        text = self.text("inspect", "m.onnx", "--ir")
        self.assertIn('%', text)
        self.assertIn("add(", text)
        self.assertIn('from "sum"', text)
        self.assertIn("add(", self.json("inspect", "m.onnx", "--ir")["ir"])

    def test_flops_of_a_product(self):
        product = onnx.model([onnx.node("MatMul", ["a", "b"], ["c"])], [onnx.value("a", onnx.FLOAT, [3, 5]), onnx.value("b", onnx.FLOAT, [5, 7])],
                             [onnx.value("c", onnx.FLOAT, [3, 7])])
        self.write("p.onnx", product)
        self.assertEqual(self.json("inspect", "p.onnx")["flops"], 2 * 3 * 5 * 7)

    def test_bad_models(self):
        self.refused("inspect", "absent.onnx", says=["absent.onnx"])
        self.write("cut.onnx", ADD[:-20])
        self.refused("inspect", "cut.onnx", says=["cut.onnx"])
        self.write("empty.onnx", b"")
        self.refused("inspect", "empty.onnx", says=["empty.onnx"])
        self.refused("inspect", ".", says=["directory"])


class Inputs(Cli):
    def test_npy(self):
        self.write("x.npy", npy("<f4", [2, 2], f32(1, 2, -3, 4)))
        self.assertEqual(self.run_model("--input", "x=x.npy"), {"z": ((2, 2), [2, 0, 0, 2])})

    def test_npy_in_other_orders(self):
        self.write("x.npy", npy("<f4", [2, 2], f32(1, -3, 2, 4), fortran=True))
        self.assertEqual(self.run_model("--input", "x=x.npy")["z"], ((2, 2), [2, 0, 0, 2]))
        self.write("x.npy", npy(">f4", [1, 2], struct.pack(">2f", 1, 4)))
        self.assertEqual(self.run_model("--input", "x=x.npy")["z"], ((1, 2), [2, 2]))

    def test_npz(self):
        content = npy("<f4", [1, 2], f32(1, 4))
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with zipfile.ZipFile(self.folder / "x.npz", "w", compression) as archive:
                with archive.open("x.npy", "w", force_zip64=True) as member:
                    member.write(content)
            for argument in ("x.npz", "x=x.npz"):
                self.assertEqual(self.run_model("--input", argument)["z"], ((1, 2), [2, 2]))
        raw = bytearray((self.folder / "x.npz").read_bytes())
        raw[raw.index(b"x.npy") + 30] ^= 0xff
        self.write("bad.npz", bytes(raw))
        self.refused("run", "m.onnx", "--input", "bad.npz", says=["bad.npz", "damaged"])
        self.write("bad.npz", bytes(raw[:-30]))
        self.refused("run", "m.onnx", "--input", "bad.npz", says=["bad.npz", "damaged"])
        with zipfile.ZipFile(self.folder / "y.npz", "w") as archive:
            archive.writestr("y.npy", content)
            archive.writestr("w.npy", content)
        self.refused("run", "m.onnx", "--input", "y.npz", says=["no input 'y'", "'x' (f32[batch,2])"])
        self.refused("run", "m.onnx", "--input", "x=y.npz", says=["no member 'x'"])

    def test_protobuf_and_raw(self):
        self.write("x.pb", onnx.floats("", [1, 2], [1, 4]))
        self.assertEqual(self.run_model("--input", "x=x.pb")["z"], ((1, 2), [2, 2]))
        self.write("x.bin", f32(1, 4))
        self.assertEqual(self.run_model("--input", "x=x.bin", "--input-type", "f32[1,2]")["z"], ((1, 2), [2, 2]))
        self.assertEqual(self.run_model("--input", "x=x.bin", "--dim", "batch=1")["z"], ((1, 2), [2, 2]))
        self.assertEqual(self.run_model("--input", "x=x.bin", "--input-type", "x=f32[1,2]")["z"], ((1, 2), [2, 2]))
        self.refused("run", "m.onnx", "--input", "x=x.bin", says=["'x'", "f32[batch,2]", "--input-type"])
        self.refused("run", "m.onnx", "--input", "x=x.bin", "--input-type", "f32[2,2]", says=["8 bytes", "16"])
        self.refused("run", "m.onnx", "--input", "x=x.bin", "--input-type", "f99[2]", says=["f99"])

    def test_wrong_ones(self):
        good = self.write("x.npy", npy("<f4", [1, 2], f32(1, 4)))
        self.refused("run", "m.onnx", says=["'x' (f32[batch,2]) is missing", "--random"])
        self.refused("run", "m.onnx", "--input", f"q={good}", says=["no input 'q'", "'x' (f32[batch,2])"])
        self.refused("run", "m.onnx", "--input", f"x={good}", "--input", f"x={good}", says=["'x' is given twice"])
        self.refused("run", "m.onnx", "--input", "x", says=["NAME=FILE"])
        self.refused("run", "m.onnx", "--input", "x=absent.npy", says=["absent.npy"])
        self.refused("run", "m.onnx", "--input", "x=m.onnx", says=["ending"])
        self.write("d.npy", npy("<f8", [1, 2], struct.pack("<2d", 1, 4)))
        self.refused("run", "m.onnx", "--input", "x=d.npy", says=["'x'", "f64", "need f32", "d.npy"])
        self.write("r.npy", npy("<f4", [2], f32(1, 4)))
        self.refused("run", "m.onnx", "--input", "x=r.npy", says=["'x'", "f32[2]", "f32[batch,2]"])
        self.write("s.npy", npy("<f4", [1, 3], f32(1, 4, 5)))
        self.refused("run", "m.onnx", "--input", "x=s.npy", says=["'x'", "3", "need 2"])
        self.write("t.npy", npy("<f4", [1 << 40, 2], f32(1, 4)))
        self.refused("run", "m.onnx", "--input", "x=t.npy", says=["t.npy", "8 "])
        self.write("u.npy", b"\x93NUMPY")
        self.refused("run", "m.onnx", "--input", "x=u.npy", says=["u.npy"])

    def test_sizes(self):
        self.assertEqual(self.run_model("--random", "3", "--dim", "batch=3")["z"][0], (3, 2))
        self.assertEqual(self.run_model("--random", "3", "--shape", "x=4x2")["z"][0], (4, 2))
        self.refused("run", "m.onnx", "--random", "1", "--dim", "bitch=3", says=["'bitch'", "batch"])
        self.refused("run", "m.onnx", "--random", "1", "--dim", "batch=-3", says=["-3"])
        self.refused("run", "m.onnx", "--random", "1", "--dim", "batch", says=["batch"])
        self.refused("run", "m.onnx", "--random", "1", "--shape", "x=1x3", says=["'x'", "3"])
        self.refused("run", "m.onnx", "--random", "1", "--shape", "q=1x3", says=["'q'"])
        self.refused("run", "m.onnx", "--random", "1", "--shape", "x=4611686018427387904x2", says=["4611686018427387904"])
        self.refused("run", "m.onnx", "--random", "1", "--dim", "batch=1000000000", "--memory-limit", "1M", code=3, says=["memory limit"])

    def test_random_numbers_follow_from_seed_and_name(self):
        first = self.run_model("--random", "7", "--dim", "batch=500", "--output", "x")
        self.assertEqual(first, self.run_model("--random", "7", "--dim", "batch=500", "--output", "x"))
        self.assertNotEqual(first, self.run_model("--random", "8", "--dim", "batch=500", "--output", "x"))
        shape, values = first["x"]
        self.assertEqual(shape, (500, 2))
        self.assertLess(abs(sum(values) / 1000), 0.15)
        self.assertLess(abs(sum(v * v for v in values) / 1000 - 1), 0.2)
        # An element keeps its number when the tensor grows.
        self.assertEqual(self.run_model("--random", "7", "--dim", "batch=2", "--output", "x")["x"][1], values[:4])

    def test_open_sizes_are_one_and_said_to_be(self):
        report = self.json("run", "m.onnx", "--random", "1")
        self.assertEqual(report["assumed"], {"batch": 1})
        self.assertEqual(report["outputs"][0]["shape"], [1, 2])
        self.assertIn("batch = 1", self.text("run", "m.onnx", "--random", "1"))

    def test_integers_and_bools(self):
        either = onnx.model([onnx.node("Identity", ["i"], ["j"]), onnx.node("Identity", ["b"], ["c"])],
                            [onnx.value("i", onnx.INT64, [100]), onnx.value("b", onnx.BOOL, [100])],
                            [onnx.value("j", onnx.INT64, [100]), onnx.value("c", onnx.BOOL, [100])])
        self.write("i.onnx", either)
        outputs = self.run_model("--random", "1", model="i.onnx")
        self.assertEqual(set(outputs["j"][1]), {0, 1})
        self.assertEqual(set(outputs["c"][1]), {False, True})


class Outputs(Cli):
    def test_report(self):
        self.write("x.npy", npy("<f4", [2, 2], f32(1, float("nan"), float("inf"), 4)))
        report = self.json("run", "m.onnx", "--input", "x=x.npy")
        (entry,) = report["outputs"]
        self.assertEqual((entry["dtype"], entry["shape"], entry["nan"], entry["inf"]), ("f32", [2, 2], 1, 1))
        self.assertEqual((entry["min"], entry["max"]), (2, "inf"))
        self.assertEqual(report["device"], "cpu")
        self.assertGreater(report["ms"], 0)
        self.assertLessEqual({"kernels", "host", "reference", "plans"}, set(report["counters"]))
        self.assertNotIn("file", entry)

    def test_names_stay_in_the_folder_and_apart(self):
        names = ["../../evil", "/etc/evil", "a/b", "a%2fb", "A", "a", ".", "..", "-", "e e", "é", "n" * 300, "n" * 299 + "m", "a#0"]
        self.write("n.onnx", onnx.model([onnx.node("Identity", ["x"], [n]) for n in names], [onnx.value("x", onnx.FLOAT, [1])],
                                        [onnx.value(n, onnx.FLOAT, [1]) for n in names]))
        report = self.json("run", "n.onnx", "--random", "1", "--output-dir", "deep/out")
        self.assertEqual([o["name"] for o in report["outputs"]], names)
        files = [o["file"] for o in report["outputs"]]
        self.assertEqual(len(set(files)), len(names))
        self.assertEqual(sorted(os.listdir(self.folder / "deep/out")), sorted(files))
        self.assertEqual(sorted(os.listdir(self.folder)), ["deep", "m.onnx", "n.onnx"])
        self.assertEqual(self.start("run", "n.onnx", "--random", "1", "--check", "deep/out").returncode, 0)

    def test_types_that_numpy_lacks(self):
        self.write("b.onnx", onnx.model([onnx.node("Identity", ["x"], ["y"]), onnx.node("Identity", ["s"], ["t"])],
                                        [onnx.value("x", onnx.BFLOAT16, [2]), onnx.value("s", onnx.STRING, [2])],
                                        [onnx.value("y", onnx.BFLOAT16, [2]), onnx.value("t", onnx.STRING, [2])]))
        self.write("x.npy", npy("|V2", [2], b"\x80\x3f\x00\x40"))
        self.write("s.pb", onnx.tensor("", onnx.STRING, [2], strings=["one", "two"]))
        arguments = ["run", "b.onnx", "--input", "x=x.npy", "--input", "s=s.pb"]
        report = self.json(*arguments, "--output-dir", "out")
        self.assertEqual([o["file"] for o in report["outputs"]], ["y.pb", "t.pb"])
        self.assertEqual(report["outputs"][0]["max"], 2)
        self.assertIn(b"two", (self.folder / "out/t.pb").read_bytes())
        self.start(*arguments, "--check", "out")
        self.write("out/t.pb", onnx.tensor("t", onnx.STRING, [2], strings=["one", "three"]))
        self.assertIn('"two", expected "three"', self.text(*arguments, "--check", "out", code=1))

    def test_sequences(self):
        self.write("s.onnx", onnx.model([onnx.node("SequenceConstruct", ["x", "x"], ["s"])], [onnx.value("x", onnx.FLOAT, [1])],
                                        [onnx.sequence_value("s", onnx.FLOAT)]))
        report = self.json("run", "s.onnx", "--random", "1", "--output-dir", "out")
        self.assertEqual([i["file"] for i in report["outputs"][0]["items"]], ["s#0.npy", "s#1.npy"])
        self.start("run", "s.onnx", "--random", "1", "--check", "out")
        (self.folder / "out/s#1.npy").unlink()
        self.assertIn("2 items, expected 1", self.text("run", "s.onnx", "--random", "1", "--check", "out", code=1))

    def test_intermediates(self):
        self.write("x.npy", npy("<f4", [1, 2], f32(1, 1)))
        outputs = self.run_model("--input", "x=x.npy", "--output", "y")
        self.assertEqual(outputs, {"z": ((1, 2), [2, 0]), "y": ((1, 2), [2, -1])})
        self.refused("run", "m.onnx", "--input", "x=x.npy", "--output", "q", says=["'q'"])
        report = self.json("run", "m.onnx", "--input", "x=x.npy", "--dump", "all", "--device", "reference")
        self.assertEqual([d["name"] for d in report["dump"]], ["y", "z"])
        self.assertEqual(read_npy(self.folder / "all/y.npy"), ((1, 2), [2, -1]))

    def test_interrupted_writes_leave_nothing(self):
        # The system refuses the third kilobyte, then kills the writer at it.
        arguments = [TESSERA, "run", "m.onnx", "--random", "1", "--dim", "batch=10000", "--output-dir", "out"]
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
        self.write("out/z.npy", b"old")
        killed = subprocess.run(arguments, cwd=self.folder, capture_output=True, preexec_fn=limit)
        self.assertEqual(killed.returncode, -signal.SIGXFSZ)
        self.assertEqual((self.folder / "out/z.npy").read_bytes(), b"old")

        def refuse():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            limit()
        failed = subprocess.run(arguments, cwd=self.folder, capture_output=True, preexec_fn=refuse, restore_signals=False)
        self.assertEqual(failed.returncode, 3, failed.stderr)
        self.assertIn(b"z.npy", failed.stderr)
        self.assertEqual(os.listdir(self.folder / "out"), ["z.npy"])
        self.assertEqual((self.folder / "out/z.npy").read_bytes(), b"old")

    def test_places_that_take_nothing(self):
        self.write("file", b"")
        self.refused("run", "m.onnx", "--random", "1", "--output-dir", "file", says=["'file'"])
        with open("/dev/full", "w") as full:
            done = subprocess.run([TESSERA, "run", "m.onnx", "--random", "1"], cwd=self.folder, stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"standard output", done.stderr)


class Check(Cli):
    def setUp(self):
        super().setUp()
        self.write("x.npy", npy("<f4", [1, 2], f32(1, 4)))
        self.write("set/input_0.pb", onnx.floats("x", [1, 2], [1, 4]))
        self.write("set/output_0.pb", onnx.floats("z", [1, 2], [2, 2]))

    def test_against_written_outputs(self):
        self.run_model("--input", "x=x.npy")
        self.start("run", "m.onnx", "--input", "x=x.npy", "--check", "out")
        self.write("out/z.npy", npy("<f4", [1, 2], f32(2, 2.01)))
        report = self.json("run", "m.onnx", "--input", "x=x.npy", "--check", "out", code=1)
        (check,) = report["check"]
        self.assertEqual((check["ok"], check["count"], check["mismatched"]), (False, 2, 1))
        self.assertIn("[0,1]: 2, expected 2.01", check["first"])
        self.assertIn("mismatch", self.text("run", "m.onnx", "--input", "x=x.npy", "--check", "out", code=1))
        self.start("run", "m.onnx", "--input", "x=x.npy", "--check", "out", "--rtol", "0.01")
        self.start("run", "m.onnx", "--input", "x=x.npy", "--check", "out", "--rtol", "0", "--atol", "0.02")

    def test_other_type_or_shape(self):
        self.write("out/z.npy", npy("<f4", [2], f32(2, 2)))
        self.assertIn("f32[1,2], expected f32[2]", self.text("run", "m.onnx", "--input", "x=x.npy", "--check", "out", code=1))
        self.write("out/z.npy", npy("<f4", [1, 2], f32(2, float("nan"))))
        self.start("run", "m.onnx", "--input", "x=x.npy", "--check", "out", code=1)

    def test_nothing_to_compare_with(self):
        (self.folder / "out").mkdir()
        self.refused("run", "m.onnx", "--input", "x=x.npy", "--check", "out", says=["'z'", "output_0.pb"])
        self.refused("run", "m.onnx", "--input", "x=x.npy", "--check", "absent", says=["absent"])

    def test_set(self):
        self.assertIn("as expected", self.text("run", "m.onnx", "--test-set", "set"))
        self.write("set/output_0.pb", onnx.floats("z", [1, 2], [2, 3]))
        self.start("run", "m.onnx", "--test-set", "set", code=1)
        self.assertNotIn("check", self.json("run", "m.onnx", "--test-set", "set", "--no-check"))
        (self.folder / "set/output_0.pb").unlink()
        self.refused("run", "m.onnx", "--test-set", "set", says=["output_0.pb"])
        self.write("set/input_1.pb", onnx.floats("q", [1, 2], [1, 4]))
        self.refused("run", "m.onnx", "--test-set", "set", "--no-check", says=["input_1.pb", "'x'"])
        self.refused("run", "m.onnx", "--test-set", "absent", says=["absent"])


class Bench(Cli):
    def test_report(self):
        report = self.json("bench", "m.onnx", "--iters", "20", "--threads", "1")
        for key in ("ms", "min_ms", "median_ms", "p90_ms", "load_ms", "first_ms", "rss_peak_bytes"):
            self.assertGreater(report[key], 0, key)
        for key in ("peak_bytes", "live_bytes", "weight_bytes"):
            self.assertGreaterEqual(report[key], 0, key)
        self.assertLessEqual(report["min_ms"], report["median_ms"])
        self.assertLessEqual(report["median_ms"], report["p90_ms"])
        self.assertGreater(report["first_ms"], report["load_ms"])
        self.assertEqual((report["iters"], report["threads"], report["device"]), (20, 1, "cpu"))
        self.assertEqual(report["assumed"], {"batch": 1})
        self.assertIn("median_ms", self.text("bench", "m.onnx", "--iters", "3"))

    def test_timeout(self):
        self.refused("bench", "m.onnx", "--iters", "100000000", "--timeout", "0.6", code=3, says=["time limit"])


class Plan(Cli):
    def test_plan(self):
        plan = self.json("plan", "m.onnx")
        self.assertEqual(plan["schema"], "tessera.plan/1")
        self.assertEqual(plan["planned_for"], {"batch": 1})
        self.assertEqual(self.json("plan", "m.onnx", "--dim", "batch=4")["planned_for"], {})
        text = self.text("plan", "m.onnx")
        self.assertIn("launches", text)
        self.assertIn("batch = 1", text)
        self.refused("plan", "m.onnx", "--device", "reference", code=3, says=["interpreter"])


class Terminal(Cli):
    def on_terminal(self, **environment):
        master, slave = pty.openpty()
        child = subprocess.Popen([TESSERA, "inspect", "m.onnx"], cwd=self.folder, stdout=slave, stderr=slave,
                                 env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environment})
        os.close(slave)
        text = b""
        try:
            while chunk := os.read(master, 4096):
                text += chunk
        except OSError:
            pass
        os.close(master)
        self.assertEqual(child.wait(), 0)
        return text

    def test_colours(self):
        self.assertIn(b"\x1b[1m", self.on_terminal())
        self.assertNotIn(b"\x1b", self.on_terminal(NO_COLOR="1"))
        self.assertNotIn("\x1b", self.text("inspect", "m.onnx"))


if __name__ == "__main__":
    TESSERA = os.path.abspath(sys.argv.pop(1))
    unittest.main()
