"""What the scripts beside this one share: inputs by seed, calling tessera, reading what it wrote, comparing."""
import json, os, subprocess, tempfile, time, zlib

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TESSERA = os.path.join(ROOT, "build", "tessera")
MODELS = os.path.join(ROOT, "build", "models")

# Two fp32 runtimes agree when both hold for every output.
COSINE = 0.999999
WORST = 1e-4


class Failure(Exception):
    pass


def package_file(package, *parts):
    """A file of an installed package, without importing it: its own dependencies are not here."""
    import importlib.util
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise Failure(f"the package {package} is not installed; ./x setup installs it")
    return os.path.join(os.path.dirname(spec.origin), *parts)


def inputs_of(model):
    """[(name, numpy dtype, [sizes, or names where open])] of a loaded model."""
    weights = {t.name for t in model.graph.initializer}
    return [(v.name, onnx.helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type),
             [d.dim_value if d.HasField("dim_value") else d.dim_param for d in v.type.tensor_type.shape.dim])
            for v in model.graph.input if v.name not in weights]


def seeded_inputs(model, dims=None, limits=None):
    """Inputs that depend on their names only: normal floats; integers from 1 to limits[input] (2), exclusive. An open size
    is dims[symbol], or dims["*"], or 1."""
    dims, limits, feeds = dims or {}, limits or {}, {}
    for name, dtype, sizes in inputs_of(model):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        shape = [s if isinstance(s, int) and s > 0 else int(dims.get(s, dims.get("*", 1))) for s in sizes]
        if np.issubdtype(dtype, np.floating):
            feeds[name] = rng.standard_normal(shape).astype(dtype)
        else:
            feeds[name] = rng.integers(1 if dtype != np.bool_ else 0, int(limits.get(name, 2)), shape).astype(dtype)
    return feeds


def read_value(entry, folder):
    """One entry of `outputs` of `tessera run --json`: an array, a list for a sequence, None for an empty optional."""
    if "items" in entry:
        return [read_value(item, folder) for item in entry["items"]]
    if "value" in entry:
        return None if entry["value"] is None else read_value(entry["value"], folder)
    path = os.path.join(folder, entry["file"])
    if path.endswith(".npy"):
        return np.load(path)
    with open(path, "rb") as file:
        return numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))


def call(command, timeout_s=None):
    """The JSON object that a command prints; Failure with its last words if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise Failure(f"no answer after {timeout_s} s") from None
    except OSError as e:
        raise Failure(str(e)) from None
    if done.returncode:
        words = done.stderr.strip().splitlines()
        raise Failure(f"exit {done.returncode}: {words[-1] if words else 'silent'}")
    try:
        return json.loads(done.stdout[done.stdout.index("{"):])
    except ValueError:
        raise Failure(f"printed no JSON: {done.stdout[:200]!r}") from None


def save_inputs(feeds, folder):
    """Arguments for `tessera run` or `bench` that name these inputs, written below the folder."""
    arguments = []
    for i, (name, value) in enumerate(feeds.items()):
        path = os.path.join(folder, f"input_{i}.npy")
        np.save(path, value)
        arguments += ["--input", f"{name}={path}"]
    return arguments


def run_tessera(path, feeds, *extra, tessera=None, timeout_s=300):
    """(outputs by name, the JSON report) of one `tessera run`; the report gets `wall_ms`, process start to end."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        os.makedirs(out)
        start = time.perf_counter()
        report = call([tessera or TESSERA, "run", path, *save_inputs(feeds, folder), "--output-dir", out, "--json", *extra], timeout_s)
        report["wall_ms"] = (time.perf_counter() - start) * 1e3
        return {entry["name"]: read_value(entry, out) for entry in report["outputs"]}, report


def ort_session(path, threads=0):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run_ort(session, feeds):
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


def compare(expected, actual):
    """(cosine, worst) of two arrays: worst is the largest difference over the largest magnitude expected. Failure where
    type or shape differ, or where one is finite and the other is not."""
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        raise Failure(f"is {actual.dtype}{list(actual.shape)}, expected {expected.dtype}{list(expected.shape)}")
    x, y = expected.astype(np.float64).ravel(), actual.astype(np.float64).ravel()
    if not x.size:
        return 1.0, 0.0
    if not (np.isfinite(x) == np.isfinite(y)).all():
        raise Failure(f"{np.count_nonzero(~np.isfinite(y))} values are not finite, expected {np.count_nonzero(~np.isfinite(x))}")
    if not np.isfinite(x).all():
        raise Failure("the expected values are not finite: they say nothing")
    scale, product = np.abs(x).max(), np.linalg.norm(x) * np.linalg.norm(y)
    if not scale:
        raise Failure("the expected values are all zero: they say nothing")
    return (float(x @ y / product) if product else 0.0), float(np.abs(x - y).max() / scale)


def agreement(expected, actual):
    """(least cosine, largest worst) over outputs by name."""
    if set(expected) != set(actual):
        raise Failure(f"outputs are {sorted(actual)}, expected {sorted(expected)}")
    pairs = [compare(expected[name], actual[name]) for name in expected]
    return min(p[0] for p in pairs), max(p[1] for p in pairs)
