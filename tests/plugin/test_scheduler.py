"""With -n the plugin sees to worksteal itself; what was asked for by name is left alone."""

import pytest
from tests.plugin.conftest import MODES
from tests.plugin.toys import entry

SAY = "def pytest_configure(config):\n    print('dist is', getattr(config.option, 'dist', 'absent'))\n"


@pytest.mark.parametrize("mode", MODES)
def test_worksteal_is_chosen_exactly_when_there_are_workers(runs, mode):
    (chosen,) = [value for _, value in runs[mode].noted("controller")]
    assert chosen == {"n0": "no", "no-xdist": "absent"}.get(mode, "worksteal")


@pytest.mark.parametrize(
    ("args", "dist"),
    [
        (("evals", "-n2"), "worksteal"),
        (("evals", "-nauto"), "worksteal"),
        (("evals", "-n2", "--dist=load"), "load"),
        (("evals", "-n2", "--dist=loadfile"), "loadfile"),
        (("evals", "-n2", "-d"), "load"),
        (("evals", "-n0"), "no"),
        (("evals", "-n0", "--dist=load"), "no"),
        (("tests", "-n2"), "load"),
        (("tests", "-n2", "--tinyllm-manifest=evals/zoo.toml"), "worksteal"),
    ],
)
def test_the_scheduler_of_a_run(project, args, dist):
    project.manifest(entry("a"))
    project.file("conftest.py", SAY)
    project.file("tests/test_plain.py", "def test_plain(): pass\n")
    result = project.run(*args, "--collect-only", "-q")  # xdist settles the scheduler, and starts no worker
    result.stdout.fnmatch_lines([f"dist is {dist}"])


def test_addopts_may_choose_the_scheduler(project):
    project.manifest(entry("a"))
    project.ini("addopts = --dist=loadscope")
    project.file("conftest.py", SAY)
    project.run("evals", "-n2", "--collect-only").stdout.fnmatch_lines(["dist is loadscope"])
