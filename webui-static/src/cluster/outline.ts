// Splits an explanation of why an experiment waits into headline, answer and details. Pure. The words are the master's.

export interface Outline {
  headline: string; // the request and its place in the queue
  answer: string[]; // why it waits, when it starts, what would start it now, pilots
  details: string[]; // what holds the slots, and every end that would free some
}

const isDetail = (line: string): boolean => line.startsWith('  ') || /^starts when (trial|command) .* ends$/.test(line);

const sentence = (line: string): string => line.charAt(0).toUpperCase() + line.slice(1) + (/[.!?]$/.test(line) ? '' : '.');

// The master writes one fact a line: the first about the request, those about single holders of slots indented.
export function outline(text: string): Outline {
  const [headline = '', ...facts] = text.split('\n').filter((line) => line.trim() !== '');
  return {
    headline: sentence(headline),
    answer: facts.filter((line) => !isDetail(line)).map(sentence),
    details: facts.filter(isDetail).map((line) => sentence(line.trim())),
  };
}
