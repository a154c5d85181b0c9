// The DOM rows of a log. Lines are inserted as text, never as markup. Rows are created without Preact,
// because a log grows by one line at a time and old rows never change.
import { pieces } from '../ansi';
import { namesError } from '../failure';
import { clock, dateTime, dayTime } from '../format';
import type { LogEntry } from '../wire';

// Maximum number of rows; rows at the opposite end of an insertion are removed.
const MAX_LINES = 20000;
// Rows per block. The browser lays out only visible full blocks, and old blocks are removed as a whole.
const BLOCK = 200;

// The address of this page with a line selected. `keys`: further ones, for a log that the address does not name.
export function lineAddress(id: string, keys: Record<string, string> = {}): string {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries({ ...keys, line: id })) query.set(key, value);
  return `${location.pathname}?${query.toString()}`;
}

// A text as nodes, with its matches in `mark` elements.
function marked(text: string, match: RegExp | undefined): (string | HTMLElement)[] {
  if (!match) return [text];
  const out: (string | HTMLElement)[] = [];
  let from = 0;
  for (const found of text.matchAll(match)) {
    if (found[0] === '') continue;
    const mark = document.createElement('mark');
    mark.textContent = found[0];
    out.push(text.slice(from, found.index), mark);
    from = found.index + found[0].length;
  }
  return [...out, text.slice(from)];
}

interface RowOptions {
  chosen?: string | undefined; // id of a marked line
  match?: RegExp | undefined; // marked in the lines; global
  hasLevels?: boolean; // with a column of levels
  hasDays?: boolean; // with the day before the time
  keys?: Record<string, string> | undefined; // of the address of a line
}

function row(entry: LogEntry, { chosen, match, hasLevels, hasDays, keys }: RowOptions): HTMLElement {
  const line = document.createElement('div');
  const level = entry.level.replace(/^LOG_LEVEL_/, '').toLowerCase();
  line.className = `log-line log-${level}`;
  line.dataset.id = entry.id;
  line.dataset.time = entry.timestamp ?? '';
  line.classList.toggle('log-names-error', namesError(entry.log));
  if (entry.id === chosen) line.classList.add('log-chosen');
  const time = document.createElement('a');
  time.className = 'log-time';
  time.href = lineAddress(entry.id, keys);
  const day = hasDays && entry.timestamp ? dayTime(Date.parse(entry.timestamp)).slice(0, -'hh:mm'.length) : '';
  time.textContent = day.padStart(hasDays ? 'dd Mmm '.length : 0) + clock(entry.timestamp);
  time.title = `${dateTime(entry.timestamp)}: link to this line`;
  line.append(time);
  if (hasLevels) {
    const name = document.createElement('span');
    name.className = 'log-level';
    name.textContent = level;
    line.append(name);
  }
  if (entry.rankId > 0) {
    const rank = document.createElement('span');
    rank.className = 'log-rank';
    rank.textContent = `[rank=${entry.rankId}]`;
    line.append(rank);
  }
  const text = document.createElement('span');
  text.className = 'log-text';
  for (const piece of pieces(entry.log)) {
    const part = document.createElement('span');
    part.append(...marked(piece.text, match));
    if (piece.color !== undefined) part.classList.add(`ansi-${piece.color}`);
    if (piece.bold) part.classList.add('ansi-bold');
    if (piece.dim) part.classList.add('ansi-dim');
    text.append(part);
  }
  line.append(text);
  return line;
}

export class Rows {
  count = 0;

  constructor(
    private readonly host: HTMLElement,
    private readonly options: RowOptions,
  ) {}

  get newest(): string {
    const last = this.host.lastElementChild?.lastElementChild as HTMLElement | null | undefined;
    return last?.dataset.id ?? '';
  }

  // Id and time (RFC 3339) of the oldest row.
  get oldest(): { id: string; time: string } | undefined {
    const first = this.host.firstElementChild?.firstElementChild as HTMLElement | null | undefined;
    return first ? { id: first.dataset.id ?? '', time: first.dataset.time ?? '' } : undefined;
  }

  // Returns true when older rows were removed.
  append(entries: LogEntry[]): boolean {
    for (const entry of entries) {
      let block = this.host.lastElementChild;
      if (!block || block.childElementCount >= BLOCK) {
        block?.classList.add('log-full');
        block = document.createElement('div');
        this.host.append(block);
      }
      block.append(row(entry, this.options));
      this.count++;
    }
    let cut = false;
    while (this.count > MAX_LINES && this.host.firstElementChild) {
      this.count -= this.host.firstElementChild.childElementCount;
      this.host.firstElementChild.remove();
      cut = true;
    }
    return cut;
  }

  // Returns true when newer rows were removed.
  prepend(entries: LogEntry[]): boolean {
    for (let end = entries.length; end > 0; end -= BLOCK) {
      const block = document.createElement('div');
      block.classList.add('log-full');
      block.append(...entries.slice(Math.max(0, end - BLOCK), end).map((entry) => row(entry, this.options)));
      this.host.prepend(block);
    }
    this.count += entries.length;
    let cut = false;
    while (this.count > MAX_LINES && this.host.lastElementChild) {
      this.count -= this.host.lastElementChild.childElementCount;
      this.host.lastElementChild.remove();
      cut = true;
    }
    return cut;
  }
}
