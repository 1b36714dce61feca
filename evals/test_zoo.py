"""The eval run: one item per entry of the manifest, scored, and held to its gate."""


def test_entry(zoo_entry, zoo_checkpoint, evaluate):
    evaluate(zoo_entry).assert_gate()
