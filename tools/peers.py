#!/usr/bin/env python3
"""Times ONNX models on several runtimes side by side and prints one JSON line for each model and runtime.

    peers.py MODEL.onnx... [--peers ort,openvino,iree] [--threads 1] [--rounds 7] [--round-ms 250] [--dim NAME=SIZE]
             [--precision fp32|bf16] [--command 'tessera bench {model} {inputs} --json' --check-command '...']

The runtimes take turns, round by round, so that a noisy machine disturbs all alike. A round's figure is its mean time of
one inference; min_ms and median_ms are over rounds. All get the same inputs, seeded by name, and each one's outputs are
compared with the first one's: where the largest difference exceeds 1e-4 of the largest magnitude, "void" is true.

--command lets a program take part. {model}, {threads}, {iters} and {inputs} (`--input NAME=FILE.npy ...`) are replaced; it
prints a JSON object with "ms", the mean of one inference after warming up. --check-command knows {outdir}, too, and
prints "outputs": [{"name", "file"}]. A peer that is not installed or cannot run a model is a line with "error".
"""
import argparse, json, os, shlex, statistics, subprocess, sys, tempfile, time

import numpy as np
import onnx

import harness
from harness import Failure


class Ort:
    def __init__(self, path, feeds, threads, precision):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        if precision == "bf16":
            options.add_session_config_entry("mlas.enable_gemm_fastmath_arm64_bfloat16", "1")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.feeds = feeds

    def run(self):
        return self.session.run(None, self.feeds)


class OpenVino:
    def __init__(self, path, feeds, threads, precision):
        import openvino
        core = openvino.Core()
        model = core.read_model(path)
        ports = {name: port for port in model.inputs for name in port.get_names()}
        model.reshape({ports[name]: list(value.shape) for name, value in feeds.items()})
        self.request = core.compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[precision]}).create_infer_request()
        self.feeds = feeds

    def run(self):
        result = self.request.infer(self.feeds, share_inputs=True, share_outputs=True)
        return [np.asarray(result[i]) for i in range(len(result))]


