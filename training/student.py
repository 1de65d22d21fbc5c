"""Makes the packaged reranker: a student of six layers that learns to score as its teacher of twelve does.

    python training/student.py TEACHER_FOLDER questions.jsonl.xz functions.jsonl.xz OUT --seconds 480

The student starts as every second layer of the teacher, or from a student made before (`--start`). Each step it reads
4,096 pairs and learns the teacher's scores (mean squared error), and 32 functions among seven others each
(cross-entropy: the teacher knows no code). It needs a GPU with bf16; `weights.write` turns OUT/student.npz into ONNX.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # as everybody calls it
from material import Asked, Function, Ids, Pairs, read_functions, read_questions
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset
from weights import EPSILON, HEADS, Weights, layers_of, names, read

BATCH = 4096
MICRO = 512
LISTS = 32
HELD_OUT = 400
CLS, SEP = 101, 102


class CrossEncoder(nn.Module):
    """BERT with one score, by the names of `weights.py`."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.layers = layers_of(weights)
        self.parts = nn.ParameterDict({name.replace(".", "_"): torch.tensor(part) for name, part in weights.items()})

    def weights(self) -> dict[str, Tensor]:
        kept = [f"{name}.{part}" for name in names(self.layers) for part in ("weight", "bias")]
        return {name: self._part(name) for name in ("words", "positions", "types", *kept)}

    def _part(self, name: str) -> Tensor:
        return self.parts[name.replace(".", "_")]

    def _linear(self, name: str, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self._part(f"{name}.weight").T, self._part(f"{name}.bias"))

    def _norm(self, name: str, hidden: Tensor) -> Tensor:
        return F.layer_norm(
            hidden, hidden.shape[-1:], self._part(f"{name}.weight"), self._part(f"{name}.bias"), EPSILON
        )

    def _heads(self, name: str, hidden: Tensor) -> Tensor:
        return self._linear(name, hidden).unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def forward(self, ids: Tensor, types: Tensor) -> Tensor:
        seen = (ids > 0)[:, None, None, :]
        first, second = self._part("types")  # a lookup of two rows would sum their gradients one token after the other
        hidden = F.embedding(ids, self._part("words"), padding_idx=0) + self._part("positions")[: ids.shape[1]]
        hidden = hidden + first + types[..., None] * (second - first)
        hidden = self._norm("embedded", hidden)
        for n in range(self.layers):
            query, key, value = (self._heads(f"{n}.{name}", hidden) for name in ("query", "key", "value"))
            mixed = F.scaled_dot_product_attention(query, key, value, seen).transpose(1, 2).flatten(2)
            hidden = self._norm(f"{n}.attended_norm", hidden + self._linear(f"{n}.attended", mixed))
            hidden = self._norm(
                f"{n}.norm", hidden + self._linear(f"{n}.down", F.gelu(self._linear(f"{n}.up", hidden)))
            )
        pooled = torch.tanh(self._linear("pooler", hidden[:, 0]))
        return self._linear("score", pooled).squeeze(-1).float()


def half(teacher: Weights) -> Weights:
    """The teacher without its first, third, fifth … layer."""
    kept = {}
    for name, part in teacher.items():
        layer, _, rest = name.partition(".")
        if not layer.isdigit():
            kept[name] = part
        elif int(layer) % 2:
            kept[f"{int(layer) // 2}.{rest}"] = part
    return kept


