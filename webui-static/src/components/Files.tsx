// A list of files beside the content of the selected one. The selection is part of the address.
import type { ComponentChildren } from 'preact';
import { useQuery } from '../address';

interface Props<T> {
  files: readonly T[];
  note?: (file: T) => ComponentChildren; // shown beside the name
  folded?: { files: readonly T[]; label: string }; // further files, in a folded list
  first?: T | undefined; // shown if the address names none, by default that at the top
  children: (file: T) => ComponentChildren; // content of the selected file
}

export function Files<T extends { path: string }>({ files, note, folded, first, children }: Props<T>) {
  const { query, setQuery } = useQuery();
  const all = [...files, ...(folded?.files ?? [])];
  const chosen = all.find((one) => one.path === query.file) ?? first ?? all[0];
  const list = (some: readonly T[]) => (
    <ul class="plain-list">
      {some.map((one) => (
        <li key={one.path}>
          <button
            type="button"
            class="link"
            aria-current={one === chosen ? 'true' : undefined}
            onClick={() => setQuery({ file: one.path })}
          >
            {one.path}
          </button>{' '}
          {note?.(one)}
        </li>
      ))}
    </ul>
  );
  return (
    <div class="code-page">
      <nav aria-label="Files" class="files">
        {list(files)}
        {folded && folded.files.length > 0 && (
          <details>
            <summary>{folded.label}</summary>
            {list(folded.files)}
          </details>
        )}
      </nav>
      {chosen && children(chosen)}
    </div>
  );
}
