#!/usr/bin/env python3
"""Runs real models through tessera and onnxruntime on the same inputs and compares.

    models.py [--all] [--filter REGEX] [--device D] [--verbose]

The light CNNs with random weights (make_models.py), the OCR models of rapidocr-onnxruntime on drawn text at three sizes
each, and the voice detectors of silero-vad on a synthetic voice, their state fed back over 20 steps. --all adds the
networks that torch exports; it installs tools/requirements-all.txt. Each line says who computed: device kernels,
host operators, the reference interpreter for want of a kernel.
"""
import argparse, collections, dataclasses, functools, os, re, subprocess, sys, time
from typing import Callable, Iterator

import numpy as np
import onnx

import harness, make_models, ocr
from harness import COSINE, WORST, Failure

VOICE = ("silero_vad", "silero_vad_16k_op15", "silero_vad_16k_sequence", "silero_vad_half", "silero_vad_op18_ifless",
         "silero_vad_openvino_16k")
VOICE_STEPS = 20

OCR_SIZES = {
    "detection": [(320, 160), (480, 320), (640, 256)],
    "direction": [(192, 48), (96, 48), (320, 48)],
    "recognition": [(160, 48), (320, 48), (560, 48)],
}
# Past lengths of decoding steps, and bounds of integer inputs, of the exported networks.
PAST_LENGTHS = (1, 64)
LIMITS = {"input_ids": 30000}


@dataclasses.dataclass
class Case:
    """Steps of one model: `steps` yields inputs; what `fed_back` names is overwritten by the previous step's output."""
    name: str
    path: Callable[[], str]
    steps: Callable[[onnx.ModelProto], Iterator[dict]]
    fed_back: dict = dataclasses.field(default_factory=dict)
    may_fall_back: bool = False  # to the reference interpreter


def generated(name, past_length=None):
    def steps(model):
        yield harness.seeded_inputs(model, {"past_length": past_length}, LIMITS)
    return Case(f"{name}_{past_length}" if past_length else name, functools.partial(make_models.make, name, harness.MODELS), steps)


def ocr_case(kind, size):
    def steps(model):
        lines = ["Tessera", "reads 3 lines", "of text"] if kind == "detection" else ["Tessera 2026"]
        image = ocr.draw(lines, size, font_size=30)
        yield {"x": ocr.detection_input(image) if kind == "detection" else ocr.pixels(image)}
    return Case(f"ocr_{kind}_{size[1]}x{size[0]}", functools.partial(ocr.model_path, kind), steps)