def padded(pairs: Sequence[tuple[Ids, Ids]]) -> tuple[Tensor, Tensor]:
    """`[CLS] question [SEP] text [SEP]`, each row as long as the longest, and which part each token belongs to."""
    longest = max(len(q) + len(t) for q, t in pairs) + 3
    ids = np.zeros((len(pairs), -(-longest // 16) * 16), np.int64)
    types = np.zeros_like(ids)
    for row, (question, text) in enumerate(pairs):
        both = np.concatenate(([CLS], question, [SEP], text, [SEP]))
        ids[row, : len(both)] = both
        types[row, len(question) + 2 : len(both)] = 1
    return torch.from_numpy(ids), torch.from_numpy(types)


class Steps(IterableDataset[Any]):
    """What one step reads, drawn beside the GPU's work: pairs in pieces of one length, and lists of functions."""

    def __init__(self, asked: Sequence[Asked], functions: Sequence[Function], tokenizer: Tokenizer) -> None:
        self._asked = asked
        self._tokenizer = tokenizer
        self._functions = functions
        self._homes: dict[str, list[int]] = {}
        for place, function in enumerate(functions):
            self._homes.setdefault(function.home, []).append(place)

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        seed = worker.seed % 2**32 if worker else 0
        pairs, random = Pairs(self._asked, self._tokenizer, seed), np.random.default_rng(seed)
        while True:
            drawn = sorted(pairs.draw(BATCH), key=lambda pair: len(pair[0]) + len(pair[1]))
            pieces = [padded(drawn[place : place + MICRO]) for place in range(0, len(drawn), MICRO)]
            yield pieces, padded([pair for _ in range(LISTS) for pair in self._functions_for_one(random)])

    def _functions_for_one(self, random: np.random.Generator) -> list[tuple[Ids, Ids]]:
        """What one function says, with its code first, three others of its package and four of any."""
        right = int(random.integers(len(self._functions)))
        near = random.choice(self._homes[self._functions[right].home], 3)
        codes = [
            self._functions[place].code for place in (right, *near, *random.integers(len(self._functions), size=4))
        ]
        question, *texts = (
            np.array(one.ids, np.int32)
            for one in self._tokenizer.encode_batch([self._functions[right].says, *codes], add_special_tokens=False)
        )
        return [(question, text[:160]) for text in texts]


def agreement(student: CrossEncoder, teacher: CrossEncoder, pieces: Sequence[tuple[Tensor, Tensor]]) -> str:
    """How close the student is on questions that it never learns from."""
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        theirs = torch.cat([teacher(ids.cuda(), types.cuda()) for ids, types in pieces])
        ours = torch.cat([student(ids.cuda(), types.cuda()) for ids, types in pieces])
    return (
        f"error {(ours - theirs).abs().mean():.3f}, correlation {torch.corrcoef(torch.stack((ours, theirs)))[0, 1]:.4f}"
    )


def train(student: CrossEncoder, teacher: CrossEncoder, steps: DataLoader[Any], seconds: float, rate: float) -> None:
    optimizer = torch.optim.AdamW(student.parameters(), lr=rate, weight_decay=0.01, fused=True)
    started = time.monotonic()
    for step, (pieces, lists) in enumerate(steps):
        done = (time.monotonic() - started) / seconds
        if done >= 1:
            return
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * done))
        errors = []
        for ids, types in pieces:
            ids, types = ids.cuda(non_blocking=True), types.cuda(non_blocking=True)
            with torch.autocast("cuda", torch.bfloat16):
                with torch.no_grad():
                    wanted = teacher(ids, types)
                error = F.mse_loss(student(ids, types), wanted)
            (error / len(pieces)).backward()
            errors.append(error.detach())
        with torch.autocast("cuda", torch.bfloat16):
            scores = student(lists[0].cuda(), lists[1].cuda()).view(LISTS, -1)
        missed = F.cross_entropy(scores, torch.zeros(LISTS, dtype=torch.long, device="cuda"))
        (0.3 * missed).backward()
        nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 50 == 0:
            print(f"{step} {done:.2f} text {torch.stack(errors).mean():.4f} code {missed:.4f}", flush=True)


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__)
    for name in ("teacher", "questions", "functions", "out"):
        parse.add_argument(name, type=Path)
    parse.add_argument("--start", type=Path)
    parse.add_argument("--seconds", type=float, default=480)
    parse.add_argument("--rate", type=float, default=2.5e-4)
    said = parse.parse_args()
    tokenizer = Tokenizer.from_file(str(said.teacher / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    asked = read_questions(said.questions, tokenizer)
    held_out, asked = asked[:HELD_OUT], asked[HELD_OUT:]
    whole = read(said.teacher / "model.onnx")
    teacher = CrossEncoder(whole).cuda().bfloat16().eval().requires_grad_(False)
    student = CrossEncoder(dict(np.load(said.start)) if said.start else half(whole)).cuda()
    drawn = sorted(Pairs(held_out, tokenizer, 1).draw(BATCH), key=lambda pair: len(pair[0]) + len(pair[1]))
    judged = [padded(drawn[place : place + MICRO]) for place in range(0, len(drawn), MICRO)]
    print("before:", agreement(student, teacher, judged), flush=True)
    steps = Steps(asked, read_functions(said.functions), tokenizer)
    train(student, teacher, DataLoader(steps, batch_size=None, num_workers=14), said.seconds, said.rate)
    print("after:", agreement(student, teacher, judged), flush=True)
    np.savez(
        said.out / "student.npz", **{n: part.detach().half().cpu().numpy() for n, part in student.weights().items()}
    )


if __name__ == "__main__":
    main()
