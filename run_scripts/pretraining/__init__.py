"""Common parts of run_pretraining and programs like it: flags, records, the network."""
