import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

from tinyllm.errors import CheckpointError
from tinyllm.models.gpt import GPT, GPTConfig, load_gpt, load_hf_gpt2, save_gpt

V, T = 61, 24


@pytest.fixture(scope="module")
def hf():
    """A random GPT-2 in which every tensor matters: Hugging Face's own start would hide a wrong bias or scale."""
    config = GPT2Config(
        vocab_size=V,
        n_positions=32,
        n_embd=24,
        n_layer=3,
        n_head=4,
        layer_norm_epsilon=1e-3,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.2 * noise if ".ln_" in name and name.endswith("weight") else 0.3 * noise)
    return model


@pytest.fixture(scope="module")
def folder(hf, tmp_path_factory):
    path = tmp_path_factory.mktemp("hf")
    hf.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def ids():
    return torch.randint(V, (3, T), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def model():
    return random_gpt(GPTConfig(vocab_size=V, ctx_len=T, n_layer=2, n_head=2, n_embd=16))


def random_gpt(config, seed=2):
    model = GPT(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


def nll(logits, ids):
    return -torch.log_softmax(logits[:, :-1], -1).gather(-1, ids[:, 1:, None]).squeeze(-1)


@torch.no_grad()
def test_shuffling_the_context_changes_the_oracle_by_more_than_a_tenth_of_a_nat(hf, ids):
    """Else equal logits would say little about attention and positions."""
    shuffled = ids.clone()
    shuffled[:, : T - 2] = ids[:, torch.randperm(T - 2, generator=torch.Generator().manual_seed(3))]
    change = (nll(hf(ids).logits, ids) - nll(hf(shuffled).logits, shuffled))[:, -1]  # the same token after the same one
    assert change.abs().mean() > 0.1


@torch.no_grad()
@pytest.mark.parametrize("form", ["folder", "object"])
def test_logits_equal_transformers_in_float32_and_float64(hf, folder, ids, form):
    ours = load_hf_gpt2(folder if form == "folder" else hf)
    logits, loss = ours(ids)
    assert loss is None
    assert logits.dtype == torch.float32
    assert (logits - hf(ids).logits).abs().max() < 1e-5
    double = GPT2LMHeadModel(hf.config).double().eval()
    double.load_state_dict(hf.state_dict())
    logits, _ = ours.double()(ids)
    assert logits.dtype == torch.float64
    assert (logits - double(ids).logits).abs().max() < 1e-10


@torch.no_grad()
def test_a_double_object_keeps_its_digits_and_a_half_one_is_widened(hf, ids):
    state = hf.state_dict()
    double = GPT2LMHeadModel(hf.config).double().eval()
    double.load_state_dict({name: tensor.double() / 3 for name, tensor in state.items()})
    assert (load_hf_gpt2(double)(ids)[0] - double(ids).logits).abs().max() < 1e-10
    half = GPT2LMHeadModel(hf.config).half()
    half.load_state_dict(state)
    widened = load_hf_gpt2(half)
    assert torch.equal(widened.wte.weight, state["transformer.wte.weight"].half().float())


@torch.no_grad()
def test_the_object_form_copies_its_weights(hf, ids):
    source = GPT2LMHeadModel(hf.config).eval()
    ours = load_hf_gpt2(source)
    before = ours(ids)[0]
    for parameter in source.parameters():
        parameter.zero_()
    assert torch.equal(ours(ids)[0], before)


@torch.no_grad()
def test_the_loss_is_the_oracles_mean_cross_entropy(hf, ids):
    _, loss = load_hf_gpt2(hf)(ids[:, :-1], ids[:, 1:])
    assert loss.item() == pytest.approx(hf(ids, labels=ids).loss.item(), abs=1e-5)


def copied(folder, tmp_path, *, tensors=None, **config):
    """The folder again, with config keys set and its tensors passed through a function."""
    path = tmp_path / "copy"
    shutil.copytree(folder, path)
    values = json.loads((path / "config.json").read_text()) | config
    (path / "config.json").write_text(json.dumps(values))
    if tensors is not None:
        save_file(tensors(load_file(path / "model.safetensors")), path / "model.safetensors")
    return path


@torch.no_grad()
def test_an_old_file_without_prefix_with_masks_and_a_copied_head_reads_the_same(folder, tmp_path, ids):
    def old(tensors):
        tensors = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
        mask = torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32)
        for i in range(3):
            tensors[f"h.{i}.attn.bias"] = mask.clone()
            tensors[f"h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
        return tensors | {"lm_head.weight": tensors["wte.weight"].clone()}

    path = copied(folder, tmp_path, tensors=old)
    assert torch.equal(load_hf_gpt2(path)(ids)[0], load_hf_gpt2(folder)(ids)[0])


@torch.no_grad()
def test_keys_that_are_not_there_have_transformers_defaults(folder, tmp_path, ids):
    path = copied(folder, tmp_path)
    values = json.loads((path / "config.json").read_text())
    needed = {"model_type", "vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "layer_norm_epsilon"}
    (path / "config.json").write_text(json.dumps({key: values[key] for key in needed}))
    assert torch.equal(load_hf_gpt2(path)(ids)[0], load_hf_gpt2(folder)(ids)[0])
    (path / "config.json").write_text(json.dumps({key: values[key] for key in needed - {"n_positions"}}))
    with pytest.raises(CheckpointError, match=r"wpe\.weight.*\(1024, 24\), got \(32, 24\)"):
        load_hf_gpt2(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "llama"),
        ("activation_function", "relu"),
        ("activation_function", "gelu"),
        ("scale_attn_weights", False),
        ("scale_attn_by_inverse_layer_idx", True),
        ("add_cross_attention", True),
        ("tie_word_embeddings", False),
        ("n_inner", 50),
        ("n_layer", "3"),
        ("quantization_config", {"load_in_8bit": True}),
    ],
)
def test_a_config_that_asks_for_another_function_is_refused_by_key_and_value(folder, tmp_path, key, value):
    path = copied(folder, tmp_path, **{key: value})
    with pytest.raises(CheckpointError) as caught:
        load_hf_gpt2(path)
    assert f"config.{key}: must be " in str(caught.value)
    assert f"got {value!r}" in str(caught.value)


def test_an_object_with_another_function_is_refused_by_key_and_value(hf):
    config = GPT2Config(**hf.config.to_dict() | {"scale_attn_by_inverse_layer_idx": True})
    with pytest.raises(CheckpointError, match=r"scale_attn_by_inverse_layer_idx: must be False, got True"):
        load_hf_gpt2(GPT2LMHeadModel(config))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("transformer.h.1.ln_2.bias"), "missing tensor 'transformer.h.1.ln_2.bias'"),
        (lambda t: t.update({"score.weight": torch.zeros(2)}), "unknown tensor 'score.weight'"),
        (lambda t: t.update({"transformer.ln_f.bias": torch.zeros(23)}), r"\(24,\), got \(23,\)"),
        (lambda t: t.update({"transformer.ln_f.bias": torch.full((24,), math.inf)}), "must be finite, got inf"),
        (lambda t: t.update({"lm_head.weight": torch.zeros(V, 24)}), "lm_head.weight.*must equal wte.weight"),
        (lambda t: t.update({"ln_f.bias": torch.zeros(24)}), "one tensor 'ln_f.bias', got it with and without"),
    ],
)
def test_a_hugging_face_file_holds_exactly_gpt2s_tensors(folder, tmp_path, change, message):
    def changed(tensors):
        change(tensors)
        return tensors

    with pytest.raises(CheckpointError, match=message):
        load_hf_gpt2(copied(folder, tmp_path, tensors=changed))


