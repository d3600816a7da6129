"""Writes golden/adversarial: what the code of SMART, of FreeLB and of R-Adam computes.

    python -m tests.make_adversarial_golden MT_DNN FREELB RADAM

The arguments are clones of namisan/mt-dnn, zhuchen03/FreeLB and LiyuanLucasLiu/RAdam. It needs
torch and transformers, and no bert_tf.
"""

import argparse
import copy
import io
import lzma
import pathlib
import sys
import textwrap
import types

import numpy as np
import torch
import transformers

FOLDER = pathlib.Path(__file__).parent / "golden" / "adversarial"
SIZES = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 24, "max_position_embeddings": 12, "hidden_dropout_prob": 0.0,
         "attention_probs_dropout_prob": 0.0, "num_labels": 3, "hidden_act": "gelu"}


def make_model():
    """A BERT whose weights are large enough that noise matters."""
    torch.manual_seed(1)
    config = transformers.BertConfig(**SIZES, attn_implementation="eager")
    model = transformers.BertForSequenceClassification(config)
    for name, weight in model.named_parameters():
        weight.data = torch.randn_like(weight) * 0.4 + (name.endswith("LayerNorm.weight"))
    return model.train()


def make_batch():
    lengths = torch.tensor([[12], [7], [9], [4]])
    mask = (torch.arange(12) < lengths).long()
    return {"input_ids": torch.randint(1, 30, (4, 12)) * mask, "attention_mask": mask,
            "token_type_ids": (torch.arange(12) >= 4).long() * mask,
            "labels": torch.tensor([0, 2, 1, 1])}


# Whose gradients are kept.
KEPT = ("word_embeddings.weight", "layer.0.attention.self.query.weight",
        "layer.1.output.dense.bias", "classifier.weight")


def gradients(model):
    return {f"gradient/{name}": weight.grad.numpy().copy()
            for name, weight in model.named_parameters() if name.endswith(KEPT)}


