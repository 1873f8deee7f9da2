"""flyball over HTTP.

openai    the protocols of OpenAI's API, server side: codecs, and routes that know no web framework
"""