def test_an_object_with_a_head_of_its_own_or_a_nan_is_refused(hf):
    model = GPT2LMHeadModel(hf.config)
    model.lm_head.weight = torch.nn.Parameter(torch.zeros(V, 24))
    with pytest.raises(CheckpointError, match=r"GPT2LMHeadModel: tensor 'lm_head\.weight': must equal wte\.weight"):
        load_hf_gpt2(model)
    model = GPT2LMHeadModel(hf.config)
    model.transformer.ln_f.bias.data[3] = math.nan
    with pytest.raises(CheckpointError, match=r"tensor 'transformer\.ln_f\.bias': must be finite"):
        load_hf_gpt2(model)


def test_a_hugging_face_folder_is_read_without_transformers(folder):
    code = "import sys; from tinyllm.models.gpt import load_hf_gpt2; load_hf_gpt2(sys.argv[1]); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=60, check=True)
    assert "tinyllm.models.gpt" in run.stdout.split()
    assert "transformers" not in run.stdout.split()


@torch.no_grad()
@pytest.mark.parametrize("t", [0, 1, 12, T - 2])
def test_changing_a_later_token_leaves_the_logits_before_it_alone(model, ids, t):
    before = model(ids)[0]
    changed = ids.clone()
    changed[:, t + 1] = (ids[:, t + 1] + 1) % V
    after = model(changed)[0]
    assert torch.allclose(after[:, : t + 1], before[:, : t + 1], rtol=0, atol=1e-6)
    assert (after[:, t + 1 :] - before[:, t + 1 :]).abs().amax((0, 2)).min() > 1e-3


