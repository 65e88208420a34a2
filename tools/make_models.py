#!/usr/bin/env python3
"""Makes the ONNX models that the model tests and benchmarks run: present-day networks with random weights.

    make_models.py FOLDER [NAME...]        (no NAME: the light ones; `all`: every one; `list`: what there is)

The light_* models are graphs that the onnx package ships. There each weight tensor is one constant, so that the output
hardly depends on the input; here they get seeded weights of He's variance and batch norms with statistics of their own.
The others are exported by torch (tools/requirements-all.txt). gpt2_past and llama_past are decoding steps: one new token
against past keys and values of any length.
"""
import collections, os, sys, warnings, zlib

import numpy as np
import onnx
from onnx import numpy_helper

LIGHT_DATA = os.path.join(os.path.dirname(onnx.__file__), "backend/test/data/light")
LIGHT = ["light_bvlc_alexnet", "light_densenet121", "light_inception_v1", "light_inception_v2", "light_resnet50",
         "light_shufflenet", "light_squeezenet", "light_vgg19", "light_zfnet512"]

# Variance of a weight times its fan-in. 2 keeps the level through conv and relu; where branches are added, 1.
GAIN = collections.defaultdict(lambda: 2.0, light_resnet50=1.0, light_shufflenet=1.0)
# Factor on the classifier's weights where its input is large: without it the softmax has one winner and no digits.
CLASSIFIER = {"light_resnet50": 0.05, "light_shufflenet": 0.05, "light_inception_v2": 0.05}


# --- light ------------------------------------------------------------------------------------------------------------

def consumer(graph, name):
    """(node, input index) that reads a value, through reshapes; (None, 0) where nothing does."""
    while True:
        node, slot = next(((n, list(n.input).index(name)) for n in graph.node if name in n.input), (None, 0))
        if node is None or node.op_type not in ("Reshape", "Unsqueeze"):
            return node, slot
        name = node.output[0]


def random_weight(model_name, shape, node, slot, rng):
    kind = node.op_type if node is not None else ""
    if len(shape) < 2:
        level = kind == "Mul" or (kind == "BatchNormalization" and slot in (1, 4))  # scales and variances
        return rng.uniform(0.7, 1.3, shape) if level else 0.05 * rng.standard_normal(shape)
    transposed = any(a.name == "transB" and a.i for a in node.attribute) if kind == "Gemm" else True
    fan_in = int(np.prod(shape[1:])) if transposed else shape[0]
    factor = CLASSIFIER.get(model_name, 1.0) if kind == "Gemm" else 1.0
    return factor * np.sqrt(GAIN[model_name] / fan_in) * rng.standard_normal(shape)


def light(name):
    model = onnx.load(os.path.join(LIGHT_DATA, name + ".onnx"))
    graph = model.graph
    sizes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    constant, weights = [], []
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in sizes:
            shape = tuple(int(size) for size in sizes[node.input[0]])
            value = random_weight(name, shape, *consumer(graph, node.output[0]), rng)
            weights.append(numpy_helper.from_array(value.astype(np.float32), node.output[0]))
            constant.append(node)
    for node in constant:
        graph.node.remove(node)
    used = {value for node in graph.node for value in node.input}
    for field in (graph.initializer, graph.input):
        for entry in [e for e in field if e.name not in used]:
            field.remove(entry)
    graph.initializer.extend(weights)
    model.ir_version = max(model.ir_version, 4)  # from 4 on a weight need not be an input, too
    return model


# --- exported by torch ------------------------------------------------------------------------------------------------
# Each maker returns (module, example inputs, input names, {input: {axis: symbol}}).

LLAMA = dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4,
             vocab_size=32000, attn_implementation="eager")


def first_output(module):
    import torch

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, *inputs):
            return self.module(*inputs)[0]

    return First()


def decoding_step(module, layers):
    """(ids, past) -> (logits, past with the new token); past is (layers, 2, batch, heads, length, head size)."""
    import torch
    from transformers.cache_utils import DynamicCache

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, ids, past):
            cache = DynamicCache()
            for layer in range(layers):
                cache.update(past[layer, 0], past[layer, 1], layer)
            length = past.shape[4]
            positions = torch.arange(length, length + ids.shape[1]).unsqueeze(0)
            result = self.module(input_ids=ids, past_key_values=cache, position_ids=positions, use_cache=True)
            layers_of = result.past_key_values.layers
            return result.logits, torch.stack([torch.stack([layer.keys, layer.values]) for layer in layers_of])

    return Step()


