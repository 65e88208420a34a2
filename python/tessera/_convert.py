"""Between numpy's arrays (or anything that speaks DLPack) and the extension's tensors, without copies where layouts allow."""
import numpy as np

from . import _tessera
from ._errors import make

Tensor = _tessera.Tensor


def numpy_dtype(name):
    """numpy's dtype of that name, or ml_dtypes'."""
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        raise make("unimplemented", f"numpy has no type {name}: install ml_dtypes, or take the output as DLPack") from None


def _unpack(raw, bits, dtype, count):
    """Packed elements, lowest bits first, as ml_dtypes holds them: one a byte."""
    per_byte = 8 // bits
    parts = [(raw >> (bits * k)) & ((1 << bits) - 1) for k in range(per_byte)]
    codes = np.stack(parts, axis=-1).reshape(-1)[:count]
    if dtype.name.startswith("int"):
        sign = 1 << (bits - 1)
        return ((codes ^ sign).astype(np.int8) - sign).astype(dtype)
    return codes.astype(dtype) if dtype.name.startswith("uint") else codes.view(dtype)


def _pack(array, bits):
    codes = (array.astype(np.int8).view(np.uint8) if "int" in array.dtype.name else array.view(np.uint8)).reshape(-1)
    per_byte = 8 // bits
    codes = np.pad(codes & ((1 << bits) - 1), (0, -codes.size % per_byte)).reshape(-1, per_byte)
    return np.bitwise_or.reduce(codes << (bits * np.arange(per_byte, dtype=np.uint8)), axis=-1).astype(np.uint8)


def to_numpy(value):
    """Tensors become arrays that share their memory (packed sub-byte types: unpacked copies), inside lists too."""
    if value is None:
        return None
    if isinstance(value, list):
        return [to_numpy(item) for item in value]
    if value.dtype == "str":
        array = np.empty(value.shape, dtype=object)
        array.reshape(-1)[:] = value.texts
        return array
    dtype = numpy_dtype(value.numpy_dtype)
    raw = np.frombuffer(value, dtype=np.uint8)
    if value.bits < 8:
        return _unpack(raw, value.bits, dtype, int(np.prod(value.shape, dtype=np.int64))).reshape(value.shape)
    return raw.view(dtype).reshape(value.shape)


_SUB_BYTE = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}


def _from_array(array):
    bits = _SUB_BYTE.get(array.dtype.name)
    shape = list(array.shape)
    if bits:
        array, name = _pack(np.ascontiguousarray(array), bits), array.dtype.name
    else:
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        array, name = np.ascontiguousarray(array), array.dtype.name
    return Tensor.from_address(array, array.__array_interface__["data"][0], name, shape)


def _from_strings(value):
    array = np.asarray(value, dtype=object)
    texts = [t if isinstance(t, (str, bytes)) else str(t) for t in array.reshape(-1)]
    return Tensor.from_strings([t.encode("utf-8", "surrogateescape") if isinstance(t, str) else t for t in texts], list(array.shape))


def from_python(value, type_):
    """What the extension takes for an input of this type. Arrays keep their dtype: a wrong one is an error, told by the library.
    Python's own numbers and lists become what the input needs."""
    if value is None or isinstance(value, Tensor):
        return value
    if type_["kind"] == "optional":
        return from_python(value, type_["element"])
    if type_["kind"] == "sequence":
        if not isinstance(value, (list, tuple)):
            raise make("invalid argument", f"a {type(value).__name__} where a list is needed, for {type_['type']}")
        return [from_python(item, type_["element"]) for item in value]
    if type_["dtype"] == "str":
        return _from_strings(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_array(np.asarray(value))
    if hasattr(value, "__dlpack__"):
        return Tensor.from_dlpack(value.__dlpack__())
    if hasattr(value, "__array__"):
        return _from_array(np.asarray(value))
    try:
        return _from_array(np.asarray(value, dtype=numpy_dtype(_tessera.numpy_name(type_["dtype"]))))
    except (TypeError, ValueError, OverflowError) as e:
        if hasattr(e, "code"):
            raise
        raise make("invalid argument", f"a {type(value).__name__} is no tensor of {type_['type']}: {e}") from None
