#!/usr/bin/env python3
"""Counts instructions, which no busy neighbour changes, and compares them with tools/guard.json.

    guard.py [--update] [--tessera PROGRAM]

callgrind runs a few commands with the AVX2 kernels (it knows no AVX-512): planning, dispatch and the kernels themselves.
A count more than 3 % above the recorded one is a regression and fails; more than 10 % below it asks for --update, which
writes what was counted. Where another compiler built the program than the one recorded, counts are printed and nothing is judged.
"""
import argparse, json, os, re, subprocess, sys, tempfile

import harness, make_models

FILE = os.path.join(harness.ROOT, "tools", "guard.json")
MODELS = ["light_squeezenet", "light_shufflenet"]
# name: what is run on each model
COMMANDS = {"plan": ["plan", "{model}", "--json"], "run": ["run", "{model}", "--random", "1", "--threads", "1", "--json"]}


def compiler(program):
    """What the compiler wrote into the program."""
    text = subprocess.run(["readelf", "-p", ".comment", program], capture_output=True, text=True).stdout
    return ", ".join(sorted(set(re.findall(r"GCC: \([^)]*\) [\d.]+|clang version [\d.]+", text))))


def count(program, command, model):
    words = [w.format(model=model) for w in command] + ["--isa", "avx2"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, *words],
                              capture_output=True, text=True, env={**os.environ, "TESSERA_CALIBRATION": "none"})
        found = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode or not found:
            sys.exit(f"guard: {' '.join(words)}:\n{done.stderr[-2000:]}")
        return int(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--tessera", default=harness.TESSERA)
    args = parser.parse_args()
    if not any(os.access(os.path.join(p, "valgrind"), os.X_OK) for p in os.environ["PATH"].split(":")):
        sys.exit("guard: valgrind is not installed; ./x setup installs it")
    built_by = compiler(args.tessera)
    counted = {f"{name} {model}": count(args.tessera, command, make_models.make(model, harness.MODELS))
               for model in MODELS for name, command in COMMANDS.items()}
    if args.update:
        with open(FILE, "w") as file:
            json.dump({"compiler": built_by, "instructions": counted}, file, indent=2)
            file.write("\n")
        print(f"wrote {FILE}")
        return
    with open(FILE) as file:
        recorded = json.load(file)
    judged = recorded["compiler"] == built_by
    bad = 0
    for name, now in counted.items():
        before = recorded["instructions"].get(name)
        if before is None:
            sys.exit(f"guard: '{name}' is not in tools/guard.json; --update writes it")
        change = now / before - 1
        verdict = "" if not judged else "REGRESSION" if change > 0.03 else "faster: --update" if change < -0.10 else "ok"
        bad += verdict == "REGRESSION"
        print(f"{name:30} {before:15,} -> {now:15,}  {change:+.1%}  {verdict}")
    if not judged:
        print(f"not judged: built by {built_by}, recorded with {recorded['compiler']}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
