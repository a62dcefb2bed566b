"""A recording of TensorRT-LLM's conversions, and nothing more: it keeps its words and writes a configuration that says
so. No weights are converted."""

import argparse
import json
from pathlib import Path


def main():
    """Take the common flags, keep the others as they are."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--dtype", choices=["auto", "float16", "bfloat16", "float32"], default="auto")
    parser.add_argument("--tp_size", type=int, default=1)
    parser.add_argument("--pp_size", type=int, default=1)
    told, others = parser.parse_known_args()
    source = json.loads((Path(told.model_dir) / "config.json").read_text())
    world = told.tp_size * told.pp_size
    out = Path(told.output_dir)
    out.mkdir(parents=True)
    config = {
        "recording": "recording of a conversion by a test of hfbench: there are no weights",
        "architecture": source["architectures"][0],
        "dtype": told.dtype,
        "mapping": {"world_size": world, "tp_size": told.tp_size, "pp_size": told.pp_size},
        "words": others,
    }
    (out / "config.json").write_text(json.dumps(config))
    print("Total time of converting checkpoints: 00:00:01", flush=True)


if __name__ == "__main__":
    main()