class Iree:
    OPSET = 17  # the oldest whose operators the importer knows all

    def __init__(self, path, feeds, threads, precision):
        if precision != "fp32":
            raise Failure(f"no precision {precision}")
        import iree.compiler, iree.runtime
        model = onnx.load(path)
        if model.opset_import[0].version < self.OPSET:
            model = onnx.version_converter.convert_version(model, self.OPSET)
        for value in model.graph.input:
            for axis, size in zip(value.type.tensor_type.shape.dim, feeds[value.name].shape if value.name in feeds else ()):
                axis.dim_value = size
        with tempfile.TemporaryDirectory() as folder:
            fixed, mlir = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.mlir")
            onnx.save(onnx.shape_inference.infer_shapes(model), fixed)
            importer = os.path.join(os.path.dirname(sys.executable), "iree-import-onnx")
            subprocess.run([importer, fixed, "-o", mlir, "--opset-version", str(self.OPSET)], check=True, capture_output=True)
            binary = iree.compiler.compile_file(mlir, target_backends=["llvm-cpu"],
                                                extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"])
        iree.runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
        config = iree.runtime.Config("local-task" if threads > 1 else "local-sync")
        module = iree.runtime.VmModule.copy_buffer(config.vm_instance, binary)
        context = iree.runtime.SystemContext(config=config)
        context.add_vm_module(module)
        entry = next(n for n in module.function_names if not n.startswith("_") and "$" not in n and "init" not in n)
        self.entry = context.modules[module.name][entry]
        self.inputs = [iree.runtime.asdevicearray(config.device, feeds[name]) for name, _, _ in harness.inputs_of(model)]

    def run(self):
        result = self.entry(*self.inputs)
        return [r.to_host() for r in (result if isinstance(result, (list, tuple)) else [result])]


PEERS = {"ort": Ort, "openvino": OpenVino, "iree": Iree}


class Peer:
    """A runtime of this process: build, then rounds."""

    def __init__(self, kind, path, feeds, threads, precision, round_ms):
        start = time.perf_counter()
        self.runtime = PEERS[kind](path, feeds, threads, precision)
        self.build_s = time.perf_counter() - start
        self.outputs, self.report = self.runtime.run(), None
        self.first_ms = (time.perf_counter() - start) * 1e3
        self.iterations = 1
        for _ in range(2):  # the first runs also warm up
            self.iterations = max(1, int(round_ms / self.round()))

    def round(self):
        start = time.perf_counter()
        for _ in range(self.iterations):
            self.runtime.run()
        return (time.perf_counter() - start) * 1e3 / self.iterations


class Command:
    """A program, started anew for each round."""

    def __init__(self, bench, check, path, feeds, threads, names, round_ms):
        self.folder = tempfile.TemporaryDirectory()
        inputs = " ".join(map(shlex.quote, harness.save_inputs(feeds, self.folder.name)))
        self.bench = bench
        self.words = {"model": shlex.quote(path), "threads": threads, "inputs": inputs, "outdir": self.folder.name}
        self.build_s, self.first_ms, self.outputs, self.report, self.iterations = 0.0, float("inf"), None, {}, 1
        if check:
            report = self.call(check)
            files = {o["name"]: harness.read_value(o, self.folder.name) for o in report["outputs"]}
            self.outputs = [files[name] for name in names]
        self.iterations = max(1, int(round_ms / self.round()))

    def call(self, template):
        return harness.call(shlex.split(template.format(iters=self.iterations, **self.words)), 600)

    def round(self):
        self.report = self.call(self.bench)
        self.build_s = self.report.get("load_ms", 0) / 1e3
        self.first_ms = min(self.first_ms, self.report.get("first_ms", float("inf")))
        return float(self.report["ms"])


def measure(path, feeds, peers=("ort",), threads=1, rounds=7, round_ms=250, precision="fp32", command=None, check_command=None):
    """One dict for each runtime, as the lines that this script prints."""
    names = [o.name for o in onnx.load(path, load_external_data=False).graph.output]
    about = {"model": os.path.basename(path)}
    makers = {kind: lambda kind=kind: Peer(kind, path, feeds, threads, precision, round_ms) for kind in peers}
    if command:
        makers["command"] = lambda: Command(command, check_command, path, feeds, threads, names, round_ms)
    running, lines = {}, []
    for name, maker in makers.items():
        try:
            running[name] = maker()
        except Exception as e:  # whatever it is: this runtime cannot run this model
            lines.append({**about, "runtime": name, "error": f"{type(e).__name__}: {e}"[:300]})
    times = {name: [] for name in running}
    for _ in range(rounds):
        for name, runtime in running.items():
            times[name].append(runtime.round())
    expected = next((r.outputs for r in running.values() if r.outputs is not None), None)
    for name, runtime in running.items():
        line = {**about, "runtime": name, "threads": threads, "precision": precision, "min_ms": round(min(times[name]), 3),
                "median_ms": round(statistics.median(times[name]), 3), "build_s": round(runtime.build_s, 3),
                "first_ms": round(runtime.first_ms, 1)}
        if runtime.report:
            line["report"] = runtime.report
        if runtime.outputs is not None:
            try:
                pairs = [harness.compare(np.asarray(e), np.asarray(a)) for e, a in zip(expected, runtime.outputs, strict=True)]
                line.update(cosine=min(p[0] for p in pairs), worst=max(p[1] for p in pairs))
                line["void"] = line["worst"] > harness.WORST
            except Failure as e:
                line.update(void=True, difference=str(e))
        lines.append(line)
    return lines


def pairs_of(texts):
    pairs = [text.partition("=") for text in texts]
    for name, equals, size in pairs:
        if not equals or not size.isdigit():
            sys.exit(f"'{name}{equals}{size}' is not NAME=SIZE")
    return {name: int(size) for name, _, size in pairs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--peers", default="ort,openvino")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--round-ms", type=float, default=250, help="about how long one round of one runtime lasts")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE", help="an open size; *=SIZE for all others")
    parser.add_argument("--limit", action="append", default=[], metavar="INPUT=N", help="integer inputs are below N (2)")
    parser.add_argument("--command")
    parser.add_argument("--check-command")
    args = parser.parse_args()
    peers = [p for p in args.peers.split(",") if p]
    for peer in peers:
        if peer not in PEERS:
            parser.error(f"no peer '{peer}': {', '.join(PEERS)}")
    for path in args.models:
        feeds = harness.seeded_inputs(onnx.load(path, load_external_data=False), pairs_of(args.dim), pairs_of(args.limit))
        for line in measure(path, feeds, peers, args.threads, args.rounds, args.round_ms, args.precision, args.command,
                            args.check_command):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
