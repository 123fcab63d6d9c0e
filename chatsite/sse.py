"""What every server-sent stream of answers shares: its headers, and how long it may be silent."""

KEEP_ALIVE_S = 10.0
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    # Proxies and middlewares that collect small writes would turn the stream into one block at the end.
    "Content-Encoding": "identity",
    "X-Accel-Buffering": "no",
}
