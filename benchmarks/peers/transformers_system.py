"""transformers, on PyTorch."""

import itertools

import torch
import transformers
import worker

# The mask of labels that are not predicted.
_IGNORED = -100


def version():
    """The versions that are measured."""
    return f"{transformers.__version__}, torch {torch.__version__}"


def _config(job):
    if job["model"] == "modernbert":
        return transformers.ModernBertConfig(**worker.sizes(job), pad_token_id=0,
                                             sparse_prediction=True)
    return transformers.BertConfig(**worker.sizes(job))


def _device(job):
    return "cuda" if job.get("device") == "gpu" else "cpu"


def _computing(job):
    torch.set_num_threads(job["threads"])
    return torch.autocast(_device(job), dtype=torch.bfloat16, enabled=job["dtype"] == "bfloat16")


def _inputs(job, batch):
    names = {"input_ids": "input_ids", "attention_mask": "input_mask"}
    if job["model"] == "bert":
        names["token_type_ids"] = "segment_ids"
    return {name: torch.from_numpy(batch[ours]).long() for name, ours in names.items()}


def train(job):
    """Steps of the network for pre-training with fused AdamW and clipped gradients; compiled on a
    GPU."""
    computing, batches = _computing(job), []
    torch.manual_seed(job["seed"])
    kind = (transformers.BertForPreTraining if job["model"] == "bert"
            else transformers.ModernBertForMaskedLM)
    device = _device(job)
    model = kind(_config(job)).train().to(device)
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        (others if "norm" in name.lower() or "bias" in name else decayed).append(parameter)
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01},
                                   {"params": others, "weight_decay": 0.0}],
                                  lr=1e-4, eps=1e-6, fused=True)
    for batch in worker.draw(job, 4):
        labels = torch.full(batch["input_ids"].shape, _IGNORED)
        row, slot = batch["masked_lm_weights"].nonzero()
        labels[row, batch["masked_lm_positions"][row, slot]] = torch.from_numpy(
            batch["masked_lm_ids"][row, slot]).long()
        batches.append({**_inputs(job, batch), "labels": labels})
        if job["model"] == "bert":
            batches[-1]["next_sentence_label"] = torch.from_numpy(
                batch["next_sentence_labels"]).long()
    feed = itertools.cycle([{name: tensor.to(device) for name, tensor in batch.items()}
                            for batch in batches])
    run = torch.compile(model) if device == "cuda" else model

    def steps(count):
        for batch in itertools.islice(feed, count):
            optimizer.zero_grad()
            with computing:
                loss = run(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()
    return steps


def predict(job):
    """Batches through BertModel or ModernBertModel."""
    computing = _computing(job)
    kind = transformers.BertModel if job["model"] == "bert" else transformers.ModernBertModel
    model = kind(_config(job)).eval()
    inputs = _inputs(job, worker.draw(job, 1)[0])

    @torch.inference_mode()
    def step():
        with computing:
            model(**inputs).last_hidden_state[:, 0].float().numpy()
    return worker.repeated(step)
