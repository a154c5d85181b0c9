#!/usr/bin/env python3
"""Runs every fuzz target with libFuzzer: tests/long/fuzz.py BUILD_DIR [SECONDS], one after the other for
SECONDS each (default 600). Keeps inputs that break a target. Ends with `N passed, N failed`."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

TARGETS = ("yaml", "archive", "gateway", "wire")


def main():
    build, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 600
    seeds = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "corpus"
    failed = 0
    for target in TARGETS:
        work = pathlib.Path(tempfile.mkdtemp(prefix=f"det-fuzz-{target}-"))
        grown = work / "corpus"
        grown.mkdir()
        folders = [grown] + [seeds / target] * (seeds / target).is_dir()
        done = subprocess.run([build / "bin" / f"fuzz_{target}", f"-max_total_time={seconds}", "-rss_limit_mb=2048",
                               "-timeout=10", "-max_len=65536", f"-artifact_prefix={work}/", *folders],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        end = [line for line in done.stdout.split("\n") if line.strip()][-3:]
        print(f"{target}: exit code {done.returncode}\n  " + "\n  ".join(end), flush=True)
        if done.returncode:
            failed += 1
            print(done.stdout[-6000:] + f"\nkept for inspection: {work}", flush=True)
        else:
            shutil.rmtree(work)
    print(f"{len(TARGETS) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
