"""`python -m chatsite.grpc_door.generate`: makes the committed protobuf code from chat.proto."""

from __future__ import annotations

from inference.proto.generate import REPOSITORY, generate

SOURCE = "chatsite/grpc_door/chat.proto"

if __name__ == "__main__":
    for path in generate(source=SOURCE):
        print(path.relative_to(REPOSITORY))
