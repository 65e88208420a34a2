#!/usr/bin/env python3
"""Times models on tessera beside other runtimes and writes the table to docs/benchmarks.md.

    bench.py [MODEL...] [--quick] [--threads 1] [--rounds 7] [--peers ort] [--output FILE]

MODEL is a name of make_models.py, an OCR model (ocr_detection, ocr_direction, ocr_recognition) or a path. Without it: the
light CNNs and the OCR models. The runtimes take turns (peers.py), on the same inputs, and outputs are compared. --quick:
three models, short rounds, printed only.
"""
import argparse, os, platform, shlex, subprocess, sys

import onnx

import harness, make_models, ocr, peers
from models import LIMITS

QUICK = ["light_squeezenet", "light_resnet50", "ocr_recognition"]
# Pictures of text for the OCR models: on noise their outputs are all but zero, where no runtime's digits agree.
OCR_SIZES = {"ocr_detection": (640, 320), "ocr_direction": (192, 48), "ocr_recognition": (320, 48)}
COLUMNS = ["model", "tessera ms", "{peer} ms", "ratio", "worst", "load ms", "peak MB", "live MB", "weights MB"]


def model_of(name):
    """(path, inputs)"""
    if name in OCR_SIZES:
        image = ocr.draw(["Tessera 2026"], OCR_SIZES[name], font_size=30)
        return ocr.model_path(name.removeprefix("ocr_")), {"x": ocr.pixels(image)}
    if name in make_models.LIGHT or name in make_models.EXPORTED:
        path = make_models.make(name, harness.MODELS)
    elif os.path.exists(name):
        path = name
    else:
        sys.exit(f"bench: '{name}' is neither a model's name nor a file")
    return path, harness.seeded_inputs(onnx.load(path, load_external_data=False), {"past_length": 64}, LIMITS)


def cpu():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def row(name, lines, peer):
    """Cells of one model, or the reason why there are none."""
    by = {line["runtime"]: line for line in lines}
    ours, theirs = by["command"], by[peer]
    for who, line in (("tessera", ours), (peer, theirs)):
        if "error" in line:
            return [name, f"{who}: {line['error']}"] + [""] * 7
    report = ours["report"]
    megabytes = [f"{report[key] / 1e6:.1f}" for key in ("peak_bytes", "live_bytes", "weight_bytes")]
    worst = f"{ours['worst']:.1e}" if "worst" in ours else ours.get("difference", "?")
    ratio = "void" if ours.get("void", True) else f"{ours['min_ms'] / theirs['min_ms']:.2f}"
    return [name, f"{ours['min_ms']:.2f}", f"{theirs['min_ms']:.2f}", ratio, worst, f"{report['load_ms']:.0f}", *megabytes]


def markdown(header, rows):
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--peers", default="ort", help="the first one is the table's; " + ", ".join(peers.PEERS))
    parser.add_argument("--output", help="where the table goes (docs/benchmarks.md; with --quick or MODEL: nowhere)")
    args = parser.parse_args()
    names = args.models or (QUICK if args.quick else make_models.LIGHT + list(OCR_SIZES))
    rounds = args.rounds or (3 if args.quick else 7)
    output = args.output
    if not output and not args.quick and not args.models:
        output = os.path.join(harness.ROOT, "docs", "benchmarks.md")
    kinds = args.peers.split(",")

    tessera = shlex.quote(harness.TESSERA)
    command = f"{tessera} bench {{model}} {{inputs}} --threads {{threads}} --iters {{iters}} --json"
    check = f"{tessera} run {{model}} {{inputs}} --threads {{threads}} --output-dir {{outdir}} --json"
    load = os.getloadavg()[0]
    header, rows = [c.format(peer=kinds[0]) for c in COLUMNS], []
    for name in names:
        path, feeds = model_of(name)
        lines = peers.measure(path, feeds, kinds, args.threads, rounds, 100 if args.quick else 250, "fp32", command, check)
        rows.append(row(name, lines, kinds[0]))
        for line in lines:
            if sys.stderr.isatty() or "error" in line:
                print(line["model"], line["runtime"], line.get("error") or f"{line['min_ms']} ms", file=sys.stderr, flush=True)
    table = markdown(header, rows)
    print(table, end="")
    if output:
        commit = subprocess.run(["git", "-C", harness.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        with open(output + ".part", "w") as file:
            file.write(f"# Benchmarks\n\nWritten by `./x bench`, {rounds} rounds, {args.threads} thread{'s' * (args.threads > 1)}, fp32, commit "
                       f"{commit or 'unknown'}, on {cpu()} ({os.cpu_count()} processors, load "
                       f"average {load:.1f}\nbefore the start). The smaller ms is the better; `ratio` is tessera over {kinds[0]}, of the fastest round "
                       f"each; `worst` the largest\ndifference of outputs over the largest magnitude; a ratio with "
                       f"worst above {harness.WORST:g} is void. `peak` is what was\nallocated for values, `live` the largest sum of values "
                       f"alive at once.\n\n{table}")
        os.replace(output + ".part", output)
    sys.exit(1 if any("void" in r or ": " in r[1] for r in rows) else 0)


if __name__ == "__main__":
    main()
