"""MT-DNN: several tasks share one encoder."""
