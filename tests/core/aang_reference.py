"""AANG's step, slowly: float64, one vector a gradient, factors in dictionaries.

Written from the description of the method and independent of `tartan.core`: it shares only the
objectives' losses, and the rule by which shares become whole examples is written out again.
"""

from __future__ import annotations

import math

from tests.core.reference import Update, flat_gradient


def softmax(logits):
    total = sum(math.exp(v) for v in logits.values())
    return {key: math.exp(v) / total for key, v in logits.items()}


def whole_numbers(total, shares):
    """Floors, then one more for each of the largest remainders; nobody goes away empty-handed."""
    exact = {key: round(total * share, 9) for key, share in shares.items()}
    sizes = {key: math.floor(value) for key, value in exact.items()}
    left = total - sum(sizes.values())
    remainders = sorted(  # Python's sort is stable: ties in order
        exact, key=lambda key: round(exact[key] - sizes[key], 9), reverse=True
    )
    for key in remainders[:left]:
        sizes[key] += 1
    for key in sizes:
        if sizes[key] == 0:
            richest = max(sizes, key=lambda other: sizes[other])
            sizes[richest] -= 1
            sizes[key] = 1
    return sizes


class AangReference:
    """One end task and a space of objectives, on whole batches.

    `objectives` maps a name to `((data, transform, representation, output), head, loss)`, where
    several may have the same head; `end` is `(head, loss)`; `fit(body, batch, step)` gives the
    fitted meta head. `loss(body, head, batch)` is a mean.
    """

    def __init__(
        self, body, end, objectives, fit, *, total, factor_lr, two_way_lr, learns=True
    ):  # fmt: skip
        self.body, self.end, self.objectives, self.fit = body, end, objectives, fit
        self.total, self.factor_lr, self.two_way_lr = total, factor_lr, two_way_lr
        self.learns = learns
        choices = [choice for choice, _, _ in objectives.values()]
        self.W = [{choice[stage]: 0.0 for choice in choices} for stage in range(4)]
        self.W_all = dict.fromkeys(choices, 0.0)
        self.two_way = {"end": 0.0, "aux": 0.0}
        self.waiting = []
        self.theta = list(body.parameters())
        heads = [end[0], *(head for _, head, _ in objectives.values())]
        self.heads = [head for i, head in enumerate(heads) if head not in heads[:i]]
        self.update = Update(body, self.heads)

    def sizes(self, sampled):
        """Examples of each sampled objective."""
        choices = {name: self.objectives[name][0] for name in sampled}
        of_r = softmax({r: self.W[2][r] for _, _, r, _ in choices.values()})
        shares = {}
        for d, t, r, _ in choices.values():
            of_d = softmax({d2: self.W[0][d2] for d2, _, r2, _ in choices.values() if r2 == r})
            of_t = softmax(
                {t2: self.W[1][t2] for d2, t2, r2, _ in choices.values() if (r2, d2) == (r, d)}
            )
            shares[r, d, t] = of_r[r] * of_d[d] * of_t[t]
        assert abs(sum(shares.values()) - 1) < 1e-12
        whole = whole_numbers(self.total, shares)
        return {name: whole[r, d, t] for name, (d, t, r, _) in choices.items()}

    def step(self, end_batch, sampled, batch_of, meta_batch, step, scale):
        """One step; `batch_of(name, n)` is the batch of an objective's first `n` examples."""
        sizes = self.sizes(sampled)
        head, loss_of = self.end
        size = sum(p.numel() for p in self.theta)
        of_heads = {head: [] for head in self.heads}

        loss = loss_of(self.body, head, end_batch)
        both = flat_gradient(loss, [*self.theta, *head.parameters()])
        g_end, losses = both[:size], [float(loss)]
        of_heads[head].append(both[size:])

        gradients = {}
        for name in sampled:
            _, own_head, own_loss = self.objectives[name]
            loss = own_loss(self.body, own_head, batch_of(name, sizes[name]))
            both = flat_gradient(loss, [*self.theta, *own_head.parameters()])
            gradients[name] = both[:size]
            of_heads[own_head].append(both[size:])
            losses.append(float(loss))

        alpha = softmax(self.two_way)
        among = softmax(
            {n: self.W_all[self.objectives[n][0]] + self.W[3][self.objectives[n][0][3]]
             for n in sampled}
        )  # fmt: skip
        weights = {n: alpha["aux"] * among[n] * sizes[n] / self.total for n in sampled}
        weighted = sum(weights[n] * gradients[n] for n in sampled)
        mixed = alpha["end"] * g_end + weighted

        cosines = None
        if self.learns:
            meta_head = self.fit(self.body, end_batch, step)
            g_meta = flat_gradient(loss_of(self.body, meta_head, meta_batch), self.theta)

            def cosine(g):
                return float(g_meta @ g / g_meta.norm() / g.norm())

            cosines = [cosine(g_end), *(cosine(gradients[n]) for n in sampled)]
            self.waiting.append((dict(zip(sampled, cosines[1:], strict=True)), cosines[0],
                                 cosine(weighted)))  # fmt: skip
        if len(self.waiting) == 3:
            for of_objectives, of_end, of_all in self.waiting:
                self.two_way["end"] += self.two_way_lr * of_end / 3
                self.two_way["aux"] += self.two_way_lr * of_all / 3
                for name, c in of_objectives.items():
                    choice = self.objectives[name][0]
                    self.W_all[choice] += self.factor_lr * c / 3
                    for stage in range(4):
                        self.W[stage][choice[stage]] += self.factor_lr * c / 3
            self.waiting = []

        found = [mixed] + [
            sum(of_heads[h]) / len(of_heads[h]) if of_heads[h] else None for h in self.heads
        ]
        self.update(found, scale)
        return {"losses": losses, "weights": [alpha["end"], *weights.values()],
                "cosines": cosines, "sizes": sizes}  # fmt: skip
