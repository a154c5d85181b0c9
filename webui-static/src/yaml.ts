// Owns small changes to a configuration's text that keep the rest as somebody wrote it. Pure.

const escaped = (key: string): string => key.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

// `text` with `key: value` in the outermost mapping `parent`: replaced where it stands, else put first.
export function withKey(text: string, parent: string, key: string, value: string): string {
  const lines = text.replace(/\s+$/, '').split('\n');
  const head = lines.findIndex((line) => new RegExp(`^${escaped(parent)}\\s*:`).test(line));
  if (head < 0) return `${lines.join('\n')}\n${parent}:\n  ${key}: ${value}\n`;
  const own = lines[head] ?? '';
  const flow = own.indexOf('{');
  if (flow >= 0) {
    const known = new RegExp(`(\\{|,)(\\s*)${escaped(key)}\\s*:[^,}]*`);
    lines[head] = known.test(own)
      ? own.replace(known, `$1$2${key}: ${value}`)
      : `${own.slice(0, flow + 1)}${key}: ${value}, ${own.slice(flow + 1).trimStart()}`;
    return `${lines.join('\n')}\n`;
  }
  let end = head + 1;
  while (end < lines.length && /^(\s|#|$)/.test(lines[end] ?? '')) end++;
  const indent = /^\s+/.exec(lines.slice(head + 1, end).find((line) => /^\s+[^\s#]/.test(line)) ?? '')?.[0] ?? '  ';
  const at = lines.findIndex(
    (line, n) => n > head && n < end && new RegExp(`^${indent}${escaped(key)}\\s*:`).test(line),
  );
  if (at >= 0) lines[at] = `${indent}${key}: ${value}`;
  else lines.splice(head + 1, 0, `${indent}${key}: ${value}`);
  return `${lines.join('\n')}\n`;
}
