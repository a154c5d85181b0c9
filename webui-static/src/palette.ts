// Entries of the command palette and their order for a text. Pure.

export interface Entry {
  kind: string; // "Page", "Experiment", "Trial", "Action"
  title: string;
  note?: string; // beside the title
  to?: string; // address to open
  run?: () => void; // otherwise what to do
}

// How well an entry fits the words of a text: smaller is better, undefined if a word is missing. Words at the start
// of the title count most, then those at the start of another word.
export function fit(text: string, entry: Pick<Entry, 'title' | 'kind'>): number | undefined {
  const title = `${entry.title} ${entry.kind}`.toLowerCase();
  let total = 0;
  for (const word of text.toLowerCase().split(/\s+/).filter((one) => one !== '')) {
    const at = title.indexOf(word);
    if (at < 0) return undefined;
    total += at === 0 ? 0 : /[\s_\-/.]/.test(title[at - 1] ?? '') ? 1 : 2;
  }
  return total;
}

// The entries that fit, best first; entries that fit equally keep their order.
export function found(text: string, all: readonly Entry[]): Entry[] {
  return all
    .flatMap((entry) => {
      const rank = fit(text, entry);
      return rank === undefined ? [] : [{ entry, rank }];
    })
    .sort((a, b) => a.rank - b.rank)
    .map(({ entry }) => entry);
}

// The identity of an entry.
export const keyOf = ({ kind, to, title }: Entry): string => `${kind} ${to ?? title}`;

// The entries, each once: of equal ones the last, which has a name, in the place of the first.
export const distinct = (all: readonly Entry[]): Entry[] => [...new Map(all.map((entry) => [keyOf(entry), entry])).values()];

// The entries of the master for a text; until its answer arrives, those of the answer before that fit.
export const answered = (text: string, answer: { text: string; entries: Entry[] }): Entry[] =>
  answer.text === text ? answer.entries : found(text, answer.entries);

// The object that a text names by its number: "12" is an experiment or a trial, "trial 12" or "t12" a trial.
export function numbered(text: string): { experiment?: number; trial?: number } {
  const match = /^(?:(experiment|exp|e|trial|t)?\s*#?)(\d{1,9})$/i.exec(text.trim());
  if (!match || Number(match[2]) === 0) return {};
  const [kind, id] = [(match[1] ?? '').toLowerCase(), Number(match[2])];
  if (kind.startsWith('t')) return { trial: id };
  return kind === '' ? { experiment: id, trial: id } : { experiment: id };
}