def voice(samples, rate):
    """Something like speech: a gliding pitch with formant-like harmonics, in syllables, with pauses."""
    t = np.arange(samples) / rate
    pitch = 140 + 30 * np.sin(2 * np.pi * 0.7 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    tone = sum(np.sin(k * phase) * np.exp(-((k * 140 - 600) / 700) ** 2) for k in range(1, 20))
    syllables = np.clip(np.sin(2 * np.pi * 3 * t), 0, 1) * (np.sin(2 * np.pi * 1.1 * t + 1) > -0.5)
    noise = np.random.default_rng(3).standard_normal(samples)
    return (0.15 * tone * syllables + 0.003 * noise).astype(np.float32)


def voice_case(file, rate, rows=1):
    """Each step takes `rows` chunks, with the last samples of the chunk before in front of each."""
    chunk, context = (512, 64) if rate == 16000 else (256, 32)

    def steps(model):
        wave = np.concatenate([np.zeros(context, np.float32), voice(VOICE_STEPS * rows * chunk, rate)])
        windows = np.stack([wave[i * chunk:(i + 1) * chunk + context] for i in range(VOICE_STEPS * rows)])
        names = [name for name, _, _ in harness.inputs_of(model)]
        start = {name: np.zeros((2, 1, 128) if name == "state" else (1, 1, 128), np.float32) for name in names}
        for i in range(VOICE_STEPS):
            feeds = {name: start[name] for name in names}
            feeds["input"] = windows[i * rows:(i + 1) * rows]
            if "sr" in names:
                feeds["sr"] = np.array(rate, np.int64)
            yield feeds

    fed_back = {"h": "hn", "c": "cn"} if "sequence" in file else {"state": "stateN"}
    name = file if rate == 16000 else file + "_8k"
    return Case(name, functools.partial(harness.package_file, "silero_vad", "data", file + ".onnx"), steps, fed_back, may_fall_back=True)


def cases(everything):
    yield from map(generated, make_models.LIGHT)
    for kind, sizes in OCR_SIZES.items():
        for size in sizes:
            yield ocr_case(kind, size)
    for file in VOICE:
        yield voice_case(file, 16000, rows=3 if "sequence" in file else 1)
    for file in ("silero_vad", "silero_vad_op18_ifless"):  # these hold two networks, by sampling rate
        yield voice_case(file, 8000)
    if everything:
        for name in make_models.EXPORTED:
            for length in PAST_LENGTHS if name.endswith("_past") else (None,):
                yield generated(name, length)


def check_case(case, args):
    """The case's line. The steps' outputs are compared as one signal each: the scale of a probability is its range over
    time, not the value of a quiet moment."""
    path = case.path()
    session = harness.ort_session(path)
    counters, ms = collections.Counter(), 0.0
    expected, actual = [], []
    for feeds in case.steps(onnx.load(path, load_external_data=False)):
        theirs, ours = dict(feeds), dict(feeds)
        if expected:
            for name, output in case.fed_back.items():
                theirs[name], ours[name] = expected[-1][output], actual[-1][output]
        expected.append(harness.run_ort(session, theirs))
        try:
            outputs, report = harness.run_tessera(path, ours, "--device", args.device, tessera=args.tessera)
        except Failure as e:
            raise Failure(f"step {len(actual)}: {e}" if case.fed_back else str(e)) from None
        actual.append(outputs)
        counters.update(report["counters"])
        ms += report["ms"]
    steps = len(actual)
    kernels, host, reference = (counters[who] // steps for who in ("kernels", "host", "reference"))
    cosine, worst = harness.agreement(*({name: np.stack([step[name] for step in side]) for name in side[0]} for side in (expected, actual)))
    line = f"{cosine:>12.8f}{worst:>10.1e}{ms / steps:>9.1f}{kernels:>9}{host:>6}{reference:>10}"
    if not (cosine > COSINE and worst < WORST):
        raise Failure(line + "  not equal")
    if reference and not case.may_fall_back and args.device != "reference":
        raise Failure(line + "  falls back to the reference")
    return line


def check_plans(name):
    """A decoding step plans at most 3 times for 64 past lengths in one process, as the session's test says."""
    test = os.path.join(os.path.dirname(harness.TESSERA), "tessera_session_test")
    done = subprocess.run([test, "--gtest_filter=Past.*Exported*"], capture_output=True, text=True,
                          env={**os.environ, "TESSERA_PAST_MODEL": make_models.make(name, harness.MODELS)})
    if done.returncode or "[  PASSED  ] 1 test" not in done.stdout:
        raise Failure(f"\n{done.stdout}")
    return "  at most 3 plans for 64 past lengths"


def install_exporters():
    """torch and its kin, only for --all: large, so not part of ./x setup."""
    try:
        import torch, torchvision, transformers  # noqa: F401
    except ImportError:
        print("installing torch to export the networks", file=sys.stderr, flush=True)
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r",
                               os.path.join(harness.ROOT, "tools", "requirements-all.txt")])
        if done.returncode:
            sys.exit("models: could not install tools/requirements-all.txt")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", default=harness.TESSERA)
    parser.add_argument("--all", action="store_true", help="also the networks that torch exports")
    parser.add_argument("--filter", default="", help="only cases that match this expression")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    if args.all:
        install_exporters()

    checks = [(case.name, functools.partial(check_case, case, args)) for case in cases(args.all)]
    if args.all:
        checks.append(("gpt2_past_plans", functools.partial(check_plans, "gpt2_past")))
    checks = [(name, check) for name, check in checks if re.search(args.filter, name)]
    print(f"{'model':<28}{'cosine':>12}{'worst':>10}{'ms':>9}{'kernels':>9}{'host':>6}{'reference':>10}")
    failed, start = 0, time.time()
    for name, check in checks:
        try:
            print(f"{name:<28}{check()}", flush=True)
        except Failure as e:
            failed += 1
            print(f"{name:<28}FAIL {e}", flush=True)
    print(f"cosine above {COSINE}, worst below {WORST:g}; {time.time() - start:.0f} s")
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not checks else 0)


if __name__ == "__main__":
    main()
