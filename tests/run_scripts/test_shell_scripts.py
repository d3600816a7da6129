"""The shell scripts install what they say, and pass their arguments on."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# An interpreter that notes how it is called.
PYTHON = '#!/usr/bin/env bash\necho "$@" >> "$CALLS"\n'


@pytest.mark.parametrize("script, arguments, device, installs, runs", [
    ("quickstart", ["--output_dir=out", "--num_train_steps=9"], "cpu", ".",
     "-m run_scripts.quickstart --working_dir={cwd} --output_dir=out --num_train_steps=9"),
    ("quickstart", [], "gpu", ".[gpu]", "-m run_scripts.quickstart --working_dir={cwd}"),
    ("test", ["-x", "tests/data"], "cpu", ".[test]", "-x tests/data"),
    ("test", ["-x", "tests/data"], "gpu", ".[gpu,test]", "-x tests/data"),
])
def test_arguments_go_to_the_program_alone(script, arguments, device, installs, runs, tmp_path):
    shutil.copytree(ROOT / "run_scripts", tmp_path / "run_scripts", ignore=shutil.ignore_patterns(
        "*.py", "__pycache__"))
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    calls = tmp_path / "calls"
    for _ in range(2):      # the second time, nothing is installed
        subprocess.run(["bash", str(tmp_path / "run_scripts" / f"{script}.sh"), *arguments],
                       check=True, cwd=tmp_path, env={
                           **os.environ, "CALLS": str(calls), "BERT_TF_DEVICE": device})
    noted = calls.read_text(encoding="utf-8").splitlines()
    installed = [line for line in noted if " pip install " in f" {line} "]
    assert len(installed) == 1 and installed[0].endswith(f"--editable {installs}")
    assert noted[-1].endswith(runs.format(cwd=tmp_path))
