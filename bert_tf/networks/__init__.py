"""Networks: from ids to named tensors."""
