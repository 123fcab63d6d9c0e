"""Routes under /v1. The last two make every other path an error object instead of an HTML page."""

from __future__ import annotations

from django.urls import path

from chatsite.v1.catalog import list_models, retrieve_model
from chatsite.v1.chat import chat_completions
from chatsite.v1.completions import completions
from chatsite.v1.embeddings import embeddings
from chatsite.v1.endpoint import unknown_path
from chatsite.v1.responses import responses

urlpatterns = [
    path("v1/models", list_models, name="v1-models"),
    path("v1/models/<path:name>", retrieve_model, name="v1-model"),
    path("v1/chat/completions", chat_completions, name="v1-chat"),
    path("v1/completions", completions, name="v1-completions"),
    path("v1/responses", responses, name="v1-responses"),
    path("v1/embeddings", embeddings, name="v1-embeddings"),
    path("v1", unknown_path, name="v1-root"),
    path("v1/<path:rest>", unknown_path, name="v1-unknown"),
    path("v1/", unknown_path, name="v1-empty"),
]
