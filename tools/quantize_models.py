#!/usr/bin/env python3
"""Quantises ONNX models to 8 bits with onnxruntime's tools: what int8 kernels are compared on.

    quantize_models.py FOLDER MODEL.onnx... [--form qdq|qoperator|dynamic] [--per-channel]

qdq: QuantizeLinear and DequantizeLinear around float operators; qoperator: QLinearConv, QLinearMatMul; dynamic: scales of
activations at run time (MatMulInteger). The first two are calibrated on seeded random inputs. Activations are u8, weights
i8. Writes FOLDER/<model>_<form>.onnx and prints the paths.
"""
import argparse, os, sys, tempfile, warnings

import onnx
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static)
from onnxruntime.quantization.shape_inference import quant_pre_process

import harness


class Reader(CalibrationDataReader):
    def __init__(self, model, count):
        self.feeds = []
        for k in range(count):
            feeds = harness.seeded_inputs(model)
            self.feeds.append({name: value * (1 + k / 4) if value.dtype.kind == "f" else value for name, value in feeds.items()})
        self.next = iter(self.feeds)

    def get_next(self):
        return next(self.next, None)


def quantize(path, folder, form, per_channel):
    name = os.path.splitext(os.path.basename(path))[0]
    target = os.path.join(folder, f"{name}_{form}.onnx")
    with tempfile.TemporaryDirectory() as scratch:
        ready = os.path.join(scratch, "ready.onnx")
        model = onnx.load(path)
        if max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx")) < 13:
            model = onnx.version_converter.convert_version(model, 13)
        onnx.save(model, ready)
        try:
            quant_pre_process(ready, ready, skip_symbolic_shape=True)
        except Exception as e:  # goes without what it would have folded
            print(f"{name}: not prepared: {e}", file=sys.stderr)
        if form == "dynamic":
            quantize_dynamic(ready, target, weight_type=QuantType.QInt8, per_channel=per_channel)
        else:
            quantize_static(ready, target, Reader(onnx.load(ready), 3), per_channel=per_channel,
                            quant_format=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator,
                            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--form", choices=["qdq", "qoperator", "dynamic"], default="qdq")
    parser.add_argument("--per-channel", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    os.makedirs(args.folder, exist_ok=True)
    for path in args.models:
        print(quantize(path, args.folder, args.form, args.per_channel), flush=True)


if __name__ == "__main__":
    main()
