# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the row ops, beside streams that move the same bytes and beside other libraries.

    python -m oneflow_lite.bench softmax layer_norm --dtype float16,float32 --output record.json
    python -m oneflow_lite.bench --merge a.json b.json --output all.json --plot all.png

``docs/performance.md`` says how it measures and what it found.
"""
