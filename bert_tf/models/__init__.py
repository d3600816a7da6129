"""BERT's relatives, a folder each.

A file of a folder is named after the part of the project that it belongs to: `config`, `tokenizer`,
`layers`, `network`, `objective`, `masks`, `records`, `weights` of the original, `huggingface`
weights, `learner`, `settings`. It may import what that part may import. The rest of the project
reaches a relative through rows of tables.
"""
