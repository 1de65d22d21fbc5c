"""The weights of a BERT cross-encoder: read out of an 8-bit ONNX file as float32, and written back as one.

Names are short: `words`, `positions`, `types`, `embedded`, then `LAYER.query`, `.key`, `.value`, `.attended`,
`.attended_norm`, `.up`, `.down`, `.norm`, and `pooler`, `score`. Matrices are [in, out]; each has a `.weight` and a
`.bias`, and so has each norm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Weights: TypeAlias = dict[str, NDArray[np.float32]]

HEADS = 12
EPSILON = 1e-12
MATRICES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "up": "intermediate.dense",
    "down": "output.dense",
}
NORMS = {"attended_norm": "attention.output.LayerNorm", "norm": "output.LayerNorm"}


def layers_of(weights: Mapping[str, Any]) -> int:
    return 1 + max(int(name.split(".")[0]) for name in weights if name[0].isdigit())


def read(path: Path) -> Weights:
    """The weights of a quantised `BertForSequenceClassification`, as Hugging Face's exporter names them."""
    graph = onnx.load(path).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def floats(name: str) -> NDArray[np.float32]:
        if name in stored:
            return stored[name].astype(np.float32)
        whole = stored[f"{name}_quantized"].astype(np.int32) - stored[f"{name}_zero_point"].astype(np.int32)
        return (whole * stored[f"{name}_scale"]).astype(np.float32)

    # Matrices lost their names on export; the nodes that use them kept theirs.
    used = {
        node.name: node.input[1].removesuffix("_quantized") for node in graph.node if node.op_type == "MatMulInteger"
    }
    weights = {
        "words": floats("bert.embeddings.word_embeddings.weight"),
        "positions": floats("bert.embeddings.position_embeddings.weight"),
        "types": floats("bert.embeddings.token_type_embeddings.weight"),
        "embedded.weight": floats("bert.embeddings.LayerNorm.weight"),
        "embedded.bias": floats("bert.embeddings.LayerNorm.bias"),
        "pooler.weight": floats("bert.pooler.dense.weight"),
        "pooler.bias": floats("bert.pooler.dense.bias"),
        "score.weight": floats("classifier.weight").reshape(-1, 1),
        "score.bias": floats("classifier.bias"),
    }
    count = sum(name.endswith("attention/self/query/MatMul_quant") for name in used)
    for layer in range(count):
        there = f"bert.encoder.layer.{layer}."
        for name, long in MATRICES.items():
            node = f"/bert/encoder/layer.{layer}/{long.replace('.', '/')}/MatMul_quant"
            weights[f"{layer}.{name}.weight"] = floats(used[node])
            weights[f"{layer}.{name}.bias"] = floats(f"{there}{long}.bias")
        for name, long in NORMS.items():
            weights[f"{layer}.{name}.weight"] = floats(f"{there}{long}.weight")
            weights[f"{layer}.{name}.bias"] = floats(f"{there}{long}.bias")
    return weights


