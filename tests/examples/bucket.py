#!/usr/bin/env python3
"""Runs COMMAND with a local bucket: bucket.py FOLDER COMMAND… serves the files of FOLDER as objects.

A page of a listing has three keys, and requests must be signed. BUCKET_URL in COMMAND's words and in *.yaml
of the working directory is replaced by the bucket's address."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "storage"))
import s3_server  # noqa: E402


def main():
    folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as directory, s3_server.Store(directory) as store:
        store.make_bucket("images")
        for path in folder.rglob("*"):
            key = path.relative_to(folder).as_posix()
            # Browsers create folders as objects without content.
            store.path("images", key + "/" * path.is_dir()).write_bytes(b"" if path.is_dir() else path.read_bytes())
        url = store.url + "/images"
        for config in pathlib.Path(".").glob("*.yaml"):
            config.write_text(config.read_text().replace("BUCKET_URL", url))
        env = {**os.environ, "AWS_ACCESS_KEY_ID": s3_server.ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": s3_server.SECRET_KEY}
        done = subprocess.run([word.replace("BUCKET_URL", url) for word in command], env=env, timeout=300)
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
