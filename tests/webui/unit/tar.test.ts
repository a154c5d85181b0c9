// Reading of a context archive in the browser.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { asText, fromBase64, gunzip, untar } from '../../../webui-static/src/tar';

test('a context that GNU tar packed is read, long names and all', async () => {
  const long = `${'d'.repeat(80)}/${'e'.repeat(90)}.py`;
  const directory = mkdtempSync(path.join(tmpdir(), 'det-tar-'));
  try {
    mkdirSync(path.join(directory, path.dirname(long)), { recursive: true });
    writeFileSync(path.join(directory, long), 'x = 1\n');
    writeFileSync(path.join(directory, 'a.yaml'), 'name: ä\n');
    for (const format of ['gnu', 'pax', 'ustar']) {
      const packed = execFileSync('tar', ['czf', '-', `--format=${format}`, '-C', directory, '.']);
      const files = untar(await gunzip(fromBase64(packed.toString('base64'))));
      const found = files.map((file) => [file.path, asText(file.bytes)] as const).sort();
      assert.deepEqual(
        found,
        [
          ['a.yaml', 'name: ä\n'],
          [long, 'x = 1\n'],
        ],
        format,
      );
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('an archive that is cut off gives what came before; bytes that are no text are said to be none', () => {
  assert.deepEqual(untar(new Uint8Array(700)), []);
  assert.equal(asText(new Uint8Array([1, 0, 2])), undefined);
  assert.equal(asText(new Uint8Array([0xff, 0xfe, 0x41])), undefined);
});
