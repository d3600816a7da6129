"""Fine-tunes a model to classify texts: `bert-finetune` under the name of Google's script.

Example:
    python -m run_scripts.run_classifier --task_name=MRPC --data_dir=glue/MRPC --do_train=true \\
        --do_eval=true --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mrpc
"""

from run_scripts import commands

if __name__ == "__main__":
    commands.run("bert-finetune")
