"""The engine: runs calls under quotas, through the cache, into the journal. Knows no benchmark and no provider."""
