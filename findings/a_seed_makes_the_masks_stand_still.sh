#!/usr/bin/env bash
# transformers 5.24.0: DataCollatorForLanguageModeling with a seed and workers masks the same places in every epoch.
#
# The collator draws the masks of masked-language-model pre-training anew for each batch, which RoBERTa called
# dynamic masking. With seed=..., for runs that can be repeated, it makes a generator of its own at the first batch: in
# the main process once, in the worker processes of a DataLoader in each copy of the collator. Workers end with the
# epoch unless persistent_workers is set, and those of the next epoch begin with the same seed. So batch n has the
# masks of batch n of the first epoch. Texts in a fixed order, as of an IterableDataset that streams files, are masked
# in the same places for the whole training: 15% of the tokens are ever predicted in 3 epochs, and 37 to 39%
# without workers, with persistent ones or without a seed. Shuffled texts share the masks of each place in an epoch.
# The seed does not depend on the rank either, so all processes of a distributed run mask the same places in a step.
# A Trainer with dataloader_num_workers=2 does this, too. No warning comes.
#
# Set dataloader_persistent_workers=True, or no seed here but the Trainer's. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0 tokenizers==0.23.3 \
    torch==2.13.0 accelerate==1.15.0 numpy==2.4.6
cd "$folder"
cat > masks.py <<'PYTHON'
import torch
import transformers
from tokenizers import Tokenizer, models
from transformers import BertConfig, BertForMaskedLM, DataCollatorForLanguageModeling, Trainer, TrainingArguments

TEXTS = [{"input_ids": [5 + (7 * text + place) % 100 for place in range(32)]} for text in range(64)]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{number}" for number in range(100))]


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        return iter(TEXTS[worker.id::worker.num_workers] if worker else TEXTS)


def collator(seed):
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, "[UNK]")),
        **{f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")})
    return DataCollatorForLanguageModeling(tokenizer, seed=seed)


def epochs(loader, count=3):
    """The places that are masked in each epoch, [epochs, texts, places]."""
    return torch.stack([torch.cat([batch["labels"].cpu() != -100 for batch in loader]) for _ in range(count)])


def report(name, masks, still):
    ever = float(masks.any(0).float().mean())
    print(f"{name}: the 3 epochs have {'the same' if bool((masks[0] == masks).all()) else 'other'} masks, "
          f"{ever:.1%} of the tokens are masked once or more")
    assert bool((masks[0] == masks).all()) == still and (ever < 0.2 if still else ever > 0.33), "not as seen"


if __name__ == "__main__":
    print("transformers", transformers.__version__, "torch", torch.__version__)
    torch.manual_seed(0)
    for seed, workers, persistent, still in ((1, 0, False, False), (1, 1, False, True), (1, 2, False, True),
                                             (1, 2, True, False), (None, 2, False, False)):
        loader = torch.utils.data.DataLoader(TEXTS, batch_size=8, collate_fn=collator(seed), num_workers=workers,
                                             persistent_workers=persistent)
        report(f"seed {seed}, {workers} workers{', persistent' * persistent}", epochs(loader), still)

    ranks = [epochs(torch.utils.data.DataLoader(TEXTS[rank::2], batch_size=8, collate_fn=collator(1)), 1)
             for rank in range(2)]
    print("2 processes with half of the texts each mask the same places:", bool((ranks[0] == ranks[1]).all()))
    assert torch.equal(*ranks), "the ranks differ"

    model = BertForMaskedLM(BertConfig(vocab_size=105, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                                       intermediate_size=8))
    for persistent, still in ((False, True), (True, False)):
        trainer = Trainer(model, TrainingArguments(
            "out", per_device_train_batch_size=8, max_steps=24, dataloader_num_workers=2, use_cpu=True,
            dataloader_persistent_workers=persistent, report_to=[]), collator(1), train_dataset=Stream())
        loader = trainer.get_train_dataloader()
        report(f"Trainer, a stream, 2 workers{', persistent' * persistent}", epochs(loader), still)
PYTHON
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore masks.py 2>"$folder/log" || { cat "$folder/log"; exit 1; }
echo "as seen"
