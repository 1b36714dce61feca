"""A task's file and its items, without a run: what is found, what is refused, what the rows hash to."""

import hashlib

import pytest

from tinyllm.errors import ExtensionError, FormatError
from tinyllm.tasks import Task, find_task, read_task


def made(*rows, name="made"):
    return Task(name, lambda: rows)


ROW = {"context": "é", "choices": ["x", "y"], "answer": 1}


def test_rows_are_hashed_as_json_lines_with_sorted_keys_in_ascii():
    found = read_task(made(ROW, {"id": 3, **ROW, "extra": None}))
    lines = (
        b'{"answer": 1, "choices": ["x", "y"], "context": "\\u00e9"}\n'
        b'{"answer": 1, "choices": ["x", "y"], "context": "\\u00e9", "extra": null, "id": 3}\n'
    )
    assert found.sha256 == hashlib.sha256(lines).hexdigest()
    assert [(item.id.partition(":")[0], item.line, item.answer) for item in found.items] == [("0", 1, 1), ("3", 2, 1)]


def test_the_hash_is_of_the_rows_and_not_of_the_order_of_their_keys():
    turned = dict(reversed(ROW.items()))
    assert read_task(made(turned)).sha256 == read_task(made(ROW)).sha256
    for other in (ROW | {"answer": 0}, ROW | {"context": "e"}, ROW | {"extra": 1}):
        assert read_task(made(other)).sha256 != read_task(made(ROW)).sha256
    assert read_task(made(ROW, ROW | {"id": "b"})).sha256 != read_task(made(ROW | {"id": "b"}, ROW)).sha256


@pytest.mark.parametrize("ids", [("1", "1"), (1, "1")])
def test_fault_row_54_an_id_made_twice_is_refused(ids):
    rows = [ROW | {"id": one} for one in ("a", *ids)]
    with pytest.raises(FormatError, match=r"task:made: line 3: id: must be unique, got '1' again \(first on line 2\)"):
        read_task(made(*rows))


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ([1], r"task:made: items\(\) must give objects, got \[1\] as row 2"),
        ("x", r'task:made: items\(\) must give objects, got "x" as row 2'),
        (ROW | {"weight": float("nan")}, r"task:made: items\(\) must give rows of JSON, got ValueError: "),
        (ROW | {"weight": float("inf")}, r"task:made: items\(\) must give rows of JSON, got ValueError: "),
        (ROW | {1: 2}, r"task:made: items\(\) must give rows of JSON, got TypeError: "),  # keys that do not sort
    ],
)
def test_fault_row_66_a_row_that_is_none_is_named_and_never_dropped(row, fault):
    with pytest.raises(ExtensionError, match=fault):
        read_task(made(ROW, row))


def test_the_rows_are_asked_for_once():
    calls = []

    def items():
        calls.append(1)
        return iter([ROW])

    assert len(read_task(Task("made", items)).items) == 1
    assert calls == [1]


def test_the_metric_of_a_task_that_names_none_is_accuracy():
    assert made(ROW).metric == "acc"


FILE = 'from tinyllm.tasks import Task\nTASK = Task("{name}", lambda: [])\n'


def test_a_task_is_found_by_its_files_name(tmp_path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/made.py").write_text(FILE.format(name="made"))
    assert find_task("made", folder=tmp_path).name == "made"
    with pytest.raises(ExtensionError, match=r"^unknown task 'mode'; did you mean 'made'\?$"):
        find_task("mode", folder=tmp_path)
    for folder in (None, tmp_path / "tasks"):
        with pytest.raises(ExtensionError, match=r"unknown task 'made'; a task is a file tasks/NAME.py beside the man"):
            find_task("made", folder=folder)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (FILE.format(name="other"), r"made\.py: TASK\.name must be 'made', as it is found by, got 'other'"),
        ("TASK = lambda: []\n", r"made\.py: TASK must be a tinyllm\.tasks\.Task, got <function"),
        ("task = 1\n", r"made\.py: TASK must be a tinyllm\.tasks\.Task, got None"),
    ],
)
def test_a_file_without_a_task_of_its_name_is_refused(tmp_path, text, fault):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/made.py").write_text(text)
    with pytest.raises(ExtensionError, match=fault):
        find_task("made", folder=tmp_path)
