"""Clients of the embedding models and of the chat model; heavy libraries load on first use."""

from coret_pg.models.chat import Abandoned, ChatAnswer, ChatModel, Patience, open_chat
from coret_pg.models.embedding import Embedder, open_embedder

__all__ = [
    "Abandoned",
    "ChatAnswer",
    "ChatModel",
    "Embedder",
    "Patience",
    "open_chat",
    "open_embedder",
]
