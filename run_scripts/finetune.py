"""Fine-tunes a model on a task or on several, scores it, and predicts.

One of the programs below does the work. The task chooses it: --task, --tasks, --task_kind, a flag
that only one program has, such as --predict_file of squad, or the fine-tuned model that predicts.
You may also give its name as the first argument.

Example:
    bert-finetune --task=MRPC --data_dir=glue/MRPC --do_train --do_eval \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mrpc
"""
