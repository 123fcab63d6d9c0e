"""The calls of the gRPC door: let in by a key, parse, call one function, format."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from chatsite.chat.embedding import embed
from chatsite.grpc_door import chat_pb2 as pb
from chatsite.grpc_door.access import Context, calling
from chatsite.grpc_door.chat_pb2_grpc import ChatServicer
from chatsite.grpc_door.talk import Talk
from chatsite.v1.catalog import SCOPES, served, served_embedder
from chatsite.v1.embeddings import texts_of


class ChatService(ChatServicer):
    async def Converse(
        self, messages: AsyncIterator[pb.ClientMessage], context: Context
    ) -> AsyncIterator[pb.ServerMessage]:
        async with calling(context, ("chat",)) as caller, aclosing(Talk(caller).events(messages)) as events:
            async for event in events:
                yield event

    async def Models(self, request: pb.ModelsRequest, context: Context) -> pb.ModelsReply:
        async with calling(context, SCOPES):
            known = await served()
        names = [info.model for info in known.models]
        return pb.ModelsReply(chat_model=names[0], embedding_model=known.embedder, chat_models=names)

    async def Embed(self, request: pb.EmbedRequest, context: Context) -> pb.EmbedReply:
        async with calling(context, ("embeddings",)) as caller:
            info = await served_embedder(request.model)
            made, _ = await embed(caller, texts_of(list(request.input)))
        return pb.EmbedReply(
            model=info.embedder,
            vectors=[pb.Vector(values=vector) for vector in made.vectors],
            prompt_tokens=made.num_tokens,
        )
