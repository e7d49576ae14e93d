import os
import sys
from urllib.parse import urlsplit

import grpc

# Calls a method of the server with the key in its metadata, and prints the answer's words, or what the server says is wrong.
url = urlsplit(sys.argv[1])
channel = grpc.secure_channel(url.netloc, grpc.ssl_channel_credentials())
call = channel.unary_stream(url.path)
try:
    answers = call(b"a question", metadata=[("x-api-key", os.environ["TEST_KEY"])], timeout=20)
    print(b" ".join(answers).decode())
except grpc.RpcError as error:
    print(error.code().name, error.details())
    sys.exit(1)
