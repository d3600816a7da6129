"""Parts of `bert-benchmark faults`: commands, faults, and the processes that it disturbs."""
