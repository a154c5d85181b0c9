// Splits an explanation of why an experiment waits into its answer and the details. Pure.

export interface Outline {
  answer: string[]; // what waits, why, when it starts, what would start it now, pilots
  details: string[]; // what holds the slots, and every end that would free some
}

const isDetail = (line: string): boolean => line.startsWith('  ') || /^starts when (trial|command) .* ends$/.test(line);

// The master writes one fact a line, those about single holders of slots indented.
export function outline(text: string): Outline {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return { answer: lines.filter((line) => !isDetail(line)), details: lines.filter(isDetail).map((line) => line.trim()) };
}
