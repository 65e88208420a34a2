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
# Sizes of open axes, and bounds of integer inputs, of the exported networks.
DIMS = {"past_length": 64}
LIMITS = {"input_ids": 30000}


@dataclasses.dataclass
class Case:
    """Steps of one model: `steps` yields inputs; what `fed_back` names is overwritten by the previous step's output."""
    name: str
    path: Callable[[], str]
    steps: Callable[[onnx.ModelProto], Iterator[dict]]
    fed_back: dict = dataclasses.field(default_factory=dict)


def generated(name):
    def steps(model):
        yield harness.seeded_inputs(model, DIMS, LIMITS)
    return Case(name, functools.partial(make_models.make, name, harness.MODELS), steps)


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
    return Case(name, functools.partial(harness.package_file, "silero_vad", "data", file + ".onnx"), steps, fed_back)


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
        yield from map(generated, make_models.EXPORTED)


def run_case(case, tessera, device):
    """(cosine, worst, counters, milliseconds, steps). The steps' outputs are compared as one signal each: the scale of a
    probability is its range over time, not the value of a quiet moment."""
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
            outputs, report = harness.run_tessera(path, ours, "--device", device, tessera=tessera)
        except Failure as e:
            raise Failure(f"step {len(actual)}: {e}" if case.fed_back else str(e)) from None
        actual.append(outputs)
        counters.update(report["counters"])
        ms += report["ms"]
    steps = len(actual)
    cosine, worst = harness.agreement(*({name: np.stack([step[name] for step in side]) for name in side[0]} for side in (expected, actual)))
    return cosine, worst, counters, ms / steps, steps


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

    chosen = [case for case in cases(args.all) if re.search(args.filter, case.name)]
    print(f"{'model':<32}{'cosine':>12}{'worst':>10}{'ms':>9}{'kernels':>9}{'host':>6}{'reference':>10}")
    failed, start = 0, time.time()
    for case in chosen:
        try:
            cosine, worst, counters, ms, steps = run_case(case, args.tessera, args.device)
        except Failure as e:
            failed += 1
            print(f"{case.name:<32}FAIL {e}", flush=True)
            continue
        good = cosine > COSINE and worst < WORST
        failed += not good
        print(f"{case.name:<32}{cosine:>12.8f}{worst:>10.1e}{ms:>9.1f}{counters['kernels'] // steps:>9}"
              f"{counters['host'] // steps:>6}{counters['reference'] // steps:>10}{'' if good else '  FAIL'}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed in {time.time() - start:.0f} s"
          f" (cosine above {COSINE}, worst below {WORST:g})")
    sys.exit(1 if failed or not chosen else 0)


if __name__ == "__main__":
    main()