def smart(folder, model, batch, **options):
    """SmartPerturbation on the output of the embeddings, which the encoder reads as it is."""
    sys.path.insert(0, folder)
    from mt_dnn import loss, perturbation
    drawn, given = [], []

    def noise(embed, mask, epsilon):
        drawn.append(torch.randn_like(embed) * epsilon)
        return drawn[-1].clone().requires_grad_()

    perturbation.generate_noise = noise
    mask = (1.0 - batch["attention_mask"][:, None, None].float()) * -10000.0

    def network(ids, types_, attention_mask, premise, hypothesis, task, kind=0, embed=None):
        if kind == 1:
            return model.bert.embeddings(ids, types_)
        given.append(embed)
        x = model.bert.encoder(embed, attention_mask=mask).last_hidden_state
        return model.classifier(model.bert.pooler(x))

    arguments = [batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")]
    embed = network(*arguments, None, None, 0, 1)
    logits = network(*arguments, None, None, 0, 2, embed)
    way = perturbation.SmartPerturbation(loss_map=[loss.SymKlCriterion()], **options)
    apart, _, _ = way.forward(network, logits, *arguments)
    model.zero_grad()
    apart.backward()
    return {"first_noise": drawn[0].numpy(), "noise": (given[-1] - embed).detach().numpy(),
            "logits": logits.detach().numpy(), "loss": apart.detach().numpy(), **gradients(model)}


def freelb(folder, model, batch, **options):
    """The lines of run_glue_freelb.py from the first noise to the last backward pass."""
    path = pathlib.Path(folder, "huggingface-transformers", "examples", "run_glue_freelb.py")
    text = path.read_text()
    begin = text.index("            # initialize delta")
    end = text.index("            # ============================ End (2)")
    inner, noises = copy.copy(model), []
    word_embeddings = model.bert.embeddings.word_embeddings

    def run(inputs_embeds, attention_mask, labels, token_type_ids, dp_masks):
        noises.append((inputs_embeds - word_embeddings(batch["input_ids"])).detach().numpy())
        return inner(inputs_embeds=inputs_embeds, attention_mask=attention_mask, labels=labels,
                     token_type_ids=token_type_ids), None

    class Model:
        encoder = types.SimpleNamespace(
            embeddings=types.SimpleNamespace(word_embeddings=word_embeddings))

        def __call__(self, **inputs):
            return run(**inputs)

    model.zero_grad()
    names = {"torch": torch, "model": Model(), "batch": [batch["input_ids"]], "tr_loss": 0.0,
             "inputs": {name: batch[name] for name in (
                 "attention_mask", "labels", "token_type_ids")},
             "args": types.SimpleNamespace(n_gpu=1, gradient_accumulation_steps=1, fp16=False,
                                           **options)}
    exec(textwrap.dedent(text[begin:end]), names)
    return {"noises": np.stack(noises), "loss": np.float64(names["tr_loss"]), **gradients(model)}


def radam(folder):
    """Eight steps; the old spelling of two functions of torch is replaced."""
    path = pathlib.Path(folder, "radam", "radam.py")
    text = path.read_text().replace("from torch.optim.optimizer import Optimizer, required",
                                    "from torch.optim.optimizer import Optimizer")
    for old, new in (("addcmul_(1 - beta2, grad, grad)", "addcmul_(grad, grad, value=1 - beta2)"),
                     (".add_(1 - beta1, grad)", ".add_(grad, alpha=1 - beta1)"),
                     (".add_(-group['weight_decay'] * group['lr'], p_data_fp32)",
                      ".add_(p_data_fp32, alpha=-group['weight_decay'] * group['lr'])"),
                     (".addcdiv_(-step_size * group['lr'], exp_avg, denom)",
                      ".addcdiv_(exp_avg, denom, value=-step_size * group['lr'])")):
        assert old in text
        text = text.replace(old, new)
    names = {}
    exec(text, names)
    weight = torch.randn(3, 4, requires_grad=True)
    grads = torch.randn(8, 3, 4)
    found = [weight.detach().numpy().copy()]
    optimizer = names["RAdam"]([weight], lr=0.5, eps=1e-6, weight_decay=0.01)
    for grad in grads:
        weight.grad = grad.clone()
        optimizer.step()
        found.append(weight.detach().numpy().copy())
    return {"gradients": grads.numpy(), "weights": np.stack(found)}


def main():
    parser = argparse.ArgumentParser()
    for name in ("mt_dnn", "freelb", "radam"):
        parser.add_argument(name)
    args = parser.parse_args()
    model = make_model()
    batch = make_batch()
    found = {f"weights/{name}": weight.detach().numpy()
             for name, weight in model.named_parameters()}
    found |= {f"batch/{name}": value.numpy() for name, value in batch.items()}
    # Noise that is much smaller leaves of the divergence's gradient the rounding of float32.
    for name, options in (("inf_1", {"k": 1, "noise_var": 1e-2}),
                          ("inf_2", {"k": 2, "noise_var": 3e-2, "step_size": 0.1})):
        found |= {f"smart_{name}/{key}": value
                  for key, value in smart(args.mt_dnn, model, batch, **options).items()}
    for name, options in (
            ("l2", {"adv_lr": 0.3, "adv_init_mag": 0.2, "adv_max_norm": 0.35, "norm_type": "l2"}),
            ("linf", {"adv_lr": 0.1, "adv_init_mag": 0.05, "adv_max_norm": 0.12,
                      "norm_type": "linf"}),
            ("free", {"adv_lr": 0.1, "adv_init_mag": 0.0, "adv_max_norm": 0.0,
                      "norm_type": "l2"})):
        found |= {f"freelb_{name}/{key}": value for key, value in freelb(
            args.freelb, model, batch, adv_steps=3, **options).items()}
    found |= {f"radam/{key}": value for key, value in radam(args.radam).items()}
    FOLDER.mkdir(exist_ok=True)
    buffer = io.BytesIO()
    np.savez(buffer, **found)
    (FOLDER / "steps_seed1.npz.xz").write_bytes(lzma.compress(buffer.getvalue()))


if __name__ == "__main__":
    main()
