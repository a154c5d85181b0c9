// Converts log lines to plain pieces of text. ANSI colors become small numbers, all other escapes and control
// characters are dropped, and characters that reorder text are shown by their code point. Pure.

interface Piece {
  text: string;
  color?: number; // 0..7 black red green yellow blue magenta cyan white; 8..15 the bright variants
  bold?: boolean;
  dim?: boolean;
}

// CSI sequences; OSC and other strings up to their terminator; two-character escapes; a lone escape.
const ESCAPE =
  /\x1b\[([0-9:;<=>?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?/g;
const CONTROL = /[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]/g;
const REORDER = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function clean(text: string): string {
  return text
    .replace(CONTROL, '')
    .replace(REORDER, (c) => `<U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}>`);
}

type Style = Omit<Piece, 'text'>;

function applyCodes(style: Style, codes: number[]): Style {
  let next = { ...style };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 22) next.bold = next.dim = undefined;
    else if (code >= 30 && code <= 37) next.color = code - 30;
    else if (code === 39) next.color = undefined;
    else if (code >= 90 && code <= 97) next.color = code - 90 + 8;
    else if (code === 38 || code === 48) {
      const palette = codes[i + 2] ?? 0;
      if (codes[i + 1] === 5) {
        if (code === 38 && palette < 16) next.color = palette;
        i += 2;
      } else if (codes[i + 1] === 2) {
        i += 4;
      }
    }
  }
  return next;
}

// The pieces of one line. A carriage return restarts the line, as in a terminal: only the
// text after the last one is shown.
export function pieces(line: string): Piece[] {
  const trimmed = line.replace(/\r+$/, '');
  const text = trimmed.slice(trimmed.lastIndexOf('\r') + 1);
  if (!text.includes('\x1b')) return text === '' ? [] : [{ text: clean(text) }];
  const out: Piece[] = [];
  let style: Style = {};
  let from = 0;
  const push = (part: string): void => {
    const cleaned = clean(part);
    if (cleaned !== '') out.push({ text: cleaned, ...style });
  };
  for (const match of text.matchAll(ESCAPE)) {
    push(text.slice(from, match.index));
    from = (match.index ?? 0) + match[0].length;
    if (match[2] === 'm') style = applyCodes(style, (match[1] ?? '').split(/[;:]/).map(Number));
  }
  push(text.slice(from));
  return out;
}
