"""Fine-tunes a model to find answers: `bert-finetune` under the name of Google's script.

Example:
    python -m run_scripts.run_squad --train_file=train-v1.1.json --predict_file=dev-v1.1.json \\
        --do_train --do_predict --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/squad
"""

from run_scripts import commands

if __name__ == "__main__":
    commands.run("bert-finetune")
