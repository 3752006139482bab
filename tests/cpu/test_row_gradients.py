"""Row-wise gradients of embeddings against torch's dense ones, in float64."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from tartan.cpu.row_gradients import RowGradientEmbedding, in_place_row_gradients, use_row_gradients

ROWS, WIDTH = 50, 6


class Body(nn.Module):
    """A body with Transformers' accessors, whose output is multiplied by the tied table."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.words = embedding
        self.dense = nn.Linear(WIDTH, WIDTH)

    def get_input_embeddings(self) -> nn.Module:
        return self.words

    def set_input_embeddings(self, embedding: nn.Module) -> None:
        self.words = embedding

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        return self.dense(self.words(indices)).tanh() @ self.words.weight.T


@pytest.fixture
def bodies() -> tuple[Body, Body]:
    """Return a body with torch's embedding, and a copy with row gradients; row 3 is padding."""
    torch.manual_seed(0)
    plain = Body(nn.Embedding(ROWS, WIDTH, padding_idx=3)).double()
    rows = copy.deepcopy(plain)
    use_row_gradients(rows)
    return plain, rows


def indices_of(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    return torch.randint(0, 8, shape, generator=torch.Generator().manual_seed(seed))


def gradients(body: nn.Module) -> list[torch.Tensor]:
    return [p.grad.clone() for p in body.parameters()]


def test_gradients_of_several_micro_batches_add_up_as_torchs_do(bodies):
    parts = [indices_of(shape, seed) for seed, shape in enumerate([(4, 5), (2, 9), (7,), (0, 3)])]
    for body in bodies:
        for part in parts:
            with in_place_row_gradients():
                body(part).square().sum().backward()
    expected, found = (gradients(body) for body in bodies)
    assert all(torch.allclose(f, e, rtol=1e-12) for f, e in zip(found, expected, strict=True))
    assert all(g.abs().sum() > 0 for g in found)


def test_padding_gets_no_gradient():
    embedding = nn.Embedding(ROWS, WIDTH, padding_idx=3)
    with in_place_row_gradients():
        RowGradientEmbedding.of(embedding)(torch.tensor([[3, 4, 3]])).sum().backward()
    assert embedding.weight.grad.sum(1).nonzero().flatten().tolist() == [4]


def test_a_micro_batch_adds_to_the_present_grad_in_place(bodies):
    _, body = bodies
    kept = torch.ones(ROWS, WIDTH, dtype=torch.float64)
    body.words.weight.grad = kept
    with in_place_row_gradients():
        body.words(torch.tensor([5, 5, 7])).sum().backward()
    assert body.words.weight.grad is kept
    assert kept.sum(1).tolist() == [WIDTH * (1 + {5: 2, 7: 1}.get(row, 0)) for row in range(ROWS)]


def test_returned_gradients_are_complete_and_leave_grad_empty(bodies):
    part = indices_of((4, 5), 0)
    expected, found = (
        torch.autograd.grad(body(part).square().sum(), list(body.parameters())) for body in bodies
    )
    assert all(torch.allclose(f, e, rtol=1e-12) for f, e in zip(found, expected, strict=True))
    assert all(p.grad is None for body in bodies for p in body.parameters())


def test_batched_gradients_are_returned_too(bodies):
    _, body = bodies
    read = body.words(indices_of((3, 2), 0))
    directions = torch.randn(4, *read.shape, dtype=read.dtype)
    (batched,) = torch.autograd.grad(
        read, body.words.weight, directions, retain_graph=True, is_grads_batched=True
    )
    for direction, found in zip(directions, batched, strict=True):
        (one,) = torch.autograd.grad(read, body.words.weight, direction, retain_graph=True)
        assert torch.allclose(found, one)


def test_a_backward_pass_to_other_parameters_leaves_the_table_alone(bodies):
    _, body = bodies
    with in_place_row_gradients():
        torch.autograd.backward(
            body(indices_of((4, 5), 0)).sum(), inputs=list(body.dense.parameters())
        )
    assert body.words.weight.grad is None
    assert body.dense.weight.grad.abs().sum() > 0


def test_a_frozen_table_gets_no_gradient(bodies):
    _, body = bodies
    body.words.weight.requires_grad_(False)
    with in_place_row_gradients():
        body(indices_of((4, 5), 0)).sum().backward()
    assert body.words.weight.grad is None


def test_the_context_ends_also_with_an_error_in_it(bodies):
    _, body = bodies
    with pytest.raises(KeyError), in_place_row_gradients():
        raise KeyError
    (found,) = torch.autograd.grad(body.words(torch.tensor([1])).sum(), [body.words.weight])
    assert found[1].tolist() == [1.0] * WIDTH
    assert body.words.weight.grad is None


def test_forward_mode_derivatives_are_torchs(bodies):
    part = indices_of((4, 5), 0)
    tangents = []
    for body in bodies:
        values = {name: p.detach() for name, p in body.named_parameters()}
        generator = torch.Generator().manual_seed(1)
        along = {
            n: torch.randn(v.shape, generator=generator, dtype=v.dtype) for n, v in values.items()
        }
        with torch.no_grad():
            tangents.append(
                torch.func.jvp(
                    lambda given, body=body: torch.func.functional_call(body, given, (part,)),
                    (values,),
                    (along,),
                )[1]
            )
    assert torch.allclose(*tangents, rtol=1e-12)


def test_the_parameter_and_its_name_stay(bodies):
    plain, _ = bodies
    before, keys = plain.words.weight, list(plain.state_dict())
    plain.words.eval()
    use_row_gradients(plain)
    assert type(plain.words) is RowGradientEmbedding
    assert plain.words.weight is before
    assert plain.words.padding_idx == 3
    assert not plain.words.training
    assert list(plain.state_dict()) == keys


@pytest.mark.parametrize(
    "settings", [{"max_norm": 1.0}, {"scale_grad_by_freq": True}, {"sparse": True}]
)
def test_an_embedding_that_does_more_stays(settings):
    body = Body(nn.Embedding(ROWS, WIDTH, **settings))
    use_row_gradients(body)
    assert type(body.words) is nn.Embedding


def test_a_subclass_stays():
    class Own(nn.Embedding):
        pass

    body = Body(Own(ROWS, WIDTH))
    use_row_gradients(body)
    assert type(body.words) is Own
