// Turns an explanation of why an experiment waits into a headline, a paragraph and details. Pure. The facts are the master's.

interface Outline {
  headline: string; // the request and its place in the queue
  answer: string; // why it waits, when it starts, what would start it now, pilots; one paragraph
  details: string[]; // what holds the slots
}

// Names of trials in "starts when … ends"; more of them are only counted.
const MAX_ENDS = 4;

const ENDS = /^starts when ((?:trial|command) .*) ends$/;
const KEPT = /^slots are kept for it(.*)$/;

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');

// "a", "a or b", "a, b or c".
const either = (all: readonly string[]): string => (all.length < 2 ? (all[0] ?? '') : `${all.slice(0, -1).join(', ')} or ${all[all.length - 1]}`);

// When it starts: after one of the ends. And by which of the changes that the master suggests it would start now.
function start(facts: readonly string[]): string[] {
  const ends = facts.flatMap((line) => ENDS.exec(line)?.[1] ?? []);
  const others = facts.filter((line) => line.startsWith('starts ') && !ENDS.test(line)).map((line) => line.slice('starts '.length));
  const changes = others.filter((line) => line.startsWith('now ')).map((line) => line.slice('now '.length));
  const named = ends.length > MAX_ENDS ? `one of ${ends.length} running tasks` : either(ends);
  const ways = [...(ends.length > 0 ? [`when ${named} ends`] : []), ...others.filter((line) => !line.startsWith('now '))];
  return [
    ...(ways.length > 0 ? [`It starts ${ways.join(', or ')}.`] : []),
    ...(changes.length > 0 ? [`It would start now ${changes.join(', or ')}.`] : []),
  ];
}

// The master writes one fact a line: the first about the request, those about single holders of slots indented.
export function outline(text: string): Outline {
  const [headline = '', ...facts] = text.split('\n').filter((line) => line.trim() !== '');
  const holders = facts.filter((line) => line.startsWith('  '));
  const [reason = '', ...others] = facts.filter((line) => !line.startsWith('  '));
  const kept = others.map((line) => KEPT.exec(line)?.[1]).find((place) => place !== undefined);
  const why = kept === undefined ? reason : `${reason}; the next free ones${kept} are kept for it`;
  const rest = others.filter((line) => !line.startsWith('starts ') && !KEPT.test(line)).map(sentence);
  return {
    headline: sentence(headline),
    answer: [...(reason === '' ? [] : [sentence(why)]), ...start(others), ...rest].join(' '),
    details: holders.map((line) => sentence(line.trim())),
  };
}
