"""What the peers that run under torch share: the optimizer and the step of bert_tf.training."""

import torch


def make_optimizer(model, weight_decay):
    """AdamW as in bert_tf.training.optimizer: LayerNorm and biases are not decayed."""
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        (others if "LayerNorm" in name or "bias" in name else decayed).append(parameter)
    return torch.optim.AdamW([{"params": decayed, "weight_decay": weight_decay},
                              {"params": others, "weight_decay": 0.0}],
                             betas=(0.9, 0.999), eps=1e-6, fused=True)


def take_step(model, optimizer, loss, learning_rate):
    """Updates the weights by the gradients of `loss`, clipped to a global norm of 1."""
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in optimizer.param_groups:
        group["lr"] = float(learning_rate)
    optimizer.step()
