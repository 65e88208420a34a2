#!/usr/bin/env python3
"""Draws a picture with text and lets tessera read it with the OCR models of the package rapidocr-onnxruntime.

    demo.py [--text LINE]... [--device cpu] [--threads N]

Three models work together: detection finds the lines, direction tells which are upside down, recognition reads each.
Shows the text, how long each model took, and where its work was done. Fails if the text is not what was drawn.
"""
import argparse, collections, os, sys, time

import harness, ocr
from harness import Failure

LINES = ["Tessera reads this line", "One model, any accelerator", "relu(x @ w + b) = 42"]
FOLDER = os.path.join(harness.ROOT, "build", "demo")


class Session:
    """Runs models through tessera and remembers what that took."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.total = {kind: collections.Counter() for kind in ocr.MODELS}

    def run(self, kind, array):
        outputs, report = harness.run_tessera(ocr.model_path(kind), {"x": array}, *self.arguments)
        total = self.total[kind]
        total.update(report["counters"])
        total.update(runs=1, ms=report["ms"], wall_ms=report["wall_ms"])
        (output,) = outputs.values()
        return output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", action="append", metavar="LINE", help="a line to draw; repeat for more")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", help="as many as the process may use if not given")
    args = parser.parse_args()
    lines = args.text or LINES

    os.makedirs(FOLDER, exist_ok=True)
    picture = os.path.join(FOLDER, "picture.png")
    image = ocr.draw(lines, (640, round(84 * (len(lines) + 0.5) / 32) * 32))
    image.save(picture)
    print(f"drew   {os.path.relpath(picture)}, {image.width} x {image.height}\n")

    session = Session(["--device", args.device, *(["--threads", args.threads] if args.threads else [])])
    start = time.perf_counter()
    try:
        found = ocr.read(image, session.run)
    except Failure as e:
        sys.exit(f"demo: {e}")
    seconds = time.perf_counter() - start
    for line in found:
        print(f"read   {line.text:<32} {100 * line.probability:5.1f} % sure, at {line.box[0]},{line.box[1]}")

    print(f"\n{'model':<14}{'runs':>5}{'ms a run':>10}{'with load':>11}   {'device kernels':>14}{'host':>6}{'reference':>11}")
    for kind, total in session.total.items():
        if total["runs"]:
            runs = total["runs"]
            print(f"{kind:<14}{runs:>5}{total['ms'] / runs:>10.1f}{total['wall_ms'] / runs:>11.1f}   "
                  f"{total['kernels'] // runs:>14}{total['host'] // runs:>6}{total['reference'] // runs:>11}")
    print(f"\n{seconds:.1f} s in all, on device {args.device}; each run is a process of its own: build/tessera run MODEL --input x=FILE.npy")
    wrong = [line for line in lines if line not in [f.text for f in found]]
    if wrong or len(found) != len(lines):
        sys.exit(f"demo: not read as drawn: {wrong or 'too many lines'}")


if __name__ == "__main__":
    main()
