"""What run_pretraining and programs like it share: flags, records, the network."""