@torch.no_grad()
def test_a_batch_gives_each_rows_own_logits(model, ids):
    together = model(ids)[0]
    for row, alone in enumerate(ids):
        assert torch.allclose(together[row], model(alone[None])[0][0], rtol=0, atol=1e-5)


@torch.no_grad()
def test_a_numpy_array_of_ids_is_as_good_as_a_tensor(model, ids):
    assert torch.equal(model(ids.numpy())[0], model(ids)[0])


@torch.no_grad()
def test_the_head_of_some_states_is_those_positions_logits(model, ids):
    hidden = model.hidden(ids)
    assert hidden.shape == (3, T, 16)
    assert torch.allclose(model.head(hidden[:, [4, 9]]), model(ids)[0][:, [4, 9]], rtol=0, atol=1e-5)


def test_a_window_longer_than_the_positions_is_refused_with_both_lengths(model):
    with pytest.raises(ValueError, match=rf"T <= ctx_len = {T}, got \[1, {T + 1}\]"):
        model(torch.zeros(1, T + 1, dtype=torch.int64))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[0, V]], f"0 … {V - 1} .*got 0 … {V}"),
        ([[-1, 2]], f"0 … {V - 1} .*got -1 … 2"),
        ([[]], r"got \[1, 0\]"),
        ([1, 2], r"got \[2\]"),
    ],
)
def test_ids_outside_the_vocabulary_or_of_another_shape_are_refused(model, ids, message):
    with pytest.raises(ValueError, match=message):
        model(torch.tensor(ids, dtype=torch.int64))


def test_targets_of_another_shape_are_refused(model, ids):
    with pytest.raises(ValueError, match=r"ids' shape \[3, 24\], got \[3, 23\]"):
        model(ids, ids[:, 1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_head": 3}, "n_embd must be a multiple of n_head, got 16 and 3"),
        ({"n_layer": 0}, "n_layer must be at least 1, got 0"),
        ({"layer_norm_eps": 0.0}, "layer_norm_eps must be positive and finite, got 0.0"),
        ({"layer_norm_eps": math.inf}, "layer_norm_eps must be positive and finite, got inf"),
    ],
)
def test_a_shape_that_cannot_be_built_is_refused_with_its_numbers(change, message):
    shape = {"vocab_size": V, "ctx_len": T, "n_layer": 2, "n_head": 2, "n_embd": 16}
    with pytest.raises(ValueError, match=message):
        GPTConfig(**shape | change)


def test_fresh_weights_are_gpt2s_draws():
    model = GPT(GPTConfig(vocab_size=200, ctx_len=100, n_layer=8, n_head=2, n_embd=64))
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    joins = [name for name in state if name.endswith("c_proj.weight")]
    assert len(joins) == 16
    for name, tensor in state.items():
        if name.endswith("bias"):
            assert (tensor == 0).all()
        elif ".ln_" in name or name.startswith("ln_f"):
            assert (tensor == 1).all()
        else:
            assert tensor.std() == pytest.approx(0.02 / 4 if name in joins else 0.02, rel=0.1)  # √(2 · 8) = 4


@torch.no_grad()
def test_a_float32_checkpoint_comes_back_bit_by_bit(model, ids, tmp_path):
    save_gpt(tmp_path, model, dtype="float32")
    loaded = load_gpt(tmp_path)
    assert not loaded.training
    assert loaded.config == model.config
    assert (loaded.vocab_size, loaded.ctx_len) == (V, T)
    assert all(
        torch.equal(a, b) for a, b in zip(loaded.state_dict().values(), model.state_dict().values(), strict=True)
    )
    assert torch.equal(loaded(ids)[0], model(ids)[0])


def test_a_float16_checkpoint_is_within_half_a_unit_of_its_last_place(model, tmp_path):
    save_gpt(tmp_path, model, dtype="float16")
    assert {tensor.dtype for tensor in load_file(tmp_path / "model.safetensors").values()} == {torch.float16}
    for loaded, original in zip(load_gpt(tmp_path).parameters(), model.parameters(), strict=True):
        assert loaded.dtype == torch.float32
        assert not torch.equal(loaded, original)
        assert ((loaded - original).abs() <= original.abs() * 2**-11 + 2**-25).all()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not list a process's mappings")
