#!/usr/bin/env python3
"""Times models on tessera beside other runtimes and writes the table to docs/benchmarks.md.

    bench.py [MODEL...] [--quick] [--all] [--threads 1,2] [--rounds 7] [--output FILE]

MODEL is a name of make_models.py, an OCR model (ocr_detection, ocr_direction, ocr_recognition) or a path. Without it: the
light CNNs and the OCR models; with --all the exported networks as well. The runtimes (onnxruntime, OpenVINO and tessera) take
turns (peers.py), on the same inputs, and outputs are compared. --quick: three models, short rounds, printed only.
"""
import argparse, json, math, os, platform, shlex, subprocess, sys

import onnx

import harness, make_models, models, ocr, peers

QUICK = ["light_squeezenet", "light_resnet50", "ocr_recognition"]
# Pictures of text for the OCR models: on noise their outputs are all but zero, where no runtime's digits agree.
OCR_SIZES = {"ocr_detection": (640, 320), "ocr_direction": (192, 48), "ocr_recognition": (320, 48)}
COLUMNS = ["model", "tessera ms", "ort ms", "openvino ms", "ratio", "goal", "worst", "first ms", "peer's first ms", "load ms", "peak MB", "live MB", "weights MB"]


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
    return path, harness.seeded_inputs(onnx.load(path, load_external_data=False), {"past_length": 64}, models.LIMITS)


def cpu():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def roofline_ms(path, feeds):
    """The least time on one core, as `tessera plan --roofline` adds it up."""
    shapes = [a for name, value in feeds.items() for a in ("--shape", f"{name}={','.join(map(str, value.shape)) or '[]'}")]
    done = subprocess.run([harness.TESSERA, "plan", path, *shapes, "--roofline", "--json"], capture_output=True, text=True)
    return json.loads(done.stdout)["seconds"] * 1e3 if done.returncode == 0 else 0.0


def row(name, lines, kinds, least_ms, threads):
    """(cells, ratio to the better peer, what it may be) of one model; without ratio where something failed."""
    by = {line["runtime"]: line for line in lines}
    ours, theirs = by["command"], [by[k] for k in kinds]
    milliseconds = lambda line: f"{line['min_ms']:.2f}" if "min_ms" in line else "-"
    peers_ms = [milliseconds(line) for line in theirs]
    alive = [line for line in theirs if "min_ms" in line]
    if "error" in ours or not alive:
        why = ours.get("error") or "no peer runs it"
        return [name, why, *peers_ms] + [""] * (len(COLUMNS) - 2 - len(kinds)), None, None
    report = ours["report"]
    better = min(line["min_ms"] for line in alive)
    ratio, goal = ours["min_ms"] / better, max(0.80, 1.1 * least_ms / threads / better)
    void = ours.get("void", True)
    megabytes = [f"{report[key] / 1e6:.1f}" for key in ("peak_bytes", "live_bytes", "weight_bytes")]
    worst = f"{ours['worst']:.1e}" if "worst" in ours else ours.get("difference", "?")
    cells = [name, milliseconds(ours), *peers_ms, "void" if void else f"{ratio:.2f}", f"{goal:.2f}", worst, f"{ours['first_ms']:.0f}",
             f"{min(line['first_ms'] for line in alive):.0f}", f"{report['load_ms']:.0f}", *megabytes]
    return cells, None if void else ratio, goal


def markdown(header, rows):
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def table_of(names, kinds, threads, rounds, round_ms):
    """(markdown, what failed)"""
    tessera = shlex.quote(harness.TESSERA)
    command = f"{tessera} bench {{model}} {{inputs}} --threads {{threads}} --iters {{iters}} --json"
    check = f"{tessera} run {{model}} {{inputs}} --threads {{threads}} --output-dir {{outdir}} --json"
    rows, ratios, reached, failed = [], [], 0, []
    for name in names:
        path, feeds = model_of(name)
        lines = peers.measure(path, feeds, kinds, threads, rounds, round_ms, "fp32", command, check)
        cells, ratio, goal = row(name, lines, kinds, roofline_ms(path, feeds), threads)
        rows.append(cells)
        if ratio is None:
            failed.append(name)
        else:
            ratios.append(ratio)
            reached += ratio <= goal + 0.005
        for line in lines:
            if sys.stderr.isatty() or "error" in line:
                print(line["model"], line["runtime"], line.get("error") or f"{line['min_ms']} ms", file=sys.stderr, flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")
    return (f"## {threads} thread{'s' * (threads > 1)}\n\nGeometric mean of the ratios {mean:.2f}; {reached} of {len(names)} at their goal.\n\n"
            + markdown(COLUMNS, rows)), failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--all", action="store_true", help="also the networks exported from PyTorch (installs it)")
    parser.add_argument("--threads", default="1,2", help="a table for each")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--output", help="where the tables go (docs/benchmarks.md; with --quick or MODEL: nowhere)")
    args = parser.parse_args()
    kinds = ["ort", "openvino"]
    if args.all:
        models.install_exporters()
    everything = make_models.LIGHT + list(OCR_SIZES) + (list(make_models.EXPORTED) if args.all else [])
    names = args.models or (QUICK if args.quick else everything)
    rounds = args.rounds or (3 if args.quick else 7)
    threads = [int(t) for t in ("1" if args.quick else args.threads).split(",")]
    output = args.output
    if not output and not args.quick and not args.models:
        output = os.path.join(harness.ROOT, "docs", "benchmarks.md")
    if "TESSERA_CALIBRATION" not in os.environ:
        os.environ["TESSERA_CALIBRATION"] = os.path.join(harness.ROOT, "build", "calibration.json")
        subprocess.run([harness.TESSERA, "calibrate", "--output", os.environ["TESSERA_CALIBRATION"]], check=True, stdout=subprocess.DEVNULL)
    load = os.getloadavg()[0]
    tables, failed = [], []
    for t in threads:
        table, bad = table_of(names, kinds, t, rounds, 100 if args.quick else 250)
        tables.append(table)
        failed += bad
        print(table, flush=True)
    if output:
        commit = subprocess.run(["git", "-C", harness.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        with open(output + ".part", "w") as file:
            file.write(f"# Benchmarks\n\nWritten by `./x bench`, {rounds} rounds, fp32, commit {commit or 'unknown'}, on {cpu()} "
                       f"({os.cpu_count()} processors, load average {load:.1f} before the\nstart). The smaller ms is the better: of the "
                       f"fastest round of each. `ratio` is tessera over the better peer; `goal` is 0.80 of the better peer or 1.1\ntimes the "
                       f"machine's roofline (`tessera plan --roofline`), whichever is larger; `worst` is the largest difference of outputs over "
                       f"the largest\nmagnitude, and a ratio with worst above {harness.WORST:g} is void. `first` is the time to the first result, the "
                       f"peers' without the start of Python.\n`peak` is what was allocated for values, `live` the largest sum of values alive at "
                       f"once.\n\n" + "\n".join(tables))
        os.replace(output + ".part", output)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
