// Markdown parser for notes: headings, paragraphs, lists, tables, quotes, code. Produces a tree of plain values,
// never markup: HTML in the text stays text, and only web addresses become links. Pure.

export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong'; inner: Inline[] }
  | { kind: 'emphasis'; inner: Inline[] }
  | { kind: 'struck'; inner: Inline[] }
  | { kind: 'link'; to: string; inner: Inline[] };

export type Block =
  | { kind: 'heading'; level: number; inner: Inline[] }
  | { kind: 'paragraph'; inner: Inline[] }
  | { kind: 'code'; text: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'list'; ordered: boolean; items: Inline[][] }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' };

// Allows links to the web, to mail and within this UI; rejects scripts and data URLs.
export function safeLink(address: string): string | undefined {
  const text = address.trim();
  if (/^(https?:\/\/|mailto:)[^\s]+$/i.test(text)) return text;
  return /^\/det\/[^\s\\]*$/.test(text) ? text : undefined;
}

const MARKS: readonly [RegExp, (found: RegExpExecArray, depth: number) => Inline][] = [
  [/^`([^`\n]+)`/, (found) => ({ kind: 'code', text: found[1] ?? '' })],
  [/^\*\*(?=\S)([^\n]*?\S)\*\*/, (found, depth) => ({ kind: 'strong', inner: inline(found[1] ?? '', depth + 1) })],
  [/^__(?=\S)([^\n]*?\S)__/, (found, depth) => ({ kind: 'strong', inner: inline(found[1] ?? '', depth + 1) })],
  [/^~~(?=\S)([^\n]*?\S)~~/, (found, depth) => ({ kind: 'struck', inner: inline(found[1] ?? '', depth + 1) })],
  [/^\*(?=[^\s*])([^*\n]*?[^\s*])\*/, (found, depth) => ({ kind: 'emphasis', inner: inline(found[1] ?? '', depth + 1) })],
  [/^_(?=[^\s_])([^_\n]*?[^\s_])_(?!\w)/, (found, depth) => ({ kind: 'emphasis', inner: inline(found[1] ?? '', depth + 1) })],
];
const LINK = /^\[([^\]\n]*)\]\(([^)\s]*)\)/;
const BARE = /^https?:\/\/[^\s<>"')\]]+/;
// Maximum nesting of inline marks; deeper ones stay text.
const DEEPEST = 6;

export function inline(text: string, depth = 0): Inline[] {
  const out: Inline[] = [];
  const plain = (more: string): void => {
    const last = out[out.length - 1];
    if (last?.kind === 'text') last.text += more;
    else out.push({ kind: 'text', text: more });
  };
  for (let at = 0; at < text.length; ) {
    const rest = text.slice(at, at + 4000);
    const inWord = at > 0 && /\w/.test(text[at - 1] ?? '');
    if (rest[0] === '\\' && /^[\\`*_~[\]()#>-]/.test(rest.slice(1))) {
      plain(rest[1] ?? '');
      at += 2;
      continue;
    }
    const link = depth < DEEPEST ? LINK.exec(rest) : null;
    const to = link && safeLink(link[2] ?? '');
    const bare = inWord ? null : BARE.exec(rest);
    if (link && to) {
      out.push({ kind: 'link', to, inner: inline(link[1] ?? '', DEEPEST) });
      at += link[0].length;
      continue;
    }
    if (bare) {
      out.push({ kind: 'link', to: bare[0], inner: [{ kind: 'text', text: bare[0] }] });
      at += bare[0].length;
      continue;
    }
    const mark = depth < DEEPEST && /[`*_~]/.test(rest[0] ?? '') && !(inWord && rest[0] === '_') ? marked(rest, depth) : undefined;
    if (mark) out.push(mark.one);
    else plain(rest[0] ?? '');
    at += mark ? mark.length : 1;
  }
  return out;
}

function marked(rest: string, depth: number): { one: Inline; length: number } | undefined {
  for (const [pattern, make] of MARKS) {
    const found = pattern.exec(rest);
    if (found) return { one: make(found, depth), length: found[0].length };
  }
  return undefined;
}

const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^\s*([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const DASHES = /^\s*\|?(\s*:?-+:?\s*\|)+(\s*:?-+:?)?\s*$/;
// The cells of a row; a backslash keeps a bar.
const cells = (line: string): Inline[][] =>
  line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => inline(cell.trim().replace(/\\\|/g, '|')));
const starts = (line: string): boolean =>
  line.trim() === '' || /^(```|>)/.test(line) || [HEADING, ITEM, RULE].some((pattern) => pattern.test(line));

export function markdown(text: string, depth = 0): Block[] {
  const lines = text.replace(/\r\n?/g, '\n').split('\n');
  const out: Block[] = [];
  let at = 0;
  const take = (while_: (line: string) => boolean): string[] => {
    const from = at;
    while (at < lines.length && while_(lines[at] ?? '')) at++;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at] ?? '';
    const heading = HEADING.exec(line);
    if (line.trim() === '') at++;
    else if (line.startsWith('```')) {
      at++;
      out.push({ kind: 'code', text: take((one) => !one.startsWith('```')).join('\n') });
      at++;
    } else if (heading) {
      at++;
      out.push({ kind: 'heading', level: heading[1]?.length ?? 1, inner: inline(heading[2] ?? '') });
    } else if (RULE.test(line)) {
      at++;
      out.push({ kind: 'rule' });
    } else if (line.includes('|') && DASHES.test(lines[at + 1] ?? '')) {
      const head = cells(line);
      at += 2;
      // Rows have as many cells as the head.
      const rows = take((one) => one.trim() !== '' && one.includes('|')).map((one) => head.map((_, nth) => cells(one)[nth] ?? []));
      out.push({ kind: 'table', head, rows });
    } else if (line.startsWith('>') && depth < DEEPEST) {
      const inner = take((one) => one.startsWith('>')).map((one) => one.replace(/^> ?/, ''));
      out.push({ kind: 'quote', blocks: markdown(inner.join('\n'), depth + 1) });
    } else if (ITEM.test(line)) {
      out.push(list(take((one) => ITEM.test(one) || (/^\s+\S/.test(one) && !RULE.test(one)))));
    } else {
      at++;
      out.push({ kind: 'paragraph', inner: inline([line, ...take((one) => !starts(one))].join('\n')) });
    }
  }
  return out;
}

// Indented lines continue an item.
function list(lines: string[]): Block {
  const items: string[] = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item) items.push(item[2] ?? '');
    else items[items.length - 1] += `\n${line.trim()}`;
  }
  // Items of a task list begin with a box.
  const boxed = items.map((item) => item.replace(/^\[ \] /, '☐ ').replace(/^\[[xX]\] /, '☑ '));
  return { kind: 'list', ordered: /^\s*\d/.test(lines[0] ?? ''), items: boxed.map((item) => inline(item)) };
}