def test_float32_weights_stay_in_the_file_they_are_mapped_from(model, tmp_path):
    save_gpt(tmp_path, model)
    loaded = load_gpt(tmp_path)
    places = [
        tuple(int(end, 16) for end in line.split()[0].split("-"))
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith(str(tmp_path / "model.safetensors"))
    ]
    assert all(any(lo <= p.data_ptr() < hi for lo, hi in places) for p in loaded.parameters())


def test_the_checkpoint_holds_gpt2s_names_and_shapes(model, hf, tmp_path):
    save_gpt(tmp_path, load_hf_gpt2(hf))
    theirs = {
        n.removeprefix("transformer."): tuple(t.shape) for n, t in hf.state_dict().items() if n != "lm_head.weight"
    }
    assert {n: tuple(t.shape) for n, t in load_file(tmp_path / "model.safetensors").items()} == theirs


def test_the_config_names_its_family_first_and_records_the_training(model, tmp_path):
    save_gpt(tmp_path, model, training={"seed": 7, "recipe": {"lr": 0.1}})
    config = json.loads((tmp_path / "config.json").read_text())
    assert next(iter(config)) == "tl_arch"
    assert config == {
        "tl_arch": "gpt",
        "vocab_size": V,
        "ctx_len": T,
        "n_layer": 2,
        "n_head": 2,
        "n_embd": 16,
        "layer_norm_eps": 1e-5,
        "training": {"seed": 7, "recipe": {"lr": 0.1}},
    }
    assert load_gpt(tmp_path).config == model.config


def test_a_model_that_float16_cannot_hold_is_refused_by_tensor(model, tmp_path):
    model.h[1].mlp.c_fc.weight.data[0, 2] = 1e6
    with pytest.raises(CheckpointError, match=r"h\.1\.mlp\.c_fc\.weight.*must be finite, got inf at \[0, 2\]"):
        save_gpt(tmp_path, model, dtype="float16")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("wpe.weight"), r"missing tensor 'wpe\.weight'"),
        (lambda t: t.update({"h.2.ln_1.bias": torch.zeros(16)}), r"unknown tensor 'h\.2\.ln_1\.bias'"),
        (lambda t: t.update({"lm_head.weight": torch.zeros(V, 16)}), r"unknown tensor 'lm_head\.weight'"),
        (
            lambda t: t.update({"h.0.attn.c_attn.weight": torch.zeros(48, 16)}),
            r"'h\.0\.attn\.c_attn\.weight': must have shape \(16, 48\), got \(48, 16\)",
        ),
        (
            lambda t: t["h.1.mlp.c_proj.weight"].index_put_((torch.tensor(5), torch.tensor(3)), torch.tensor(math.nan)),
            r"'h\.1\.mlp\.c_proj\.weight': must be finite, got nan at \[5, 3\]",
        ),
        (lambda t: t.update({"ln_f.bias": torch.zeros(16).double()}), r"'ln_f\.bias': must have dtype .*, got float64"),
    ],
)
def test_a_checkpoint_holds_exactly_its_tensors(model, tmp_path, change, message):
    save_gpt(tmp_path, model)
    tensors = {name: tensor.clone() for name, tensor in load_file(tmp_path / "model.safetensors").items()}
    change(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=message):
        load_gpt(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_heads": 2}, "unknown key 'n_heads'; did you mean 'n_head'"),
        ({"n_layer": None}, "missing key 'n_layer'"),
        ({"ctx_len": True}, "ctx_len: must be an integer in 1 .*, got True"),
        ({"n_head": 3}, "config: n_embd must be a multiple of n_head, got 16 and 3"),
        ({"tl_arch": "gpt2"}, "tl_arch: must be 'gpt', got 'gpt2'"),
        ({"training": "yes"}, "training: must be an object, got 'yes'"),
    ],
)
def test_a_config_holds_exactly_its_keys(model, tmp_path, change, message):
    save_gpt(tmp_path, model)
    config = json.loads((tmp_path / "config.json").read_text()) | change
    config = {key: value for key, value in config.items() if value is not None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=message):
        load_gpt(tmp_path)


def test_equal_models_give_equal_bytes(model, tmp_path):
    for place in ("a", "b"):
        save_gpt(tmp_path / place, model, training={"seed": 0})
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_gradients_reach_every_parameter(model, ids):
    model(ids[:, :-1], ids[:, 1:])[1].backward()
    quiet = [name for name, parameter in model.named_parameters() if not np.any(parameter.grad.numpy())]
    assert quiet == []