def write(weights: Weights, path: Path) -> None:
    """An ONNX file of the cross-encoder: weights in 8 bits, a scale per column; activations quantised as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    plain = path.with_suffix(".float.onnx")
    onnx.save(_Graph(weights).model(), plain)
    try:
        quantize_dynamic(plain, path, op_types_to_quantize=["MatMul"], per_channel=True, weight_type=QuantType.QInt8)
    finally:
        plain.unlink()


class _Graph:
    """The float graph, node by node."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._stored: dict[str, onnx.TensorProto] = {}

    def model(self) -> onnx.ModelProto:
        hidden = self._embedded()
        blocked = self._node(
            "Mul", self._node("Sub", self._floats("one", [1.0]), self._mask()), self._floats("far", [-1e4])
        )
        for layer in range(layers_of(self._weights)):
            hidden = self._layer(layer, hidden, blocked)
        first = self._node("Gather", hidden, self._whole("first", 0), axis=1)
        pooled = self._node("Tanh", self._linear("pooler", first))
        score = self._node("MatMul", pooled, self._matrix("score.weight"))
        score = self._node("Add", score, self._floats("score.bias", self._weights["score.bias"]))
        self._nodes.append(helper.make_node("Squeeze", [score, self._whole("last", [-1])], ["score"]))
        return self._finished()

    def _embedded(self) -> str:
        """The table of words is a fifth of the file's weights as bytes, and four fifths of it as floats."""
        low, high = float(self._weights["words"].min()), float(self._weights["words"].max())
        scale = (high - low) / 255
        zero = round(-low / scale)
        table = np.clip(np.round(self._weights["words"] / scale) + zero, 0, 255).astype(np.uint8)
        self._stored["words"] = numpy_helper.from_array(table, "words")
        self._stored["words.zero"] = numpy_helper.from_array(np.array(zero, np.uint8), "words.zero")
        rows = self._node("Gather", "words", "input_ids")
        words = self._node("DequantizeLinear", rows, self._floats("words.scale", scale), "words.zero")
        length = self._node("Gather", self._node("Shape", "input_ids"), self._whole("second", [1]))
        places = self._node(
            "Slice", self._matrix("positions"), self._whole("start", [0]), length, self._whole("rows", [0])
        )
        types = self._node("Gather", self._matrix("types"), "token_type_ids")
        return self._norm("embedded", self._node("Add", self._node("Add", words, types), places))

    def _mask(self) -> str:
        mask = self._node("Cast", "attention_mask", to=TensorProto.FLOAT)
        return self._node("Unsqueeze", mask, self._whole("inner", [1, 2]))

    def _layer(self, layer: int, hidden: str, blocked: str) -> str:
        query, key, value = (self._heads(f"{layer}.{name}", hidden) for name in ("query", "key", "value"))
        size = self._weights["0.query.weight"].shape[1] // HEADS
        scores = self._node("MatMul", query, self._node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self._node("Mul", scores, self._floats("root", [size**-0.5]))
        shares = self._node("Softmax", self._node("Add", scores, blocked), axis=-1)
        mixed = self._node("Transpose", self._node("MatMul", shares, value), perm=[0, 2, 1, 3])
        mixed = self._node("Reshape", mixed, self._whole("flat", [0, 0, size * HEADS]))
        hidden = self._norm(
            f"{layer}.attended_norm", self._node("Add", self._linear(f"{layer}.attended", mixed), hidden)
        )
        up = self._gelu(self._linear(f"{layer}.up", hidden))
        return self._norm(f"{layer}.norm", self._node("Add", self._linear(f"{layer}.down", up), hidden))

    def _heads(self, name: str, hidden: str) -> str:
        size = self._weights[f"{name}.weight"].shape[1] // HEADS
        split = self._node("Reshape", self._linear(name, hidden), self._whole("heads", [0, 0, HEADS, size]))
        return self._node("Transpose", split, perm=[0, 2, 1, 3])

    def _gelu(self, hidden: str) -> str:
        error = self._node("Erf", self._node("Mul", hidden, self._floats("root half", [0.5**0.5])))
        share = self._node("Add", error, self._floats("one", [1.0]))
        return self._node("Mul", self._node("Mul", hidden, share), self._floats("half", [0.5]))

    def _linear(self, name: str, hidden: str) -> str:
        product = self._node("MatMul", hidden, self._matrix(f"{name}.weight"))
        return self._node("Add", product, self._matrix(f"{name}.bias"))

    def _norm(self, name: str, hidden: str) -> str:
        scale, shift = self._matrix(f"{name}.weight"), self._matrix(f"{name}.bias")
        return self._node("LayerNormalization", hidden, scale, shift, axis=-1, epsilon=EPSILON)

    def _node(self, kind: str, *inputs: str, **settings: Any) -> str:
        name = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], **settings))
        return name

    def _matrix(self, name: str) -> str:
        return self._floats(name, self._weights[name])

    def _floats(self, name: str, values: Any) -> str:
        return self._keep(name, np.asarray(values, np.float32))

    def _whole(self, name: str, values: Any) -> str:
        return self._keep(name, np.asarray(values, np.int64))

    def _keep(self, name: str, values: NDArray[Any]) -> str:
        self._stored.setdefault(name, numpy_helper.from_array(values, name))
        return name

    def _finished(self) -> onnx.ModelProto:
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ]
        outputs = [helper.make_tensor_value_info("score", TensorProto.FLOAT, ["batch"])]
        graph = helper.make_graph(self._nodes, "reranker", inputs, outputs, list(self._stored.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def names(layers: int) -> Iterator[str]:
    """Every matrix and norm that a model of so many layers has, beside its tables."""
    yield "embedded"
    for layer in range(layers):
        for name in (*MATRICES, *NORMS):
            yield f"{layer}.{name}"
    yield from ("pooler", "score")
