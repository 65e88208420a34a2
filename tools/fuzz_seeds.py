#!/usr/bin/env python3
"""Writes the seeds of the importer's fuzz target: small models that between them use what the importer knows.

    fuzz_seeds.py [FOLDER]      (fuzz/onnx_import_fuzz of the source tree)

Needs the onnx package. The result depends on nothing else, so the files change only when this list does.
"""
import os, sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

HEAD = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3, "own" : 1]>'

TEXTS = {
    "affine": "g (float[2,n] x) => (y) <float[2] w = {1,2}> { t = Transpose(x) u = Mul(t, w) y = Relu(u) }",
    "shape": "g (float[a,b,4] x) => (y) { s = Shape(x) z = Constant<value = int64[1] {0}>() n = Gather<axis=0>(s, z)"
             " m = Constant<value = int64[1] {-1}>() c = Concat<axis=0>(n, m) y = Reshape(x, c) }",
    "if": "g (bool p, float[2] x) => (y) { y = If(p) <then_branch = t () => (float[2] r) { r = Neg(x) },"
          " else_branch = e () => (float[2] r) { r = Abs(x) }> }",
    "loop": "g (int64 n, bool p, float[2] x) => (y, z) { y, z = Loop(n, p, x) <body = b (int64 i, bool c, float[2] v)"
            " => (bool d, float[2] w, float[2] s) { d = Identity(c) w = Add(v, v) s = Neg(v) }> }",
    "scan": "g (float[2] h, float[5,2] x) => (y, z) { y, z = Scan<num_scan_inputs = 1, body = b (float[2] s, float[2] v)"
            " => (float[2] t, float[2] o) { t = Add(s, v) o = Identity(t) }>(h, x) }",
    "sequence": "g (float[4,2] x, int64 i) => (y) { s = SplitToSequence<axis = 0>(x) t = SequenceInsert(s, x, i)"
                " u = SequenceErase(t) e = SequenceAt(u, i) v = SequenceMap(u) <body = b (float[k,2] a) => (float[k,2] r)"
                " { r = Neg(a) }> y = ConcatFromSequence<axis = 0>(v) }",
    "optional": "g (float[2] x) => (y) { o = Optional(x) h = OptionalHasElement(o) y = OptionalGetElement(o) }",
    "quantize": "g (float[2,4] x) => (y) { q, s, z = DynamicQuantizeLinear(x) y = DequantizeLinear(q, s, z) }",
    "strings": 'g (string[2] x) => (y, z) { y, z = StringSplit<delimiter = ",">(x) }',
    "regex": 'g (string[2] x) => (y) { y = RegexFullMatch<pattern = "a+b*">(x) }',
    "random": "g (float[2] x) => (y) { a = RandomNormalLike<seed = 1.0>(x) y = Bernoulli(a) }",
    "signal": "g (float[1,16,1] x, int64 n) => (y) { w = HannWindow(n) y = STFT(x, n, w) }",
    "conv": "g (float[1,3,h,w] x) => (y) <float[1,3,1,1] k = {1,2,3}> { c = Conv<pads = [1,1,1,1]>(x, k)"
            " y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(c) }",
    "ml": "g (float[2,2] x) => (y) { y = ai.onnx.ml.Scaler<offset = [0.5, 0.5], scale = [2.0, 2.0]>(x) }",
}


def models():
    for name, text in TEXTS.items():
        yield name, parser.parse_model(HEAD + text)
    function = parser.parse_function(
        '<domain: "own", opset_import: ["" : 21]> twice<k>(x) => (y) { c = Constant<value_float: float = @k>() y = Mul(x, c) }')
    calls = parser.parse_model(HEAD + "g (float[2] x) => (y) { t = own.twice<k = 2.0>(x) y = own.twice<k = 3.0>(t) }")
    calls.functions.append(function)
    yield "function", calls
    sparse = parser.parse_model(HEAD + "g (float[2,3] x) => (y) { y = Identity(x) }")
    values = numpy_helper.from_array(np.array([1, 2], np.float32), "w")
    sparse.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1, 5], np.int64)), [2, 3]))
    yield "sparse", sparse
    outside = parser.parse_model(HEAD + "g (float[2] x) => (y) { y = Add(x, w) }")
    tensor = outside.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "0"), ("length", "8")):
        tensor.external_data.add(key=key, value=value)
    yield "external", outside


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../fuzz/onnx_import_fuzz")
    os.makedirs(folder, exist_ok=True)
    for name, model in models():
        model.producer_name = ""
        with open(os.path.join(folder, name + ".onnx"), "wb") as file:
            file.write(model.SerializeToString(deterministic=True))
    for name, value in (("tensor", helper.make_tensor("t", TensorProto.INT4, [3], [1, -2, 3])),
                        ("sequence", numpy_helper.from_list([np.array([1, 2], np.int64)]))):
        with open(os.path.join(folder, name + ".pb"), "wb") as file:
            file.write(value.SerializeToString(deterministic=True))


main()
