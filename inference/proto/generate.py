"""Makes the committed protobuf code from engine.proto.

Knows the compiler and the file names; does not know what the messages mean.

    python -m inference.proto.generate          writes engine_pb2.py, engine_pb2.pyi and engine_pb2_grpc.py
"""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = "inference/proto/engine.proto"


def generate(target: Path = REPOSITORY, source: str = SOURCE) -> list[Path]:
    """The generated files of `source`, written below `target` beside its place. Needs grpcio-tools."""
    from grpc_tools import protoc

    options = [
        f"-I{REPOSITORY}",
        f"--python_out={target}",
        f"--pyi_out={target}",
        f"--grpc_python_out={target}",
    ]
    status = protoc.main(["protoc", *options, str(REPOSITORY / source)])
    if status != 0:
        raise RuntimeError(f"protoc ended with status {status}")
    place, stem = Path(source).parent, Path(source).stem
    return [target / place / f"{stem}{ending}" for ending in ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py")]


if __name__ == "__main__":
    for path in generate():
        print(path.relative_to(REPOSITORY))
