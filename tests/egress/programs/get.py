import os
import sys
import urllib.request

url, size = sys.argv[1], int(sys.argv[2])
headers = {"x-api-key": os.environ["TEST_KEY"]}
request = urllib.request.Request(url, data=bytes(size) or None, headers=headers)
sys.stdout.write(urllib.request.urlopen(request).read().decode())
