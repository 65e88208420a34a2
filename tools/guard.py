#!/usr/bin/env python3
"""Counts instructions, which no busy neighbour changes, and compares them with tools/guard.json.

    guard.py [--update] [--loops] [--tessera PROGRAM] [--ratios FOLDER]

loops   the innermost loops of the kernels, disassembled, those with AVX-512 too: instructions, multiply-adds and what goes to the
        stack in between. One instruction or access to the stack more than recorded is a regression.
runs    callgrind runs a few commands with the AVX2 kernels (it knows no AVX-512): planning, dispatch and the kernels themselves.
        A count more than 3 % above the recorded one is a regression; more than 10 % below it asks for --update, which writes what
        was counted. --loops leaves the runs out.
ratios  with --ratios, the benchmarks in FOLDER (dot_bench, conv_bench) time kernels beside oneDNN and OpenBLAS, all in one
        process and in turn: a ratio more than 10 % above the recorded one is a regression.

Where another compiler built the program than the one recorded, counts are printed and nothing is judged.
"""
import argparse, json, os, re, shutil, subprocess, sys, tempfile

import harness, make_models

FILE = os.path.join(harness.ROOT, "tools", "guard.json")
MODELS = ["light_squeezenet", "light_shufflenet"]
# name: what is run on each model
COMMANDS = {"plan": ["plan", "{model}", "--json"], "run": ["run", "{model}", "--random", "1", "--threads", "1", "--json"]}
ISAS = ["avx2", "avx512", "amx"]
# Functions whose innermost loop does the work.
LOOPS = ["tile_of<6, 2>", "tile_of<6, 4>", "tile_of<8, 3>", "gemv_rows<1>", "peak", "narrow_pair<true, true>"]
# program: pattern of its cases
RATIOS = {"dot_bench": "square/dot_f32_m(512|1024).*_w$|bert_base/dot_f32_m128k768n768|vit_b_16/dot_f32_m197k768n768",
          "conv_bench": "resnet50/conv_f32_c(64h56_m64r3|256h14_m1024r1|128h56_m128r3t2)x|mobilenet_v2/conv_f32_c144h56"}


def compiler(program):
    """What the compiler wrote into the program."""
    text = subprocess.run(["readelf", "-p", ".comment", program], capture_output=True, text=True).stdout
    return ", ".join(sorted(set(re.findall(r"GCC: \([^)]*\) [\d.]+|clang version [\d.]+", text))))


def functions(program):
    """(isa, function): [(first address, size)] of the kernels in LOOPS."""
    found = {}
    for line in subprocess.run(["nm", "-CS", "--defined-only", program], capture_output=True, text=True).stdout.splitlines():
        line = re.sub(r", tessera::kernels::cpu::\w+::AmxTiles>", ">", line)
        match = re.match(r"(\w+) (\w+) [tTW] (?:void )?tessera::kernels::cpu::(\w+)::(?:\(anonymous namespace\)::)?(\w+<[^(]*>|\w+)\(", line)
        if match and match[3] in ISAS and match[4] in LOOPS:
            found.setdefault((match[3], match[4]), []).append((int(match[1], 16), int(match[2], 16)))
    return found


def multiply_adds(body):
    return sum(bool(re.search("vfm|tdp", text)) for _, text in body)


def share(body):
    return multiply_adds(body) / max(1, len(body))


def innermost_loop(program, begin, size):
    """Instructions of the innermost loop with the largest share of multiply-adds: [(address, text)]"""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--start-address={begin}", f"--stop-address={begin + size}", program],
                          capture_output=True, text=True).stdout
    lines = [(int(a, 16), t) for a, t in re.findall(r"^ +([0-9a-f]+):\t(.+)$", text, re.M)]
    loops = []
    for address, words in lines:
        jump = re.match(r"j\w+ +([0-9a-f]+) ", words)
        if jump and begin <= int(jump[1], 16) <= address:
            loops.append((int(jump[1], 16), address))
    inner = [l for l in loops if not any(o != l and l[0] <= o[0] and o[1] <= l[1] for o in loops)]
    bodies = [[line for line in lines if first <= line[0] <= last] for first, last in inner]
    return max(bodies, key=share, default=[])


