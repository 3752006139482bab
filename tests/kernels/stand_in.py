"""Plain attention of each text, with the signature of torch's `varlen_attn`."""

from __future__ import annotations

import inspect

import torch
from torch.nn import functional as F
from torch.nn.attention import varlen

SIGNATURE = inspect.signature(varlen.varlen_attn)


class VarlenAttn:
    """Computes in the type that it is given, and notes its calls.

    Attributes:
        calls: the arguments of each, by name.
    """

    def __init__(self):
        self.calls = []

    def __call__(self, *args, **kwargs):
        bound = SIGNATURE.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        self.calls.append(given)
        ends, longest = given["cu_seq_q"], given["max_q"]
        assert ends.dtype == torch.int32
        assert torch.equal(ends, given["cu_seq_k"])
        assert int(ends[-1]) == len(given["query"])
        lengths = ends.diff().tolist()
        assert max(lengths) == longest == given["max_k"]
        left, right = given["window_size"]
        found = []
        rows = (given[name].split(lengths) for name in ("query", "key", "value"))
        for query, key, value in zip(*rows, strict=True):
            scale = query.shape[-1] ** -0.5 if given["scale"] is None else given["scale"]
            scores = torch.einsum("qhs,khs->hqk", query, key) * scale
            apart = torch.arange(len(query)) - torch.arange(len(query))[:, None]
            far = (apart > right) if right >= 0 else torch.zeros_like(apart, dtype=torch.bool)
            far |= (apart < -left) if left >= 0 else far
            weights = F.softmax(scores.masked_fill(far, -torch.inf), dim=-1)
            found.append(torch.einsum("hqk,khs->qhs", weights, value))
        return torch.cat(found)
