#!/usr/bin/env bash
# okapibm25 1.4.1 (npm): a query's words are counted inside of other words, so that "art" finds "party" and "start",
# and b=0 is taken for 0.75.
#
# BM25 ranks passages by the words that they share with a query: the first stage before a reranker, or the lexical half
# of a hybrid search. okapibm25 counts a word as a pattern anywhere in the passage, and a passage has it if it includes
# its letters. The lengths of the passages are counted in whole words. So a passage about parties that start at a
# quarter past is better for "art" than one about art, and the word no longer counts as rare, since more passages have
# its letters somewhere. "cat" finds "category" and "education" alone. The parameter b says how much long passages are
# put back. 0, for none, is replaced by the default 0.75, as k1=0 is by 1.2: "constants && constants.b ? ...". The page
# calls it "a well-tested implementation" and "bag-of-words". No warning comes.
#
# Cut passages and query into words, and count those, as below; pass b=1e-9 for 0. Seen in December 2026 with node 20.
# The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund okapibm25@1.4.1 >/dev/null
cat >find.cjs <<'JAVASCRIPT'
const assert = require("node:assert");
const bm25 = require("okapibm25").default;

console.log("okapibm25", require("okapibm25/package.json").version, "node", process.version);

/** BM25 of whole words, with the formula of the package. */
function right(passages, query, { k1 = 1.2, b = 0.75 } = {}) {
    const words = passages.map((passage) => passage.match(/[\w.]+/g));
    const mean = words.reduce((sum, list) => sum + list.length, 0) / words.length;
    return words.map((list) => query.reduce((score, term) => {
        const having = words.filter((other) => other.includes(term)).length;
        const count = list.filter((word) => word === term).length;
        const rarity = Math.log((words.length - having + 0.5) / (having + 0.5) + 1);
        return score + rarity * count * (k1 + 1) / (count + k1 * (1 - b + b * list.length / mean));
    }, 0));
}

const best = (scores) => scores.indexOf(Math.max(...scores));
const show = (scores) => scores.map((score) => score.toFixed(3)).join(" ");

const passages = [
    "the museum shows modern art from all over the world this summer",
    "the party starts at a quarter past nine and parts of the cart are smart",
    "the weather will be dry with some clouds in the early evening hours",
    "she made an apartment of the old department store near the harbour",
];
for (const [query, wanted] of [[["modern"], 0], [["museum", "summer"], 0], [["art"], 0], [["cat"], -1]]) {
    const seen = bm25([...passages, "a category of delicate education"], query);
    const truth = right([...passages, "a category of delicate education"], query);
    console.log(`${query.join(" ")}: ${show(seen)}; by whole words ${show(truth)}`);
    if (query[0] === "art") {
        assert.equal(best(seen), 1, "the passage about art comes first now");
        assert.ok(seen[1] > 1.5 * seen[0] && seen[3] > seen[0]);
        assert.ok(truth[0] > 1 && truth.slice(1).every((score) => score === 0));
        assert.ok(seen[0] < truth[0] / 2, "art is rare now");
    } else if (query[0] === "cat") {
        assert.ok(seen[4] > 1 && truth.every((score) => score === 0), "a category is no cat now");
    } else {
        assert.ok(seen.every((score, place) => Math.abs(score - truth[place]) < 1e-9), "not right for other words");
        assert.equal(best(seen), wanted);
    }
}

const lengths = ["modern museum", "modern museum " + "with many other rooms and halls ".repeat(5)];
for (const constants of [{ b: 0 }, { b: 0.75 }, { b: 1e-9 }, { k1: 0 }, { k1: 1.2 }]) {
    const seen = bm25(lengths, ["modern"], constants);
    const truth = right(lengths, ["modern"], constants);
    console.log(JSON.stringify(constants), show(seen), "right", show(truth));
    const same = seen.every((score, place) => Math.abs(score - truth[place]) < 1e-6);
    assert.equal(same, Object.values(constants)[0] !== 0, "0 is taken as it is now");
    if (!same) {
        assert.deepEqual(seen, bm25(lengths, ["modern"], {}), "0 is taken for the default");
        assert.ok(Math.abs(truth[0] - truth[1]) < 1e-9 && seen[0] > 1.5 * seen[1]);
    }
}
JAVASCRIPT
node find.cjs
echo "as seen"