def loops(program):
    """name: what its innermost loop has"""
    counted = {}
    for (isa, name), places in sorted(functions(program).items()):
        body = max((innermost_loop(program, *place) for place in places), key=share)
        counted[f"{isa} {name}"] = {"instructions": len(body), "multiply_adds": multiply_adds(body),
                                    "stack": sum("%rsp" in t or "%rbp)" in t for _, t in body)}
    return counted


def ratios(folder):
    """name: time over the faster rival's"""
    counted = {}
    for program, pattern in RATIOS.items():
        text = subprocess.run([os.path.join(folder, program), f"--benchmark_filter={pattern}", "--benchmark_format=json"], check=True,
                              capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}).stdout
        for case in json.loads(text)["benchmarks"]:
            counted[case["name"].split("/min_time")[0]] = round(case["ratio"], 3)
    return counted


def runs(program):
    return {f"{name} {model}": count(program, command, make_models.make(model, harness.MODELS))
            for model in MODELS for name, command in COMMANDS.items()}


def count(program, command, model):
    words = [w.format(model=model) for w in command] + ["--isa", "avx2"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, *words],
                              capture_output=True, text=True, env={**os.environ, "TESSERA_CALIBRATION": "none"})
        found = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode or not found:
            sys.exit(f"guard: {' '.join(words)}:\n{done.stderr[-2000:]}")
        return int(found[1])


def judge(now, before, most, least):
    """A verdict on a count: at most `most` and at least `least` times what was recorded."""
    return "REGRESSION" if now > before * most else "better: --update" if now < before * least else "ok"


def judge_loop(now, before):
    worse = any(now[key] > before[key] for key in ("instructions", "stack")) or now["multiply_adds"] < before["multiply_adds"]
    return "REGRESSION" if worse else "better: --update" if now != before else "ok"


# what is counted: verdict of two counts
KINDS = {"loops": judge_loop,
         "instructions": lambda now, before: judge(now, before, 1.03, 0.90),
         "ratios": lambda now, before: judge(now, before, 1.10, 0.90)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--loops", action="store_true", help="only these")
    parser.add_argument("--ratios", metavar="FOLDER", help="where the benchmarks are")
    parser.add_argument("--tessera", default=harness.TESSERA)
    args = parser.parse_args()
    counted = {"loops": loops(args.tessera)}
    if not args.loops:
        if not shutil.which("valgrind"):
            sys.exit("guard: valgrind is not installed; ./x setup installs it")
        counted["instructions"] = runs(args.tessera)
    if args.ratios:
        counted["ratios"] = ratios(args.ratios)
    built_by = compiler(args.tessera)
    with open(FILE) as file:
        recorded = json.load(file)
    if args.update:
        with open(FILE, "w") as file:
            json.dump({**recorded, "compiler": built_by, **counted}, file, indent=2)
            file.write("\n")
        print(f"wrote {FILE}")
        return
    judged = recorded["compiler"] == built_by
    bad = 0
    for kind, counts in counted.items():
        for name in recorded.get(kind, {}).keys() - counts.keys():
            sys.exit(f"guard: '{name}' is in tools/guard.json and not in the program; --update leaves it out")
        for name, now in counts.items():
            before = recorded.get(kind, {}).get(name)
            if before is None:
                sys.exit(f"guard: '{name}' is not in tools/guard.json; --update writes it")
            verdict = KINDS[kind](now, before) if judged else ""
            bad += verdict == "REGRESSION"
            print(f"{name:40} {before!s} -> {now!s}  {verdict}")
    if not judged:
        print(f"not judged: built by {built_by}, recorded with {recorded['compiler']}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
