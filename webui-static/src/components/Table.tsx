// A plain table: frame and head. The page provides the rows.
import type { ComponentChildren } from 'preact';

// A head that starts with "#" is a numeric column.
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
