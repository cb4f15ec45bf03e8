"""Amazon Bedrock's Converse protocol."""
