#!/usr/bin/env bash
# milvus-lite 3.2.2: "score == 0.3" finds no row with 0.3, "score > 0.3" finds all of them, and "not in" finds NULL.
#
# milvus-lite runs Milvus's filters in the user's process, and version 3 is written anew. A FLOAT field, the usual
# one for scores, holds 32 bits. The number in a comparison is taken with 64 bits, so 0.3 and 0.7 from the file are
# never equal to 0.3 and 0.7 in the filter: == finds nothing, != everything, and of the rows at a threshold > or <
# takes or leaves the wrong side. "in [0.3]" is right, and a server of Milvus takes the number with 32 bits (milvus-
# io/milvus issue 47994). A search with the filter has the same rows, so passages below a threshold are answers.
# Rows without a value are left out by !=, < and "not (lang == 'de')", as in SQL. "lang not in ['de']" and
# "not array_contains" take them in. No warning comes.
#
# Take DOUBLE fields, and add "and lang is not null". Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check milvus-lite==3.2.2 pymilvus==3.0.2 numpy==2.4.6
"$folder/venv/bin/python" - "$folder/texts.db" <<'PYTHON'
import sys
from importlib.metadata import version

from pymilvus import DataType, MilvusClient

print("milvus-lite", version("milvus-lite"), "pymilvus", version("pymilvus"))
client = MilvusClient(sys.argv[1])
schema = client.create_schema(auto_id=False)
schema.add_field("id", DataType.INT64, is_primary=True)
schema.add_field("vector", DataType.FLOAT_VECTOR, dim=2)
schema.add_field("score", DataType.FLOAT)
schema.add_field("double", DataType.DOUBLE)
schema.add_field("lang", DataType.VARCHAR, max_length=2, nullable=True)
schema.add_field("tags", DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=4, max_length=9, nullable=True)
index = client.prepare_index_params()
index.add_index("vector", index_type="FLAT", metric_type="COSINE")
client.create_collection("texts", schema=schema, index_params=index)
SCORES, LANGUAGES = [0.1, 0.3, 0.5, 0.7, 0.9], ["de", "en", None, "de", None]
client.insert("texts", [
    {"id": number, "vector": [1.0, number], "score": score, "double": score, "lang": lang,
     "tags": None if lang is None else [lang]}
    for number, (score, lang) in enumerate(zip(SCORES, LANGUAGES))])


def rows(condition):
    """The ids that a query and a search find with a condition."""
    queried = sorted(row["id"] for row in client.query("texts", filter=condition, output_fields=["id"], limit=9))
    searched = sorted(hit["id"] for hit in client.search("texts", [[1.0, 1.0]], limit=9, filter=condition)[0])
    assert queried == searched, "query and search differ"
    print(f"{condition:<32}", queried)
    return queried


print("scores", SCORES, "languages", LANGUAGES)
for field, equal, unequal, above, below in (("double", [1], [0, 2, 3, 4], [2, 3, 4], [0, 1, 2]),
                                            ("score", [], [0, 1, 2, 3, 4], [1, 2, 3, 4], [0, 1, 2, 3])):
    assert rows(f"{field} == 0.3") == equal and rows(f"{field} != 0.3") == unequal, "other rows are equal"
    assert rows(f"{field} > 0.3") == above and rows(f"{field} < 0.7") == below, "other rows are above or below"
    assert rows(f"{field} in [0.3]") == [1], "the list finds other rows"
    assert rows(f"{field} == 0.5") == [2], "0.5, the same in 32 bits, is not found"
assert rows('lang != "de"') == rows('not (lang == "de")') == [1], "rows without a language are found"
assert rows('lang not in ["de"]') == [1, 2, 4], "rows without a language are left out now"
assert rows('not array_contains(tags, "de")') == [1, 2, 4], "rows without tags are left out now"
client.close()
PYTHON
echo "as seen"
