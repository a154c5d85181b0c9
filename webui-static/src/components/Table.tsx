// A plain table: frame and head. The page provides the rows. On a phone each row is a card (styles/cards.css): its
// cells are below each other, each after the text of its head.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

const title = (head: string): string => head.replace(/^#/, '');

// Values that a card leaves out, by head.
const USUAL: Readonly<Record<string, string>> = { Pool: 'default', Slots: '0', Duration: '0s' };

// Names each cell of a table body by its head, for the style of phones.
export function useCards(heads: readonly string[]): { current: HTMLTableSectionElement | null } {
  const body = useRef<HTMLTableSectionElement>(null);
  useLayoutEffect(() => {
    for (const row of body.current?.rows ?? [])
      for (const cell of row.cells) {
        const head = cell.colSpan > 1 ? '' : title(heads[cell.cellIndex] ?? '');
        if (cell.dataset.head !== head) cell.dataset.head = head;
        const isUsual = USUAL[head] !== undefined && cell.textContent === USUAL[head];
        if ('usual' in cell.dataset !== isUsual) cell.toggleAttribute('data-usual', isUsual);
      }
  });
  return body;
}

// A head that starts with "#" is a numeric column.
export function Table({ label, heads, children }: { label: string; heads: readonly string[]; children: ComponentChildren }) {
  const body = useCards(heads);
  return (
    <div class="table-frame" role="region" aria-label={label} tabIndex={0}>
      <table class="cards">
        <thead>
          <tr>
            {heads.map((head) => (
              <th scope="col" key={head} class={head.startsWith('#') ? 'number' : ''}>
                {title(head)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>{children}</tbody>
      </table>
    </div>
  );
}
