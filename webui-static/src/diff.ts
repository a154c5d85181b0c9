// Line-based diff of two texts (Myers, An O(ND) Difference Algorithm, 1986). Pure.

interface DiffLine {
  kind: 'same' | 'left' | 'right'; // left: only in the left text
  text: string;
  left: number; // line number from 1; 0: not in this text
  right: number;
}

// Maximum edit distance. Beyond it the middle part counts as replaced, which bounds the time for large diffs.
const MAX_STEPS = 1500;

type Step = readonly [fromLeft: number, fromRight: number];

// The common lines as pairs of indices, in order.
function common(a: readonly string[], b: readonly string[]): Step[] {
  const reach = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  const most = Math.min(a.length + b.length, MAX_STEPS);
  for (let d = 0; d <= most; d++) {
    trace.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(a.length, b.length, trace);
    }
  }
  return [];
}

function walkBack(left: number, right: number, trace: readonly Map<number, number>[]): Step[] {
  const pairs: Step[] = [];
  let [x, y] = [left, right];
  for (let d = trace.length - 1; d >= 0; d--) {
    const reach = trace[d] as Map<number, number>;
    const k = x - y;
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const before = down ? k + 1 : k - 1;
    const fromX = reach.get(before) ?? 0;
    const fromY = fromX - before;
    while (x > fromX && y > fromY && x > 0 && y > 0) pairs.push([--x, --y]);
    if (d > 0) [x, y] = [fromX, fromY];
  }
  return pairs.reverse();
}

const toLines = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));

// All lines of both texts; removed lines precede added ones.
export function diff(left: string, right: string): DiffLine[] {
  const [a, b] = [toLines(left), toLines(right)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = common(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const pairs: Step[] = [
    ...Array.from({ length: start }, (_, i): Step => [i, i]),
    ...middle.map(([x, y]): Step => [x + start, y + start]),
    ...Array.from({ length: end }, (_, i): Step => [a.length - end + i, b.length - end + i]),
  ];
  const out: DiffLine[] = [];
  let [x, y] = [0, 0];
  for (const [nextX, nextY] of [...pairs, [a.length, b.length] as Step]) {
    for (; x < nextX; x++) out.push({ kind: 'left', text: a[x] ?? '', left: x + 1, right: 0 });
    for (; y < nextY; y++) out.push({ kind: 'right', text: b[y] ?? '', left: 0, right: y + 1 });
    if (x < a.length && y < b.length) out.push({ kind: 'same', text: a[x] ?? '', left: ++x, right: ++y });
  }
  return out;
}

// Keeps the lines within `around` lines of a difference; undefined stands for omitted lines.
export function near(lines: readonly DiffLine[], around = 3): (DiffLine | undefined)[] {
  const keep = new Uint8Array(lines.length);
  lines.forEach((line, at) => {
    if (line.kind !== 'same') keep.fill(1, Math.max(0, at - around), at + around + 1);
  });
  const out: (DiffLine | undefined)[] = [];
  lines.forEach((line, at) => {
    if (keep[at]) out.push(line);
    else if (at === 0 || keep[at - 1]) out.push(undefined);
  });
  return out;
}

interface FileChange {
  path: string;
  kind: 'same' | 'changed' | 'left' | 'right';
}

// Compares two trees of files. Changed files come first, then sorted by path.
export function fileChanges(left: ReadonlyMap<string, string>, right: ReadonlyMap<string, string>): FileChange[] {
  const paths = [...new Set([...left.keys(), ...right.keys()])].sort();
  const all = paths.map((path): FileChange => {
    const [a, b] = [left.get(path), right.get(path)];
    return { path, kind: a === undefined ? 'right' : b === undefined ? 'left' : a === b ? 'same' : 'changed' };
  });
  return [...all.filter((one) => one.kind !== 'same'), ...all.filter((one) => one.kind === 'same')];
}
