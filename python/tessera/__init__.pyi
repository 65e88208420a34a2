import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, overload

import numpy as np
from numpy.typing import NDArray

__version__: str
__all__: list[str]

class Error(Exception):
    code: str

class InputError(Error, ValueError): ...
class UnavailableError(Error, RuntimeError): ...
class InternalError(Error, RuntimeError): ...

class Tensor:
    """A tensor of the library's; takes part in DLPack."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def __dlpack__(self, *, stream: Any = ..., max_version: Any = ..., dl_device: Any = ..., copy: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

# Arrays; sequences are lists of values, an optional without a value is None.
Value = Union[NDArray[Any], list["Value"], None]

class Port:
    name: str
    type: str
    dtype: str | None
    shape: tuple[int | str, ...] | None

class Model:
    @property
    def inputs(self) -> list[Port]: ...
    @property
    def outputs(self) -> list[Port]: ...
    @property
    def counters(self) -> dict[str, int]: ...
    # An array or a dict of them, by how many outputs the model has.
    def __call__(self, /, **inputs: Any) -> Any: ...
    @overload
    def run(self, inputs: Mapping[str, Any], *, timeout: float = ..., dlpack: Literal[False] = ...) -> dict[str, Value]: ...
    @overload
    def run(self, inputs: Mapping[str, Any], *, timeout: float = ..., dlpack: Literal[True]) -> dict[str, Any]: ...

def load(
    model: str | os.PathLike[str] | bytes,
    *,
    threads: int = ...,
    device: str = ...,
    dims: Mapping[str, int] | None = ...,
    shapes: Mapping[str, Sequence[int]] | None = ...,
    memory_limit: int = ...,
) -> Model: ...

class Chip:
    id: str
    data: dict[str, Any]
    peaks: list[dict[str, Any]]

def chips() -> list[str]: ...
def chip(name: str | os.PathLike[str]) -> Chip: ...
