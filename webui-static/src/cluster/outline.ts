// Turns an explanation of why an experiment waits into a headline, sentences of the answer, and details. Pure.

export interface Outline {
  headline: string; // the number of slots and the place in the queue
  answer: string[]; // why it waits, when it starts, what would start it now, pilots
  details: string[]; // what holds the slots, and every end that would free some
}

const isDetail = (line: string): boolean => line.startsWith('  ') || /^starts when (trial|command) .* ends$/.test(line);

const PLACES = ['first', 'second', 'third'];
const WAITS = /^.* (waits for \d+ slots?(?: on one agent)?): number (\d+) of (\d+) in the queue$/;

// The master's phrases as sentences.
const PHRASES: readonly [RegExp, string][] = [
  [/^starts now at priority (\d+) \(preempts (.*)\)$/, 'at priority $1 it starts now and pauses $2'],
  [/^starts now at priority (\d+)$/, 'at priority $1 it starts now'],
  [/^estimate: (in about .*?), if runs take (.*?) \((.*)\)$/, 'it starts $1 if runs take $2, the $3 runs'],
  [/^starts /, 'it starts '],
];

// A line as a sentence.
function sentence(line: string): string {
  const [pattern, words] = PHRASES.find(([one]) => one.test(line)) ?? [/^/, ''];
  const text = line.replace(pattern, words);
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');
}

function headlineOf(line: string): string | undefined {
  const [, waits = '', place = '', all = ''] = WAITS.exec(line) ?? [];
  if (waits === '') return undefined;
  const where = all === '1' ? 'alone' : `${PLACES[Number(place) - 1] ?? `number ${place}`} of ${all}`;
  return `W${waits.slice(1)}, ${where} in the queue`;
}

// The master writes one fact a line: the first about the request, those about single holders of slots indented.
export function outline(text: string): Outline {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const headline = headlineOf(lines[0] ?? '');
  const others = headline === undefined ? lines : lines.slice(1);
  return {
    headline: headline ?? '',
    answer: others.filter((line) => !isDetail(line)).map(sentence),
    details: others.filter(isDetail).map((line) => sentence(line.trim())),
  };
}
