// Owns a plain table: its frame, its heads. Rows are the page's.
import type { ComponentChildren } from 'preact';

// A head that starts with "#" stands over numbers.
export function Table({ label, heads, children }: { label: string; heads: readonly string[]; children: ComponentChildren }) {
  return (
    <div class="table-frame" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th scope="col" key={head} class={head.startsWith('#') ? 'number' : ''}>
                {head.replace(/^#/, '')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
