#!/usr/bin/env python3
"""Times models on tessera beside other runtimes and writes the table to docs/benchmarks.md.

    bench.py [MODEL...] [--quick] [--threads 1] [--rounds 7] [--peers ort] [--output FILE]

MODEL is a name of make_models.py, an OCR model (ocr_detection, ocr_direction, ocr_recognition) or a path. Without it: the
light CNNs and the OCR models. The runtimes take turns (peers.py), on the same inputs, and outputs are compared. --quick:
three models, short rounds, printed only.
"""
import argparse, os, platform, subprocess, sys

import harness, make_models, ocr, peers
from models import LIMITS

QUICK = ["light_squeezenet", "light_resnet50", "ocr_recognition"]
# Sizes for the axes that the OCR models leave open: batch, height, width.
OCR_DIMS = {
    "ocr_detection": {"p2o.DynamicDimension.0": 1, "*": 320},
    "ocr_direction": {"?": 48, "*": 1},
    "ocr_recognition": {"p2o.DynamicDimension.0": 1, "?": 48, "*": 320},
}
COLUMNS = ["model", "tessera ms", "{peer} ms", "ratio", "worst", "load ms", "peak MB", "live MB", "weights MB"]


def where(name):
    """(path, open sizes)"""
    if name.startswith("ocr_"):
        return ocr.model_path(name.removeprefix("ocr_")), OCR_DIMS[name]
    if name in make_models.LIGHT or name in make_models.EXPORTED:
        return make_models.make(name, harness.MODELS), {"past_length": 64}
    if not os.path.exists(name):
        sys.exit(f"bench: '{name}' is neither a model's name nor a file")
    return name, {"*": 1}


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
    names = args.models or (QUICK if args.quick else make_models.LIGHT + list(OCR_DIMS))
    rounds = args.rounds or (3 if args.quick else 7)
    output = args.output
    if not output and not args.quick and not args.models:
        output = os.path.join(harness.ROOT, "docs", "benchmarks.md")
    kinds = args.peers.split(",")

    command = f"{harness.TESSERA} bench {{model}} {{inputs}} --threads {{threads}} --iters {{iters}} --json"
    check = f"{harness.TESSERA} run {{model}} {{inputs}} --threads {{threads}} --output-dir {{outdir}} --json"
    header, rows = [c.format(peer=kinds[0]) for c in COLUMNS], []
    for name in names:
        path, dims = where(name)
        lines = peers.measure(path, kinds, args.threads, rounds, 100 if args.quick else 250, dims, LIMITS, "fp32", command, check)
        rows.append(row(name, lines, kinds[0]))
        for line in lines:
            print(line["model"], line["runtime"], line.get("error") or f"{line['min_ms']} ms (median {line['median_ms']})",
                  file=sys.stderr, flush=True)
    table = markdown(header, rows)
    print(table, end="")
    if output:
        commit = subprocess.run(["git", "-C", harness.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        with open(output + ".part", "w") as file:
            file.write(f"# Benchmarks\n\nWritten by `./x bench`, {rounds} rounds, {args.threads} thread{'s' * (args.threads > 1)}, fp32, commit "
                       f"{commit or 'unknown'}, on {cpu()} ({os.cpu_count()} processors).\nThe smaller ms is the better; `ratio` is tessera over "
                       f"{kinds[0]}, of the fastest round each; `worst` the largest\ndifference of outputs over the largest magnitude; a ratio with "
                       f"worst above {harness.WORST:g} is void. `peak` is what was\nallocated for values, `live` the largest sum of values "
                       f"alive at once.\n\n{table}")
        os.replace(output + ".part", output)
    sys.exit(1 if any("void" in r or ": " in r[1] for r in rows) else 0)


if __name__ == "__main__":
    main()
