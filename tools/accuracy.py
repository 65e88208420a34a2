"""How far the cost model is from measurements: data/measurements/*.csv against `tessera plan --op`.

One line for each chip and family of operators: rows, median absolute error of those that constants may be fitted to and
of those held out (every second row), median of estimate / measurement, the share of rows inside the interval, and the
median of high / low. Exit 1 if the median error of all rows, or of the rows held out, is above --most, fewer than two in
three rows are inside, or the median interval is wider than 1.5."""
import argparse, csv, glob, json, os, statistics, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def measurements(folder):
    """[(chip, op, seconds)] of all files, in order."""
    rows = []
    for path in sorted(glob.glob(os.path.join(folder, "*.csv"))):
        with open(path, encoding="utf-8") as file:
            lines = (line for line in file if not line.startswith("#"))
            for row in csv.DictReader(lines):
                rows.append((row["chip"], row["op"], float(row["microseconds"]) * 1e-6))
    return rows


def estimates(tessera, chip, ops):
    """What `tessera plan` says of each problem string."""
    command = [tessera, "plan", "--device", chip, "--json"]
    for op in ops:
        command += ["--op", op]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    answer = json.loads(done.stdout)
    return answer.get("operators", [answer])


class Row:
    def __init__(self, chip, op, seconds, estimate, held_out):
        self.chip, self.op, self.seconds, self.held_out = chip, op, seconds, held_out
        self.family = op.split("_")[0] + (" f8" if "_f8" in op else "")
        times = estimate["seconds"]
        self.ratio = times["expected"] / seconds
        self.error = abs(self.ratio - 1)
        self.inside = times["low"] <= seconds <= times["high"]
        self.width = times["high"] / times["low"]
        self.estimate = estimate


def evaluate(tessera, rows, chips=None):
    """Rows with estimates; every second one of a chip and operator is held out."""
    result, seen = [], {}
    for chip in dict.fromkeys(r[0] for r in rows):
        if chips and chip not in chips:
            continue
        own = [r for r in rows if r[0] == chip]
        for (_, op, seconds), estimate in zip(own, estimates(tessera, chip, [r[1] for r in own])):
            group = (chip, op.split("_")[0])
            seen[group] = seen.get(group, 0) + 1
            result.append(Row(chip, op, seconds, estimate, seen[group] % 2 == 0))
    return result


def median(rows, key):
    return statistics.median(key(r) for r in rows) if rows else None


def summary(name, rows):
    return {
        "group": name,
        "rows": len(rows),
        "error": median(rows, lambda r: r.error),
        "error_fitted": median([r for r in rows if not r.held_out], lambda r: r.error),
        "error_held_out": median([r for r in rows if r.held_out], lambda r: r.error),
        "ratio": median(rows, lambda r: r.ratio),
        "inside": sum(r.inside for r in rows) / len(rows),
        "width": median(rows, lambda r: r.width),
    }


def table(groups):
    def percent(x):
        return "" if x is None else f"{100 * x:.1f} %"

    lines = [["chip and family", "rows", "error", "fitted", "held out", "est/meas", "inside", "high/low"]]
    for g in groups:
        lines.append([g["group"], str(g["rows"]), percent(g["error"]), percent(g["error_fitted"]),
                      percent(g["error_held_out"]), f"{g['ratio']:.3f}", percent(g["inside"]), f"{g['width']:.2f}"])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                               for i, (cell, w) in enumerate(zip(line, widths))).rstrip() for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tessera", default=os.path.join(ROOT, "build", "tessera"))
    parser.add_argument("--data", default=os.path.join(ROOT, "data", "measurements"), help="folder of *.csv")
    parser.add_argument("--chip", action="append", help="only this chip; may be repeated")
    parser.add_argument("--rows", action="store_true", help="every row, too")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--most", type=float, default=0.1, help="the median error allowed (0.1)")
    arguments = parser.parse_args()
    rows = evaluate(arguments.tessera, measurements(arguments.data), arguments.chip)
    if not rows:
        sys.exit("no measurements")
    groups = []
    for chip, family in dict.fromkeys((r.chip, r.family) for r in rows):
        groups.append(summary(f"{chip} {family}", [r for r in rows if (r.chip, r.family) == (chip, family)]))
    groups.append(summary("all", rows))
    if arguments.json:
        print(json.dumps({"schema": "tessera.accuracy/1", "groups": groups,
                          "rows": [{"chip": r.chip, "op": r.op, "seconds": r.seconds, "held_out": r.held_out,
                                    "estimate": r.estimate["seconds"]} for r in rows]}, indent=1))
    else:
        if arguments.rows:
            for r in rows:
                print(f"{r.chip:16} {r.op:45} {r.seconds * 1e6:11.2f} us  est/meas {r.ratio:6.3f}"
                      f"  {'in ' if r.inside else 'out'}  {r.estimate['bound_by']:10} {r.estimate['tile']}")
        print(table(groups))
    everything = groups[-1]
    worst = max(x for x in (everything["error"], everything["error_held_out"]) if x is not None)
    return 1 if worst > arguments.most or everything["inside"] < 2 / 3 or everything["width"] > 1.5 else 0


if __name__ == "__main__":
    sys.exit(main())
