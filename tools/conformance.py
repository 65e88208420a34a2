#!/usr/bin/env python3
"""Runs ONNX's backend test cases through tessera and compares with the official comparison.

    conformance.py [--tessera build/tessera] [--filter REGEX] [--jobs N] [--ledger FILE] [--verbose] [--device D]

The cases are the data of the installed onnx package. A case passes only if every expected output was compared. The
ledger lists the cases that are known to fail, one a line with the reason; one that starts to pass, or another that
fails, fails the run. Passed cases are split by who computed: device kernels only, with host operators, or with the
reference interpreter.
"""
import argparse, collections, concurrent.futures, glob, json, os, re, subprocess, sys, tempfile

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

KINDS = ("real", "node", "pytorch-converted", "pytorch-operator", "simple")
LIGHT = os.path.join(os.path.dirname(onnx.__file__), "backend/test/data/light")
TIMEOUT_S = 120


class Failure(Exception):
    pass


def load(path, type_proto):
    with open(path, "rb") as file:
        data = file.read()
    if type_proto.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if type_proto.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def output_value(entry, folder):
    if "items" in entry:
        return [output_value(item, folder) for item in entry["items"]]
    if "value" in entry:
        return None if entry["value"] is None else output_value(entry["value"], folder)
    path = os.path.join(folder, entry["file"])
    if path.endswith(".npy"):
        return np.load(path)
    with open(path, "rb") as file:
        return numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))


def flat(value):
    """The arrays of nested lists in order: the official comparison cannot take a scalar within a list."""
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in flat(item)]
    return [value]


def structure(value):
    return [structure(item) for item in value] if isinstance(value, (list, tuple)) else 0


def data_sets(case, model, scratch):
    """(folder with input_N.pb, [paths of the expected outputs]) of each data set."""
    if case.model_dir:
        for folder in sorted(glob.glob(os.path.join(case.model_dir, "test_data_set_*"))):
            count = len(glob.glob(os.path.join(folder, "output_*.pb")))
            yield folder, [os.path.join(folder, f"output_{i}.pb") for i in range(count)]
        return
    # The light models' input is a ramp, as the official runner makes it.
    weights = {t.name for t in model.graph.initializer}
    for i, value in enumerate(v for v in model.graph.input if v.name not in weights):
        array = Runner.generate_dummy_data(value, seed=0, name=case.model_name, random=False)
        with open(os.path.join(scratch, f"input_{i}.pb"), "wb") as file:
            file.write(numpy_helper.from_array(array, value.name).SerializeToString())
    yield scratch, [os.path.join(LIGHT, f"light_{case.model_name}_output_0.pb")]


def run_case(case, args):
    path = os.path.join(case.model_dir, "model.onnx") if case.model_dir else os.path.join(LIGHT, f"light_{case.model_name}.onnx")
    model = onnx.load(path)
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        sets = list(data_sets(case, model, scratch))
        if not sets:
            raise Failure("no data set")
        for folder, expected_paths in sets:
            out = os.path.join(scratch, "out")
            os.makedirs(out, exist_ok=True)
            command = [args.tessera, "run", path, "--test-set", folder, "--no-check", "--output-dir", out, "--device", args.device, "--json"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
            if done.returncode:
                raise Failure(f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ''}")
            report = json.loads(done.stdout)
            counts.update(report.get("counters", {}))
            if len(expected_paths) != len(model.graph.output):
                raise Failure(f"{len(expected_paths)} expected files for {len(model.graph.output)} outputs")
            expected = [load(p, o.type) for p, o in zip(expected_paths, model.graph.output)]
            actual = [output_value(entry, out) for entry in report["outputs"]]
            for e, a in zip(expected, actual):
                if (e is None) != (a is None) or structure(e) != structure(a):
                    raise Failure(f"expected {e}, got {a}")
            pairs = [(e, a) for e, a in zip(flat(expected), flat(actual)) if e is not None]
            try:
                Runner.assert_similar_outputs([e for e, _ in pairs], [a for _, a in pairs], case.rtol, case.atol, folder)
            except AssertionError as e:
                raise Failure(" ".join(str(e).split())[:300]) from e
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", default="build/tessera")
    parser.add_argument("--filter", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--ledger", default=os.path.join(os.path.dirname(__file__), "conformance.ledger"), help="known failures (default: the file beside this script)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--minimum", type=float, default=98, help="least share of passed cases, in percent, of a run without --filter (default 98)")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()

    ledger = {}
    if os.path.exists(args.ledger):
        for line in open(args.ledger):
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.strip().partition(" ")
                ledger[name] = reason.strip()
    cases = [(kind, case) for kind in KINDS for case in load_model_tests(kind=kind) if re.search(args.filter, case.name)]
    results, failures = collections.Counter(), {}
    by = collections.Counter()

    def work(item):
        try:
            return item, run_case(item[1], args), None
        except subprocess.TimeoutExpired:
            return item, None, f"no answer after {TIMEOUT_S} s"
        except Failure as e:
            return item, None, str(e)
        except Exception as e:  # a report that cannot be read is a failure of the case
            return item, None, f"{type(e).__name__}: {e}"

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for (kind, case), counts, failure in pool.map(work, cases):
            results[kind, failure is None] += 1
            if failure is None:
                by["reference interpreter" if counts["reference"] or args.device == "reference" else "host operators" if counts["host"] else "device kernels"] += 1
            else:
                failures[case.name] = failure
                if args.verbose or case.name not in ledger:
                    print(f"FAIL {case.name}: {failure}", flush=True)

    total, passed = len(cases), len(cases) - len(failures)
    print(f"\n{'cases':<20}{'passed':>8}{'failed':>8}")
    for kind in KINDS:
        print(f"{kind:<20}{results[kind, True]:>8}{results[kind, False]:>8}")
    for who, count in sorted(by.items()):
        print(f"passed, with {who}: {count}")
    share = 100 * passed / max(total, 1)
    print(f"{passed} of {total} pass: {share:.2f} %")
    bad = not args.filter and share < args.minimum
    if bad:
        print(f"below the minimum of {args.minimum} %")
    for name in failures:
        if name not in ledger:
            bad = True
            print(f"not in the ledger: {name}")
    for name in sorted({c.name for _, c in cases} & set(ledger) - set(failures)):
        bad = True
        print(f"in the ledger, but passes: {name}")
    print(f"{passed} passed, {len(failures)} failed, 0 skipped")
    sys.exit(1 if bad else 0)


main()
