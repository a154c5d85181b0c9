// Unpacks a submitted context in the browser: base64, gzip, tar (ustar with pax and GNU long names). The
// content is never run or shown as markup. Pure, except for the browser's gzip.

export interface CodeFile {
  path: string;
  bytes: Uint8Array;
}

// Maximum unpacked size, against decompression bombs.
const MAX_BYTES = 200 * 1024 * 1024;

export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const out = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) out[i] = binary.charCodeAt(i);
  return out;
}

export async function gunzip(packed: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream('gzip'));
  const reader = stream.getReader();
  const pieces: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MAX_BYTES) throw new Error('the context is too large to be shown here');
    pieces.push(value);
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes).replace(/\0.*$/s, '');

// The path in a pax header, if any: records "LENGTH key=value\n".
function paxPath(bytes: Uint8Array): string | undefined {
  let found: string | undefined;
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(32, at);
    const length = Number(text(bytes.subarray(at, space)));
    if (space < 0 || !(length > 0)) break;
    const record = new TextDecoder().decode(bytes.subarray(space + 1, at + length - 1));
    if (record.startsWith('path=')) found = record.slice(5);
    at += length;
  }
  return found;
}

// The regular files of a tar archive, in archive order. A damaged end yields the files before it.
export function untar(archive: Uint8Array): CodeFile[] {
  const out: CodeFile[] = [];
  let long: string | undefined;
  for (let at = 0; at + 512 <= archive.length; ) {
    const head = archive.subarray(at, at + 512);
    if (head[0] === 0) break;
    const size = parseInt(text(head.subarray(124, 136)).trim() || '0', 8);
    if (!(size >= 0)) break;
    const body = archive.subarray(at + 512, at + 512 + size);
    const type = String.fromCharCode(head[156] ?? 0);
    if (type === 'L') long = text(body);
    else if (type === 'x') long = paxPath(body) ?? long;
    else {
      const prefix = text(head.subarray(345, 500));
      const name = long ?? (prefix ? `${prefix}/` : '') + text(head.subarray(0, 100));
      long = undefined;
      if (type === '0' || type === '\0') out.push({ path: name.replace(/^\.\//, ''), bytes: body });
    }
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return out;
}

// The file as UTF-8 text; undefined for binary files.
export function asText(bytes: Uint8Array): string | undefined {
  if (bytes.subarray(0, 8192).includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
