// Reads the reason of a failed run: "exit code 1", then the last lines of its output. Pure.

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

// The lines above the error, or all lines if others follow it; "" for a reason of one line.
export function errorContext(reason: string): string {
  const [text, error] = [reason.trimEnd(), errorLine(reason)];
  return text.endsWith(`\n${error}`) ? text.slice(0, -error.length).trimEnd() : text.includes('\n') ? text : '';
}
