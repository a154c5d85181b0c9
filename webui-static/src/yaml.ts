// Small edits of a configuration that preserve the rest of the text, and positions of fields in it. Pure.

const escaped = (key: string): string => key.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

// Sets `key: value` in the top-level mapping `parent`: replaces the key or `other`, which excludes it, or inserts it first.
export function withKey(text: string, parent: string, key: string, value: string, other = key): string {
  const own = `(?:${escaped(key)}|${escaped(other)})\\s*:`;
  const lines = text.replace(/\s+$/, '').split('\n');
  const head = lines.findIndex((line) => new RegExp(`^${escaped(parent)}\\s*:`).test(line));
  if (head < 0) return `${lines.join('\n')}\n${parent}:\n  ${key}: ${value}\n`;
  const line = lines[head] ?? '';
  const flow = line.indexOf('{');
  if (flow >= 0) {
    const known = new RegExp(`(\\{|,)(\\s*)${own}[^,}]*`);
    lines[head] = known.test(line)
      ? line.replace(known, `$1$2${key}: ${value}`)
      : `${line.slice(0, flow + 1)}${key}: ${value}, ${line.slice(flow + 1).trimStart()}`;
    return `${lines.join('\n')}\n`;
  }
  let end = head + 1;
  while (end < lines.length && /^(\s|#|$)/.test(lines[end] ?? '')) end++;
  const indent = /^\s+/.exec(lines.slice(head + 1, end).find((line) => /^\s+[^\s#]/.test(line)) ?? '')?.[0] ?? '  ';
  const at = lines.findIndex((one, n) => n > head && n < end && new RegExp(`^${indent}${own}`).test(one));
  if (at >= 0) lines[at] = `${indent}${key}: ${value}`;
  else lines.splice(head + 1, 0, `${indent}${key}: ${value}`);
  return `${lines.join('\n')}\n`;
}

// The end of the first line with a value in the top-level mapping `parent`; the end of the text without one.
export function endOfFirst(text: string, parent: string): number {
  const found = new RegExp(`^${escaped(parent)}[ \\t]*:(?:[ \\t]*(?:#.*)?\\n(?:[ \\t]*(?:#.*)?\\n)*)?.*`, 'm').exec(text);
  return found ? found.index + found[0].trimEnd().length : text.length;
}

interface Open {
  indent: number; // minimum indent of its children
  path: string;
  items: number; // list items so far
}

// The line (from 1) of the field `path` ("searcher.metric", "bind_mounts[0].host_path"). For a missing
// field the line of its nearest parent, or 0 when that is the whole text. Block style only; fields in
// braces are on the line of the brace.
export function lineOf(text: string, path: string): number {
  const known = new Map<string, number>();
  const open: Open[] = [{ indent: -1, path: '', items: 0 }];
  let literal = Infinity; // lines with more indent belong to a block scalar
  text.split('\n').forEach((line, at) => {
    const content = /^(\s*)(.*?)\s*$/.exec(line);
    let indent = content?.[1]?.length ?? 0;
    let rest = content?.[2] ?? '';
    if (rest === '' || rest.startsWith('#') || indent > literal) return;
    literal = Infinity;
    const enter = (step: string): void => {
      known.set(step, known.get(step) ?? at + 1);
      open.push({ indent, path: step, items: 0 });
    };
    const leave = (item: boolean): Open => {
      // A list may have the indent of its key.
      while (open.length > 1) {
        const top = open[open.length - 1];
        if (!top || top.indent < indent || (item && top.indent === indent && !top.path.endsWith(']'))) break;
        open.pop();
      }
      return open[open.length - 1] ?? { indent: -1, path: '', items: 0 };
    };
    while (/^-(\s|$)/.test(rest)) {
      const list = leave(true);
      enter(`${list.path}[${list.items++}]`);
      const skipped = /^-\s*/.exec(rest)?.[0].length ?? 1;
      indent += skipped;
      rest = rest.slice(skipped);
    }
    const key = /^(?:"([^"]*)"|'([^']*)'|([^\s#{}[\],][^#{}[\],]*?))\s*:(?:\s|$)/.exec(rest);
    if (!key) return;
    const parent = leave(false);
    const name = key[1] ?? key[2] ?? key[3] ?? '';
    enter(parent.path === '' ? name : `${parent.path}.${name}`);
    if (/:\s*[|>][-+0-9]*\s*(#.*)?$/.test(rest)) literal = indent;
  });
  for (let rest = path; rest !== ''; rest = rest.replace(/(^|\.)[^.[]*$|\[\d+\]$/, '')) {
    const line = known.get(rest);
    if (line !== undefined) return line;
  }
  return 0;
}
