"""Fine-tuning, predictions, conversion and export in a store."""

import pytest
import tensorflow as tf

import bert_tf
from bert_tf import checkpoints, export, files
from bert_tf.errors import InputError
from bert_tf.files import writing
from tests import stores
from tests.finetuning.test_jobs import FILES, fixture_folder, settings
from tests.rounding import assert_same

__all__ = ["fixture_folder"]
pytestmark = pytest.mark.usefixtures("eagerly")


def put(folder, place):
    """Copies the files of a local folder into a store."""
    for path in folder.rglob("*"):
        if path.is_file():
            files.copy_file(str(path), f"{place}/{path.relative_to(folder)}")


def test_a_model_is_trained_used_and_converted_in_a_store(folder, s3, tmp_path):
    put(folder, f"{s3}/in")

    def train(place, output):
        return bert_tf.finetune(FILES, f"{place}/model", output, **settings(place))
    scores = train(folder, str(tmp_path / "out"))
    assert train(f"{s3}/in", f"{s3}/out") == scores
    found = stores.content(f"{s3}/out")
    local = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*")
             if path.is_file()}
    assert {name for name in found if "events.out" not in name} == {
        name for name in local if "events.out" not in name}
    one, two = (bert_tf.Predictor(f"{where}/out")("a film") for where in (s3, tmp_path))
    assert one == two
    for where in (s3, str(tmp_path)):
        checkpoints.convert(f"{where}/out", f"{where}/converted", "huggingface")
    found = stores.content(f"{s3}/converted")
    assert {*found} == {path.name for path in (tmp_path / "converted").iterdir()}
    assert_same(*(
        bert_tf.BertEncoder.from_pretrained(f"{where}/converted").get_weights()
        for where in (s3, tmp_path)))


def test_an_export_appears_with_its_last_file(place, monkeypatch, tmp_path):
    module = tf.Module()
    module.functions = {"twice": tf.function(lambda x: {"y": 2 * x}).get_concrete_function(
        tf.TensorSpec([], tf.float32))}
    module.kept = module.functions["twice"]
    sent, send = [], writing.send
    monkeypatch.setattr(writing, "send", lambda source, target: (
        sent.append(target), send(source, target)))
    assert export.save_model(module, f"{place}/export") == f"{place}/export/1"
    assert sent[-1] == f"{place}/export/1/saved_model.pb"
    stores.store(place.partition(":")[0]).get(f"{place}/export/1/", f"{tmp_path}/1/",
                                              recursive=True)
    loaded = tf.saved_model.load(f"{tmp_path}/1")
    assert loaded.signatures["twice"](tf.constant(3.0))["y"] == 6
    with pytest.raises(InputError, match="is there already; give another version"):
        export.save_model(module, f"{place}/export")
    whole = stores.content(f"{place}/export")
    files.remove_file(f"{place}/export/1/saved_model.pb")       # as if it had not been sent
    export.save_model(module, f"{place}/export")
    assert {*stores.content(f"{place}/export")} == {*whole}
