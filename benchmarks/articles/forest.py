"""Inference of a random forest by tensor operations on a CPU: `forest.py GATHER|GEMM`. The trees are made up.

Each tree is complete. GATHER walks down all trees at once, a level a time, by index_select and gather; GEMM finds the
leaf by matrix products of decisions and paths. Both are known forms of trees in tensor libraries.
"""

import sys
import time

import torch

form = sys.argv[1]
TREES, DEPTH, FEATURES, ROWS = 100, 7, 28, 1000
LEAVES = 2**DEPTH
torch.manual_seed(0)
x = torch.rand(ROWS, FEATURES)
features = torch.randint(FEATURES, (TREES, LEAVES - 1))
thresholds = torch.rand(TREES, LEAVES - 1)
values = torch.rand(TREES, LEAVES)


def walk():
    """From node n to its children 2n + 1 and 2n + 2, in a flat array of all trees' nodes."""
    flat_features, flat_thresholds = features.reshape(-1), thresholds.reshape(-1)
    first = (torch.arange(TREES) * (LEAVES - 1)).reshape(1, -1)
    node = torch.zeros(ROWS, TREES, dtype=torch.long)
    for _ in range(DEPTH):
        index = (node + first).reshape(-1)
        feature = torch.index_select(flat_features, 0, index).reshape(ROWS, TREES)
        threshold = torch.index_select(flat_thresholds, 0, index).reshape(ROWS, TREES)
        right = torch.gather(x, 1, feature) >= threshold
        node = 2 * node + 1 + right.long()
    leaf = node - (LEAVES - 1) + (torch.arange(TREES) * LEAVES).reshape(1, -1)
    return torch.index_select(values.reshape(-1), 0, leaf.reshape(-1)).reshape(ROWS, TREES).mean(1)


def paths():
    """(LEAVES - 1, LEAVES): 1 where the leaf is right of the node, -1 where it is left, 0 where it is not below."""
    table = torch.zeros(LEAVES - 1, LEAVES)
    for leaf in range(LEAVES):
        node = 0
        for level in reversed(range(DEPTH)):
            right = leaf >> level & 1
            table[node, leaf] = 2 * right - 1
            node = 2 * node + 1 + right
    return table


PATHS = paths()
RIGHTS = (PATHS > 0).sum(0).float()
CHOSEN = torch.nn.functional.one_hot(features, FEATURES).float().transpose(1, 2).contiguous()


def multiply():
    """The leaf is the one whose every turn to the right was taken, and no turn to the left was missed."""
    decisions = (torch.matmul(x, CHOSEN) >= thresholds.unsqueeze(1)).float()
    leaves = (torch.matmul(decisions, PATHS) == RIGHTS).float()
    return torch.matmul(leaves, values.unsqueeze(2)).squeeze(2).mean(0)


predict = walk if form == "GATHER" else multiply
with torch.no_grad():
    difference = (walk() - multiply()).abs().max().item()
    assert difference < 1e-5, difference
    print("torch", torch.__version__)
    for repetition in range(8):
        start = time.time()
        for _ in range(5):
            predict()
        print("repetition %d: %.6f s for %d rows" % (repetition, (time.time() - start) / 5, ROWS))
