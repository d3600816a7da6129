#!/usr/bin/env bash
# flwr 1.42.0: FedAvg gives integers back a little below themselves, so that a model which nobody changed has other
# position ids after a round, and FedAdam sends twice the bytes.
#
# ArrayRecord(model.state_dict()) is how Flower's guide sends a PyTorch model, and the state dict has buffers of whole
# numbers too: position ids, tables of relative positions, int8 weights. FedAvg adds up the arrays times each client's
# share, also of whole numbers, where the shares are rounded. Of ten equal clients position 4 comes back as
# 3.9999999999999996, in float64, and load_state_dict copies that to the buffer of int64 by cutting the digits off: 3.
# With 3 clients 10 of 64 positions are moved, with 6 clients 34, position 1 to 0 among them, with 10 clients 17, with
# 2 or 5 none. Tokens read the embedding of the place before their own, and further rounds move them on: after 5
# rounds of 7 clients the first five tokens of each text have position 0. All clients had sent what they got, and the
# weights are as they were. int8 values go nearer to zero likewise. FedAvg's subclass FedProx does the same, while
# FedMedian and FedTrimmedAvg, which don't weigh, are right. In FedAdam the factor of the step is a float64 of NumPy,
# which makes float64 of each array in NumPy 2: from the first round on the server sends a model of float32 in twice
# the bytes and one of float16 in four times, QFedAvg too. Loading makes float32 of it without a word.
#
# Send model.parameters() alone, or keep the whole numbers of the client's own state dict when loading. Seen in November
# 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check flwr==1.42.0 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAdam, FedAvg, FedMedian, FedProx, FedTrimmedAvg, QFedAvg
from flwr.supercore.task_identity import TaskIdentity

print("flwr", version("flwr"), "torch", torch.__version__)
TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1
PLACES = 64


class Grid:
    """The server's view of the clients, without a network."""

    def __init__(self, clients):
        self.clients = clients

    def get_node_ids(self):
        return range(1, self.clients + 1)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = torch.nn.Embedding(100, 16), torch.nn.Embedding(PLACES, 16)
        self.register_buffer("position_ids", torch.arange(PLACES))
        self.register_buffer("table", torch.arange(-127, 128, dtype=torch.int8))

    def forward(self, texts):
        return self.words(texts) + self.positions(self.position_ids)


def train(strategy, state, clients, rounds=1, change=lambda state: state):
    arrays = ArrayRecord(state)
    for number in range(1, rounds + 1):
        replies = []
        for message in strategy.configure_train(number, arrays, ConfigRecord(), Grid(clients)):
            local = Encoder()
            local.load_state_dict(message.content["arrays"].to_torch_state_dict(), strict=len(state) == 4)
            local = {name: local.state_dict()[name].to(state[name].dtype) for name in state}
            content = {"arrays": ArrayRecord(change(local)),
                       "metrics": MetricRecord({"num-examples": 100, "train_loss": 1.0})}
            replies.append(Message(RecordDict(content), reply_to=message))
        arrays, _ = strategy.aggregate_train(number, replies)
    return arrays


torch.manual_seed(0)
model = Encoder()
texts = torch.randint(100, (1, PLACES))
right = torch.arange(PLACES)
for strategy, clients, rounds, moved, farthest in (
        (FedAvg, 2, 1, 0, 0), (FedAvg, 3, 1, 10, 1), (FedAvg, 5, 1, 0, 0), (FedAvg, 6, 1, 34, 1),
        (FedAvg, 10, 1, 17, 1), (FedAvg, 7, 5, 27, 4), (FedProx, 10, 1, 17, 1), (FedMedian, 10, 1, 0, 0),
        (FedTrimmedAvg, 10, 1, 0, 0)):
    chosen = strategy(proximal_mu=0.1) if strategy is FedProx else strategy()
    arrays = train(chosen, model.state_dict(), clients, rounds)
    loaded = Encoder()
    loaded.load_state_dict(arrays.to_torch_state_dict())
    steps = right - loaded.position_ids
    change = (loaded(texts) - model(texts)).abs().max().item()
    print(f"{strategy.__name__}, {clients} clients, {rounds} rounds: {(steps > 0).sum()} positions are moved, by up to "
          f"{steps.max()}, outputs change by {change:.2f}, the ids came as {arrays['position_ids'].dtype}")
    assert torch.allclose(loaded.words.weight, model.words.weight, atol=1e-5)
    assert steps.min() == 0 and (steps > 0).sum() == moved and steps.max() == farthest
    assert (change > 1) == bool(moved)
    assert torch.equal(loaded.table, model.table) == (moved == 0)
    assert (loaded.table.int().abs() <= model.table.int().abs()).all()
    if strategy is FedAvg and (clients, rounds) == (10, 1):
        print("position 4 came as", repr(arrays["position_ids"].numpy()[4]))
        assert 3.99 < arrays["position_ids"].numpy()[4] < 4 and loaded.position_ids[4] == 3
    if strategy is FedAvg and clients in (6, 7):
        assert not loaded.position_ids[:2 if clients == 6 else 5].any()

for dtype, factor in ((torch.float32, 2), (torch.float16, 4)):
    state = {name: p.detach().to(dtype) for name, p in model.named_parameters()}
    for strategy, grows in ((FedAvg(), False), (FedAdam(), True), (QFedAvg(client_learning_rate=0.1), True)):
        arrays = train(strategy, state, 3, change=lambda local: {name: p + 0.01 for name, p in local.items()})
        found, sent = arrays["words.weight"].numpy(), state["words.weight"].numpy()
        print(f"{type(strategy).__name__}: {sent.dtype} comes back as {found.dtype}, "
              f"{found.nbytes / sent.nbytes:.0f} times the bytes")
        assert found.nbytes == sent.nbytes * (factor if grows else 1)
PYTHON
echo "as seen"
