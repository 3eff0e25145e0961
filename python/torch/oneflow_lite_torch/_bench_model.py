# SPDX-License-Identifier: Apache-2.0
"""The time of a training step of a model of transformers, eager, patched, and with apply_to."""

import time
from collections.abc import Callable

import torch

import oneflow_lite_torch as rows

# Of 124 and about 350 million parameters; "tiny" shows that the code runs.
SIZES = {
    "gpt2": {"n_embd": 768, "n_layer": 12, "n_head": 12},
    "llama": {
        "hidden_size": 1024,
        "intermediate_size": 2816,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
    },
    "tiny": {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 128, "n_positions": 64},
}


def make(name: str, device: str, dtype: torch.dtype) -> torch.nn.Module:
    """A model without dropout, with random weights."""
    import transformers

    if name == "llama":
        config = transformers.LlamaConfig(vocab_size=32000, **SIZES[name])
    else:
        config = transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **SIZES[name])
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config).to(device, dtype)


def step_ms(step: Callable, device: str, steps: int) -> float:
    """Milliseconds of a step: the median."""
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)[len(times) // 2]


def run(name: str, device: str) -> None:
    """Print loss and time of a step in the three ways."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    rows_of_tokens, length, steps = (8, 1024, 20) if name != "tiny" else (2, 32, 3)
    for way in ("eager", "patch", "apply_to"):
        model = make(name, device, dtype)
        if way == "patch":
            rows.patch(device)
        if way == "apply_to":
            print(f"{name}: apply_to replaced {len(rows.apply_to(model))} modules")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        vocabulary = model.config.vocab_size
        tokens = torch.randint(0, vocabulary, (rows_of_tokens, length), device=device)
        losses = []

        def step(model=model, tokens=tokens, optimizer=optimizer, losses=losses):
            loss = model(input_ids=tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach())

        step()
        ms = step_ms(step, device, steps)
        first, last = losses[0].item(), losses[-1].item()
        print(f"{name:6} {way:9} {ms:9.2f} ms a step, loss {first:.5f} -> {last:.5f}", flush=True)
        rows.unpatch()
        del model, optimizer
