// Reads the reason of a failed run: "exit code 1", then the last lines of its output. Pure.
import type { Experiment, Trial } from './wire';

// The trial that tells why an experiment failed: the first with a reason.
export const failedTrial = (one: Pick<Experiment, 'state'>, trials: readonly Trial[]): Trial | undefined =>
  one.state === 'STATE_ERROR' ? trials.find(({ state, exitReason }) => state === 'STATE_ERROR' && exitReason !== '') : undefined;

// The line that names the error: the last exception of Python, the first error of a compiler, the text of a C++
// exception; else the last line with a letter, which leaves out the carets below a Python line.
export function errorLine(reason: string): string {
  const lines = reason.split('\n').map((line) => line.trim());
  // Node prints its version last.
  const output = lines.slice(1).filter((line) => !/^Node\.js v\d/.test(line)).reverse();
  return (
    output.find((line) => /^([A-Za-z_][\w.]*)?(Error|Exception|Interrupt)\b/.test(line)) ??
    lines.find((line) => /\berror:/i.test(line)) ??
    output.find((line) => /\bwhat\(\):/.test(line)) ??
    output.find((line) => /\p{L}/u.test(line)) ??
    lines[0] ??
    ''
  );
}

// How the run ended, "out of memory: exit code 1"; "" where that is the error.
export function endText(reason: string): string {
  const first = (reason.split('\n')[0] ?? '').trim();
  return first === errorLine(reason) ? '' : first;
}

// The lines of the output above the error, or all lines if others follow it; "" without output.
export function errorContext(reason: string): string {
  const [output, error] = [reason.trimEnd().split('\n').slice(1).join('\n'), errorLine(reason)];
  return output === error ? '' : output.endsWith(`\n${error}`) ? output.slice(0, -error.length).trimEnd() : output;
}

// Whether a line of a log names an error, as an exception of Python does.
export const namesError = (line: string): boolean => /^([A-Za-z_][\w.]*)?(Error|Exception|Interrupt)(:|$)/.test(line);
