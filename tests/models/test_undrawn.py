import subprocess
import sys

import torch

from tinyllm.models.gpt import GPT, GPTConfig, save_gpt


def test_loading_a_checkpoint_does_not_make_torch_import_sympy(tmp_path):
    save_gpt(tmp_path, GPT(GPTConfig(vocab_size=4, ctx_len=4, n_layer=1, n_head=1, n_embd=4)))
    code = """if True:
        import sys
        from tinyllm.models.gpt import load_gpt
        before = "sympy" in sys.modules
        load_gpt(sys.argv[1])
        print(before, "sympy" in sys.modules)
    """
    run = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() in (["False", "False"], ["True", "True"])  # some torch imports it by itself


def test_a_model_that_is_made_and_not_loaded_has_weights_that_were_drawn():
    torch.manual_seed(1)
    first = GPT(GPTConfig(vocab_size=64, ctx_len=16, n_layer=1, n_head=2, n_embd=32))
    assert 0.018 < float(first.wte.weight.detach().std()) < 0.022  # GPT-2's 0.02
    torch.manual_seed(1)
    assert torch.equal(first.wte.weight, GPT(first.config).wte.weight)
