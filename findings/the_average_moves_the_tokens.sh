#!/usr/bin/env bash
# torch 2.13.0: an exponential average with use_buffers=True changes the position ids of BERT: with a decay of 0.9999
# each fifth token is read at the place before its own.
#
# AveragedModel keeps a moving average of a model's weights, and with use_buffers=True of its buffers too, as in the
# example of its page, with get_ema_multi_avg_fn(0.9). It averages buffers of whole numbers as well: decay * old + (1 -
# decay) * new is computed in float32 and cut to a whole number. Where both are n, the sum may be a hair less than n,
# and n - 1 is what is left. BERT, RoBERTa, ALBERT and others of transformers keep their position ids in such a buffer.
# From the second update on 147 of 512 are wrong with the decay 0.9, 99 with 0.9999, and none with 0.99 and 0.999, as
# chance has it. Two neighbours then share a place, and another has none. Here a BERT that is not trained at all is
# averaged with itself: with 0.9999 its vectors are off by 14% of their length. lightning's EMAWeightAveraging has
# use_buffers=True by default, and leaves such a model behind after fit. The buffer is no part of the state_dict, so
# that the average is right again after saving and loading, which hides the cause. No warning comes.
#
# Pass use_buffers=False, where buffers are copied. Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.24.0 lightning==2.6.6 \
    numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import copy
import io
import logging

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

import lightning
import torch
import transformers
from lightning.pytorch.callbacks import EMAWeightAveraging
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn
from transformers import AlbertConfig, AlbertModel, BertConfig, BertModel, RobertaConfig, RobertaModel

print("torch", torch.__version__, "transformers", transformers.__version__, "lightning", lightning.__version__)
torch.manual_seed(0)
SIZES = dict(vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
BERT = BertModel(BertConfig(**SIZES), add_pooling_layer=False).eval()
TEXTS = torch.randint(5, 1000, (8, 128))


def vectors(model):
    with torch.no_grad():
        return model.eval()(TEXTS).last_hidden_state


def off(model, right):
    return ((vectors(model) - right).norm(dim=-1) / right.norm(dim=-1)).mean().item()


def moved(model, of=BERT):
    return int((model.embeddings.position_ids != of.embeddings.position_ids).sum())


RIGHT = vectors(BERT)
for decay, seen in ((0.9, 147), (0.99, 0), (0.999, 0), (0.9995, 160), (0.9999, 99)):
    for function in ({"multi_avg_fn": get_ema_multi_avg_fn(decay)}, {"avg_fn": get_ema_avg_fn(decay)}):
        average = AveragedModel(BERT, use_buffers=True, **function)
        average.update_parameters(BERT)
        assert moved(average.module) == 0 and off(average, RIGHT) == 0, "wrong from the first update on"
        average.update_parameters(BERT)
        assert moved(average.module) == seen, "the second update does something else"
        for _ in range(2, 50):
            average.update_parameters(BERT)
        print(f"decay {decay} {list(function)}: {moved(average.module)} of 512 positions are wrong, the first ones are",
              average.module.embeddings.position_ids[0, :12].tolist(),
              f"the vectors are off by {off(average, RIGHT):.3f}")
        assert moved(average.module) == seen and (off(average, RIGHT) > 0.1 if seen else off(average, RIGHT) < 1e-4)
assert abs(off(average, RIGHT) - 0.14) < 0.01, "another error than seen"

saved = BertModel(BERT.config, add_pooling_layer=False)
saved.load_state_dict(average.module.state_dict())
print(f"saved and loaded: {moved(saved)} wrong, off by {off(saved, RIGHT):.3f}")
assert moved(saved) == 0 and off(saved, RIGHT) < 1e-4 and "embeddings.position_ids" not in average.module.state_dict()
average = AveragedModel(BERT, use_buffers=False, multi_avg_fn=get_ema_multi_avg_fn(0.9999))
for _ in range(50):
    average.update_parameters(BERT)
assert moved(average.module) == 0 and off(average, RIGHT) < 1e-4, "use_buffers=False is wrong too"

roberta = RobertaModel(RobertaConfig(**SIZES, max_position_embeddings=514, pad_token_id=1), add_pooling_layer=False)
albert = AlbertModel(AlbertConfig(**SIZES), add_pooling_layer=False)
for model in (roberta, albert):
    average = AveragedModel(model, use_buffers=True, multi_avg_fn=get_ema_multi_avg_fn(0.9999))
    for _ in range(2):
        average.update_parameters(model)
    print(type(model).__name__, moved(average.module, model), "wrong")
    assert moved(average.module, model) > 90


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.bert = copy.deepcopy(BERT)

    def training_step(self, batch, index):
        return self.bert(batch).last_hidden_state.square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)


module = Module()
trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, callbacks=[EMAWeightAveraging(decay=0.9999)])
trainer.fit(module, torch.utils.data.DataLoader(TEXTS, batch_size=2))
print(f"after lightning's fit at the learning rate 0: {moved(module.bert)} wrong, off by {off(module.bert, RIGHT):.3f}")
assert moved(module.bert) == 99 and off(module.bert, RIGHT) > 0.1, "lightning copies whole numbers"
PYTHON
echo "as seen"
