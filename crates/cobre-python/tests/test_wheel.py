"""The wheel: its name, and the command that it installs."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from importlib import metadata

import cobre


def test_the_distribution_has_a_name_of_its_own_and_is_imported_as_cobre():
    assert metadata.version("cobre-sddp") == cobre.__version__
    assert "cobre-sddp" in metadata.packages_distributions()["cobre"]


def test_the_command_comes_with_the_package(case):
    command = os.path.join(sysconfig.get_path("scripts"), "cobre")
    told = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    assert told == f"cobre {cobre.__version__}\n"
    options = ["--bound=0", "--iterations=5", "--json", "--quiet", "-n2"]
    line = subprocess.run([command, "run", case, *options], check=True, capture_output=True, text=True).stdout
    assert json.loads(line)["policy_sha256"] == cobre.train(case, bound=0.0, iterations=5).policy_sha256
