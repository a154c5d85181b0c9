// A configuration as YAML text, and the parts of YAML lines to color. Pure.
import type { JsonValue } from './wire';

// Texts that YAML would read as something else, or that contain signs of YAML, stand in quotes.
const PLAIN = /^[A-Za-z_/][\w./+@-]*( [\w./+@-]+)*$/;
const READ_OTHERWISE = /^(true|false|null|yes|no|on|off|~)$/i;
const scalar = (value: JsonValue): string =>
  typeof value === 'string' && PLAIN.test(value) && !READ_OTHERWISE.test(value) ? value : JSON.stringify(value);
const isLeaf = (value: JsonValue): boolean =>
  value === null || typeof value !== 'object' || (Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0);

// Block style with two spaces; keys in their order.
export function toYaml(value: JsonValue, indent = 0): string {
  const pad = ' '.repeat(indent);
  if (isLeaf(value)) return `${pad}${scalar(value)}\n`;
  if (Array.isArray(value))
    return value.map((one) => (isLeaf(one) ? `${pad}- ${scalar(one)}\n` : `${pad}- ${toYaml(one, indent + 2).trimStart()}`)).join('');
  return Object.entries(value as Record<string, JsonValue>)
    .map(([key, one]) => `${pad}${scalar(key)}:${isLeaf(one) ? ` ${scalar(one)}\n` : `\n${toYaml(one, indent + 2)}`}`)
    .join('');
}

export interface Part {
  kind: 'key' | 'string' | 'number' | 'word' | 'comment' | 'plain';
  text: string;
}

const PARTS: readonly [Part['kind'], RegExp][] = [
  ['key', /^(?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s#'"{}[\],:-][^#'"{}[\],:]*)(?=:(?:\s|$))/],
  ['string', /^(?:"(?:\\.|[^"\\])*"|'[^']*')/],
  ['number', /^-?(?:\d[\d_]*)(?:\.\d+)?(?:e[+-]?\d+)?(?=[\s,\]}]|$)/i],
  ['word', /^(?:true|false|null|~)(?=[\s,\]}]|$)/],
  ['plain', /^(?:[\s{}[\],:]+|-(?=\s|$)|[^\s{}[\],]+)/],
];

// A line in parts; their texts together are the line.
export function parts(line: string): Part[] {
  const out: Part[] = [];
  for (let at = 0; at < line.length; ) {
    const rest = line.slice(at);
    const before = at === 0 ? ' ' : (line[at - 1] ?? ' ');
    const own = PARTS.map(([kind, pattern]): Part => ({ kind, text: pattern.exec(rest)?.[0] ?? '' })).find(({ text }) => text !== '');
    const found: Part =
      rest.startsWith('#') && /\s/.test(before) ? { kind: 'comment', text: rest } : (own ?? { kind: 'plain', text: rest[0] ?? '' });
    out.push(found);
    at += found.text.length;
  }
  return out;
}
