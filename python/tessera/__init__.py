"""Runs ONNX models.

    import tessera
    m = tessera.load("m.onnx", threads=4)
    y = m(data=array)

    tessera.chips()                     # names in the catalog
    tessera.chip("h100_sxm").peaks

Inputs are numpy arrays, whatever speaks DLPack, or plain numbers and lists; outputs are numpy arrays. Nothing is copied where
layouts allow. A model may be called from several threads at once: Python's lock is let go meanwhile.
"""
import json
import os

from . import _tessera
from ._convert import Tensor, from_python, to_numpy
from ._errors import Error, InputError, InternalError, UnavailableError

__version__ = _tessera.__version__
__all__ = ["Chip", "Error", "InputError", "InternalError", "Model", "Port", "Tensor", "UnavailableError", "chip", "chips", "load"]


class Port:
    """An input or output: its name, its type as text, and of a tensor its dtype and shape (open sizes by name)."""

    def __init__(self, name, described):
        self.name = name
        self.type = described["type"]
        self.dtype = described["dtype"]
        self.shape = described["shape"]
        self._described = described

    def __repr__(self):
        return f"Port({self.name!r}, {self.type!r})"


class Model:
    """Made by load()."""

    def __init__(self, model):
        self._model = model
        self._inputs = [Port(*p) for p in model.inputs]
        self._outputs = [Port(*p) for p in model.outputs]
        self._types = {p.name: p._described for p in self._inputs}

    @property
    def inputs(self):
        return list(self._inputs)

    @property
    def outputs(self):
        return list(self._outputs)

    @property
    def counters(self):
        """Of the last run: "kernels", "host" and "reference" operators; since loading: "plans"."""
        return self._model.counters

    def __call__(self, /, **inputs):
        """The output, or a dict of outputs by name if there are several."""
        outputs = self.run(inputs)
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def run(self, inputs, *, timeout=0, dlpack=False):
        """Outputs by name, for inputs by name. `timeout` in seconds. With `dlpack`, outputs are Tensors, for from_dlpack() of
        another library."""
        unknown = [name for name in inputs if name not in self._types]
        if unknown:
            raise InputError(f"the model has no input '{unknown[0]}'; its inputs: {', '.join(map(repr, self._inputs))}")
        outputs = self._model.run({name: from_python(value, self._types[name]) for name, value in inputs.items()}, float(timeout))
        return {port.name: value if dlpack else to_numpy(value) for port, value in zip(self._outputs, outputs)}

    def __repr__(self):
        return f"Model(inputs={self._inputs!r}, outputs={self._outputs!r})"


def load(model, *, threads=0, device="cpu", dims=None, shapes=None, memory_limit=0, precision="f32"):
    """Loads an ONNX model from a path or from bytes.

    threads       0: one for each core that the process may use
    dims, shapes  sizes of symbols and whole shapes of inputs that are known already; others may differ from call to call
    memory_limit  bytes for values; 0: 80 % of the machine's memory
    precision     what products are taken in: "f32", or "f16", "bf16" where that is faster ("bf16!": whatever it costs)
    """
    source = model if isinstance(model, bytes) else os.fspath(model)
    return Model(_tessera.load(source, device, threads, dims or {}, {k: list(v) for k, v in (shapes or {}).items()}, memory_limit, precision))


class Chip:
    """Made by chip(). `data` is the chip's file, whole: each number an object of its value and its source. `peaks` are dicts of
    unit, type, flops_per_second, ridge (operations per byte of device memory) and the arithmetic behind them."""

    def __init__(self, id, text, peaks):
        self.id = id
        self.data = json.loads(text)
        self.peaks = peaks

    def __repr__(self):
        return f"Chip({self.id!r}, {self.data['name']!r})"


def chips():
    """Names of all chips: those built in and those in the folders that the environment's TESSERA_CHIPS lists."""
    return _tessera.chips()


def chip(name):
    """A chip by its name, or by the path of a file."""
    return Chip(*_tessera.chip(os.fspath(name)))
