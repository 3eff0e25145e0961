#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   OUT=FOLDER scripts/gpu_two.sh
#
# Tests and figures of two GPUs, from carry/ (made by `make gpu-bundle`) on a machine that has them;
# python3 there must have NumPy, pytest and NCCL, for the figures beside it PyTorch. Builds nothing.
# Each part has a time-out and goes on where one before it failed. In OUT, by default this folder:
# info.log, smoke.log, tests.log, table.log (the op table), figures.log and figures.json.
# WHERE: the folder to install into. PARTS: some of smoke, tests, figures, table; all by default.
# PYTEST_ADDOPTS: options for pytest, which reads them itself.
set -uo pipefail
cd "$(dirname "$0")/.."
export WHERE=${WHERE:-/tmp/oneflow_lite} NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0}
OUT=${OUT:-.}
PARTS=${PARTS:-smoke tests figures table}
mkdir -p "$WHERE" "$OUT"
status=0

timeout 90 python3 -m pip install -q --no-index --no-deps --upgrade --target "$WHERE/site" \
  carry/*.whl || exit 1
export PYTHONPATH=$WHERE/site
# A wheel without Gloo's libraries: those beside the tests in C++.
gloo=$(ls "$WHERE"/site/oneflow_lite/lib/liboneflow_lite_gloo.so 2> /dev/null)
if ! { [ -n "$gloo" ] && python3 -c "import oneflow_lite, ctypes; ctypes.CDLL('$gloo')"; } 2> /dev/null &&
  [ -f carry/tests.tar.xz ]; then
  tar -C "$WHERE" -xJf carry/tests.tar.xz lib
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$WHERE/lib
fi

# part NAME SECONDS COMMAND...: its output goes to OUT/NAME.log.
part() {
  local name=$1 seconds=$2 begin=$SECONDS code=0
  shift 2
  [[ " $PARTS info " == *" $name "* ]] || return 0
  timeout -k 10 "$seconds" "$@" > "$OUT/$name.log" 2>&1 || code=$?
  [ $code = 0 ] || status=1
  echo "== $name: exit $code after $((SECONDS - begin)) s"
  tail -n 25 "$OUT/$name.log"
}

tests() {  # EXPRESSION
  python3 -m pytest -q -p no:cacheprovider --tb=short --durations=12 -rs \
    tests/python/test_two_gpus*.py -k "$1"
}
info() {
  nvidia-smi --query-gpu=name,driver_version,memory.used --format=csv
  nvidia-smi topo -m
  python3 -c 'import oneflow_lite as flow
print("oneflow_lite", flow.__version__, flow.__file__, flow.cuda.device_count())'
  python3 -c 'import torch; print("torch", torch.__version__, torch.cuda.nccl.version())'
  echo "Gloo: ${gloo:-not found}"
}
smoke() {
  cat > "$WHERE/smoke.py" << 'END'
import oneflow_lite as flow
from oneflow_lite import distributed as dist
dist.init()
x = flow.full([1 << 20], 1.0 + dist.get_rank(), device="cuda")
dist.all_reduce(x)
print(x.device, x[5].item(), flush=True)
p = flow.placement("cuda", [0, 1])
y = flow.ones(5, 3, placement=p, sbp=flow.sbp.split(0)) * 2
print(y.to_local().device, y.numpy().sum(), flush=True)
everyone = [None, None]
dist.all_gather_object(everyone, dist.get_rank())
print(everyone, flush=True)
END
  NCCL_DEBUG=WARN python3 -m oneflow_lite.launch --nproc 2 --timeout 30 "$WHERE/smoke.py"
}
export -f tests info smoke
export gloo

part info 30 bash -c info
part smoke 60 bash -c smoke
part tests 165 bash -c 'tests "not signature"'
part figures 180 python3 -m oneflow_lite.bench parallel --output "$OUT/figures.json"
part table 130 bash -c 'tests signature'
exit $status
