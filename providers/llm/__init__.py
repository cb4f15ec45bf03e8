"""Wire protocols of language models, one file each: bytes in, values out, no I/O."""
