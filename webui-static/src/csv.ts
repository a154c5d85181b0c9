// Files for download; CSV (RFC 4180).

// An apostrophe keeps spreadsheets from evaluating user text as a formula. Numbers stay numbers.
function cell(value: string | number): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export const csv = (rows: readonly (readonly (string | number)[])[]): string =>
  rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');

export function save(name: string, content: Blob | string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(typeof content === 'string' ? new Blob([content], { type: 'text/csv' }) : content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
