"""The one OpenAPI 3.1 document of both REST doors, made from what the doors decode and answer with."""
