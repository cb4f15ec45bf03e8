"""How a request proves who sends it: API keys, signatures of AWS, tokens of Google."""
