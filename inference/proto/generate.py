"""Makes the committed protobuf code from engine.proto.

Knows the compiler and the file names; does not know what the messages mean.

    python -m inference.proto.generate          writes engine_pb2.py, engine_pb2.pyi and engine_pb2_grpc.py
"""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = "inference/proto/engine.proto"
GENERATED = ("engine_pb2.py", "engine_pb2.pyi", "engine_pb2_grpc.py")


def generate(target: Path = REPOSITORY) -> list[Path]:
    """The generated files, written below `target` as inference/proto/*. Needs grpcio-tools."""
    from grpc_tools import protoc

    options = [
        f"-I{REPOSITORY}",
        f"--python_out={target}",
        f"--pyi_out={target}",
        f"--grpc_python_out={target}",
    ]
    status = protoc.main(["protoc", *options, str(REPOSITORY / SOURCE)])
    if status != 0:
        raise RuntimeError(f"protoc ended with status {status}")
    return [target / "inference" / "proto" / name for name in GENERATED]


if __name__ == "__main__":
    for path in generate():
        print(path.relative_to(REPOSITORY))
