#!/usr/bin/env python3
"""Owns a bucket for a test: answers ListObjectsV2 as S3 does, two keys a page, and runs a lister on it: bucket.py LISTER."""
import http.server
import subprocess
import sys
import threading
import urllib.parse
from xml.sax.saxutils import escape

KEYS = ["train/", "train/a/1.jpg", "train/a/deep/2.jpg", "train/b & b/1.jpg", "train/c/1.jpg", "train/readme.txt",
        "training/d/1.jpg"]


class Bucket(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        asked = urllib.parse.parse_qs(url.query)
        if url.path != "/images" or asked.get("list-type") != ["2"]:
            return self.send_error(400)
        keys = [key for key in KEYS if key.startswith(asked["prefix"][0])]
        start = int(asked.get("continuation-token", ["+/= 0"])[0].split()[-1])
        page = "".join(f"<Contents><Key>{escape(key)}</Key><Size>1</Size></Contents>" for key in keys[start:start + 2])
        if start + 2 < len(keys):
            page += f"<NextContinuationToken>+/= {start + 2}</NextContinuationToken>"
        body = f'<?xml version="1.0"?><ListBucketResult><Name>images</Name>{page}</ListBucketResult>'.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/images"
    sys.exit(subprocess.run([sys.argv[1], url, "train"], timeout=60).returncode)


if __name__ == "__main__":
    main()
