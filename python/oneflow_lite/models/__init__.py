# SPDX-License-Identifier: Apache-2.0
"""Models that the examples and the benchmark share.

>>> from oneflow_lite.models import gpt
>>> model = gpt.build(flow, gpt.PRESETS["baby"].replaced(vocab=75))
"""
