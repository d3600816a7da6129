"""From the files of fine-tuning tasks to records, and from predictions to scores."""