def enliven(module):
    """Gives parameters that start as constants (a head of zeros, layer scales of 1e-6, statistics of batch norms) values
    of their own: as they are, they hide what lies before them."""
    import torch
    with torch.no_grad():
        for name, value in [*module.named_parameters(), *module.named_buffers()]:
            if not value.is_floating_point() or value.numel() < 2 or value.min() != value.max():
                continue
            level = float(value.flatten()[0])
            if level in (0.0, 1.0):
                value.add_(torch.randn_like(value) * 0.05)
            else:
                value.copy_(torch.rand_like(value))
    return module


def vision(name):
    import torch, torchvision
    return getattr(torchvision.models, name)(weights=None), (torch.randn(1, 3, 224, 224),), ["image"], {}


def bert(layers, hidden, heads, length=128):
    import torch
    from transformers import BertConfig, BertModel
    config = BertConfig(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * hidden,
                        attn_implementation="eager")
    ids = torch.randint(1, config.vocab_size, (1, length))
    return first_output(BertModel(config)), (ids, torch.ones_like(ids)), ["input_ids", "attention_mask"], {}


def language_model(kind, use_cache):
    import transformers
    if kind == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(attn_implementation="eager", use_cache=use_cache))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(use_cache=use_cache, **LLAMA))


def prefill(kind, length=128):
    import torch
    ids = torch.randint(0, 32000, (1, length))
    return first_output(language_model(kind, False)), (ids,), ["input_ids"], {}


def with_past(kind):
    import torch
    layers, heads = {"gpt2": (12, 12), "llama": (8, 4)}[kind]
    past = torch.randn(layers, 2, 1, heads, 64, 64)
    inputs = (torch.ones(1, 1, dtype=torch.int64), past)
    return decoding_step(language_model(kind, True), layers), inputs, ["input_ids", "past"], {"past": {4: "past_length"}}


EXPORTED = {
    **{name: (vision, name) for name in ("resnet18", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "regnet_y_400mf",
                                         "convnext_tiny", "vit_b_16", "swin_t")},
    "minilm": (bert, 6, 384, 12),
    "bert_base": (bert, 12, 768, 12),
    "gpt2": (prefill, "gpt2"),
    "llama_150m": (prefill, "llama"),
    "gpt2_past": (with_past, "gpt2"),
    "llama_past": (with_past, "llama"),
}


def exported(name, path):
    import torch
    torch.manual_seed(zlib.crc32(name.encode()))
    maker, *arguments = EXPORTED[name]
    module, inputs, names, open_axes = maker(*arguments)
    shapes = [{axis: torch.export.Dim(symbol) for axis, symbol in open_axes.get(n, {}).items()} for n in names]
    torch.onnx.export(enliven(module).eval(), inputs, path, input_names=names, opset_version=18, dynamo=True, external_data=False,
                      verbose=False, dynamic_shapes=shapes if open_axes else None)


# --- files ------------------------------------------------------------------------------------------------------------

def make(name, folder):
    """The model's path; it is made unless it is there. A file is whole or absent."""
    path = os.path.join(folder, name + ".onnx")
    if os.path.exists(path) and os.path.getmtime(path) > os.path.getmtime(__file__):
        return path
    os.makedirs(folder, exist_ok=True)
    part = path + ".part"
    if name in LIGHT:
        onnx.save(light(name), part)
    else:
        exported(name, part)
    os.replace(part, path)
    return path


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    names = sys.argv[2:] or LIGHT
    if names == ["list"]:
        print("\n".join(LIGHT + list(EXPORTED)))
        return
    if names == ["all"]:
        names = LIGHT + list(EXPORTED)
    for name in names:
        if name not in LIGHT and name not in EXPORTED:
            sys.exit(f"make_models: no model '{name}'; `list` names them")
        path = make(name, sys.argv[1])
        print(f"{path}  {os.path.getsize(path) / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
