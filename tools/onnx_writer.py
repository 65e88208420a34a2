"""Writes small ONNX files by hand, so that the tests that need one need no package. Field numbers are onnx.proto's."""
import struct

FLOAT, UINT8, INT32, INT64, STRING, BOOL, DOUBLE, BFLOAT16 = 1, 2, 6, 7, 8, 9, 11, 16


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def tensor(name, dtype, dims, raw=b"", strings=()):
    out = b"".join(number(1, d) for d in dims) + number(2, dtype) + data(8, name)
    return out + (b"".join(data(6, s) for s in strings) if dtype == STRING else data(9, raw))


def floats(name, dims, values):
    return tensor(name, FLOAT, dims, struct.pack(f"<{len(values)}f", *values))


def value(name, dtype, dims):
    """A size is a number, or a name for one that is open."""
    sizes = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
    return data(1, name) + data(2, data(1, number(1, dtype) + data(2, sizes)))


def sequence_value(name, dtype):
    return data(1, name) + data(2, data(4, data(1, data(1, number(1, dtype)))))


def ints_attribute(name, values):
    return data(1, name) + b"".join(number(8, v) for v in values) + number(20, 7)


def int_attribute(name, number_):
    return data(1, name) + number(3, number_) + number(20, 2)


def node(op_type, inputs, outputs, attributes=(), name=""):
    return (b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs) + data(3, name) + data(4, op_type)
            + b"".join(data(5, a) for a in attributes))


def model(nodes, inputs, outputs, initializers=(), opset=17):
    graph = (b"".join(data(1, n) for n in nodes) + data(2, "g") + b"".join(data(5, t) for t in initializers)
             + b"".join(data(11, i) for i in inputs) + b"".join(data(12, o) for o in outputs))
    return number(1, 8) + data(7, graph) + data(8, number(2, opset))
