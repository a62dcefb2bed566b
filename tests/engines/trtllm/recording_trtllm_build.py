"""A recording of trtllm-build, and nothing more: it checks its words against the flag table, writes a log in the form
of the real one, and leaves files that say they are recordings. No network is compiled and no plan is made.

RECORDING_FAULT makes it fail in a known way: memory, plugin, signal, unwritten, slow.
"""

import json
import os
import signal
import sys
import time
import tomllib
from pathlib import Path

VERSION = "1.2.1+recording"
TABLE = Path(__file__).parents[3] / "hfbench" / "engines" / "trtllm" / "data" / "flags.toml"
RECORDING = "recording of trtllm-build by a test of hfbench: this is no TensorRT plan\n"


def parsed(words):
    """The flags of a command line; SystemExit(2) for what is not in the table, as argparse ends."""
    flags = tomllib.loads(os.environ.get("RECORDING_TABLE") or TABLE.read_text("utf-8"))["flag"]
    told, words = {}, list(words)
    while words:
        name = words.pop(0).removeprefix("--")
        if name not in flags:
            sys.exit(refused(f"unrecognized arguments: --{name}"))
        flag = flags[name]
        if flag["type"] == "switch":
            told[name] = True
            continue
        values = []
        while words and not words[0].startswith("--"):
            values.append(words.pop(0))
        if not values or (len(values) > 1 and not flag.get("many")):
            sys.exit(refused(f"argument --{name}: expected one argument"))
        for value in values:
            if flag["type"] == "integer":
                int(value)
            if value not in flag.get("choices", [value]):
                sys.exit(refused(f"argument --{name}: invalid choice: {value!r}"))
        told[name] = values if flag.get("many") else values[0]
    return told


def refused(why):
    """Say it as argparse does."""
    print(f"trtllm-build: error: {why}", flush=True)
    return 2


def log(text, level="I", source="TRT-LLM"):
    """A line in the form of TensorRT-LLM's log."""
    print(f"[11/30/2026-22:00:00] [{source}] [{level}] {text}", flush=True)


def main():
    """Check, log, write."""
    told = parsed(sys.argv[1:])
    fault = os.environ.get("RECORDING_FAULT", "")
    checkpoint = json.loads((Path(told["checkpoint_dir"]) / "config.json").read_text())
    out = Path(told["output_dir"])
    out.mkdir(parents=True, exist_ok=True)
    log(f"TensorRT LLM version: {VERSION}")
    log("Compute capability: (9, 0)")
    for rank in range(checkpoint["mapping"]["world_size"]):
        if fault == "slow":
            time.sleep(600)
        if fault == "memory":
            log("Requested amount of GPU memory (68719476736 bytes) could not be allocated.", "E", "TRT")
            log("[defaultAllocator.cpp::allocate::44] Error Code 1: Cuda Runtime (out of memory)", "E", "TRT")
            sys.exit(1)
        if fault == "plugin":
            log("Getting creator from plugin registry failed: GPTAttention version: 1", "E", "TRT")
            sys.exit(1)
        if fault == "signal":
            os.kill(os.getpid(), signal.SIGSEGV)
        peak = "[MemUsageStats] Peak memory usage during Engine building and serialization: CPU: 2048 MiB"
        log(peak, source="TRT")
        log(f"Total time of building Unnamed Network {rank}: 00:00:01")
        log(f"Serializing engine to {out / f'rank{rank}.engine'}...")
        if not (fault == "unwritten" and rank):
            (out / f"rank{rank}.engine").write_text(RECORDING)
        log("Engine serialized. Total time: 00:00:00")
    plugins = {name: value for name, value in told.items() if name.endswith("plugin")}
    config = {
        "recording": RECORDING.strip(),
        "version": VERSION,
        "pretrained_config": checkpoint,
        "build_config": {"max_batch_size": int(told["max_batch_size"]), "plugin_config": plugins},
    }
    (out / "config.json").write_text(json.dumps(config))
    Path("model.cache").write_text(RECORDING)  # the real one leaves a timing cache where it runs
    log("Total time of building all engines: 00:00:02")


if __name__ == "__main__":
    main()
