"""The tables of tokenizer classes of transformers and PaddleNLP."""

# Classes of transformers and PaddleNLP, without "Tokenizer" and "Fast", that find words as one of
# the tokenizers here.
SAME_WORDS = frozenset((
    "Bert", "ConvBert", "DPRContextEncoder", "DPRQuestionEncoder", "DPRReader", "DistilBert",
    "Electra", "Ernie", "LayoutLM", "Lxmert", "MobileBert", "Nezha", "RetriBert", "Splinter",
    "SqueezeBert", "TinyBert", "Bart", "GPT2", "Longformer", "OpenAIGPT", "Roberta", "Albert",
    "XLNet", "MT5", "T5", "DebertaV2", "XLMRoberta", "Camembert", "PreTrained"))
# A class without a tokenizer.json: it asks a program for the words.
OWN_RULES = frozenset(("BertJapanese",))
# Those that take the defaults of BertTokenizer in transformers 5.23; ConvBert and RetriBert follow
# tokenizer.json.
OF_BERT = frozenset((
    "Bert", "DPRContextEncoder", "DPRQuestionEncoder", "DPRReader", "DistilBert", "Electra",
    "LayoutLM", "Lxmert", "MobileBert", "Splinter", "SqueezeBert"))
# The kind of `kind_beside` whose pieces end in </w> and whose words are found by its own rules.
ENDS_WORDS = "openaigpt"
# Settings that no reader of a .model follows, by the kinds of `kind_beside`.
UNREAD = {"debertav2": ("do_lower_case", "split_by_punct")}
