#!/usr/bin/env bash
# setfit 1.2.0: DistillationTrainer teaches the student that all texts are equal, as each pair gets the teacher's
# similarity of the first text with itself.
#
# SetFit distils a large sentence encoder into a small one without labels. Pairs of texts are made, and the student is
# to give each pair the cosine similarity that the teacher gives it. ContrastiveDistillationDataset calls its parent
# with the label 0 for each text, and the parent makes the pairs at once. At that time the second part of a text is
# this label, and it is taken as the row of the similarity matrix. The line that numbers the texts comes after it, too
# late, and has number and text the wrong way round. So each pair has matrix[0][0], which is 1. The student learns to
# give all texts one vector: here all similarities become 0.99, while the teacher's lie between 0.5 and 1. The loss
# falls to near 0, which looks like success, and is lower than with the right targets. The head is then trained on
# what is left. The class calls the other model "the teacher model to mimic". No warning comes.
#
# Number the texts first: use Numbered below in its place. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check setfit==1.2.0 sentence-transformers==6.2.0 \
    transformers==5.23.0 torch==2.13.0 accelerate==1.15.0 datasets==5.2.0 scikit-learn==1.9.1 numpy==2.4.6
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import numpy as np
import setfit
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, util
from sentence_transformers.models import Pooling, Transformer
from setfit import DistillationTrainer, SetFitModel, TrainingArguments, trainer_distillation
from setfit.sampler import ContrastiveDistillationDataset
from sklearn.linear_model import LogisticRegression
from transformers import BertConfig, BertModel, BertTokenizerFast

print("setfit", setfit.__version__)
torch.set_num_threads(1)
WORDS = "ball goal match team bank money share price film actor scene music".split()
rng = np.random.default_rng(0)
LABELS = np.repeat([0, 1, 2], 8)
TEXTS = [" ".join(rng.choice(WORDS[4 * topic:4 * topic + 4], 5)) for topic in LABELS]
PAIRS = np.triu_indices(len(TEXTS), 1)
with open("vocab.txt", "w") as file:
    file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))


class Numbered(ContrastiveDistillationDataset):
    """The same pairs with the similarities of their own texts."""

    def generate_pairs(self):
        self.sentence_labels = [(text, row) for row, text in enumerate(self.sentences)]
        super().generate_pairs()


def tiny_model(seed):
    """A BERT of one layer with random weights, with the mean of its vectors and a head for three classes."""
    torch.manual_seed(seed)
    BertTokenizerFast("vocab.txt").save_pretrained("bert")
    config = BertConfig(vocab_size=5 + len(WORDS), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=64, max_position_embeddings=16, initializer_range=0.5)
    BertModel(config).save_pretrained("bert")
    body = SentenceTransformer(modules=[Transformer("bert"), Pooling(32)], device="cpu")
    return SetFitModel(model_body=body, model_head=LogisticRegression(), labels=[0, 1, 2])


def similarities(model):
    vectors = model.model_body.encode(TEXTS, convert_to_tensor=True, show_progress_bar=False)
    return util.cos_sim(vectors, vectors).cpu().numpy()


teacher = tiny_model(0)
teacher.model_head.fit(teacher.model_body.encode(TEXTS, show_progress_bar=False), LABELS)
teachers = similarities(teacher)
print(f"teacher: similarities {teachers[PAIRS].mean():.3f}, spread {teachers[PAIRS].std():.3f}")


def distil(dataset):
    """The pairs, the student's similarities after training, and their correlation with the teacher's."""
    trainer_distillation.ContrastiveDistillationDataset = dataset
    student = tiny_model(1)
    arguments = TrainingArguments("out", batch_size=32, max_steps=300, body_learning_rate=3e-3, report_to="none",
                                  save_strategy="no", show_progress_bar=False)
    trainer = DistillationTrainer(teacher, student, arguments, Dataset.from_dict({"text": TEXTS}))
    pairs = trainer.get_dataset(TEXTS, None, arguments)[0]
    trainer.train()
    students = similarities(student)
    tie = np.corrcoef(teachers[PAIRS], students[PAIRS])[0, 1]
    print(f"{dataset.__name__}: {len(pairs)} pairs with targets {min(pairs['label']):.3f} to",
          f"{max(pairs['label']):.3f}; similarities {students[PAIRS].mean():.3f},",
          f"spread {students[PAIRS].std():.3f}, correlation {tie:.2f}")
    return pairs, students, tie


pairs, students, tie = distil(ContrastiveDistillationDataset)
assert np.allclose(pairs["label"], 1, atol=1e-5) and len(pairs) == 300, "the targets are no longer all 1"
assert students[PAIRS].min() > 0.95 and teachers[PAIRS].min() < 0.6 and tie < 0.5, "the student is not as seen"
pairs, students, tie = distil(Numbered)
rows = {text: row for row, text in enumerate(TEXTS)}
assert all(np.isclose(pair["label"], teachers[rows[pair["sentence_1"]], rows[pair["sentence_2"]]], atol=1e-4)
           for pair in pairs), "Numbered is wrong too"
assert students[PAIRS].std() > 0.05 and tie > 0.75, "the student does not learn from the right targets"
PYTHON
echo "as seen"
