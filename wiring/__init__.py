"""Builds an engine from what was configured: providers, lanes, cache, prices, and the API keys of the environment.

The only package that knows both the engine and the providers. Everything is passed on as values; nothing is kept
between engines.
"""

from ..providers.access import Access as Access
from ..providers.access import ConfigurationError as ConfigurationError
from ..providers.access import endpoint_to as endpoint_to
from ..providers.access import keyless_endpoint_to as keyless_endpoint_to
from .reach import access_to as access_to
from .reach import accesses_to as accesses_to
from .reach import family_of as family_of
from .reach import stem_of as stem_of
from .settings import Settings as Settings
