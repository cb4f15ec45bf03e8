"""The outside's languages: wire protocols as pure encode and decode, and the transport that carries them."""
