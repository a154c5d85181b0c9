// A list of files beside the content of the selected one. The selection is part of the address.
import type { ComponentChildren } from 'preact';
import { useQuery } from '../address';

interface Props<T> {
  files: readonly T[];
  note?: (file: T) => ComponentChildren; // shown beside the name
  children: (file: T) => ComponentChildren; // content of the selected file, by default the first
}

export function Files<T extends { path: string }>({ files, note, children }: Props<T>) {
  const { query, setQuery } = useQuery();
  const chosen = files.find((one) => one.path === query.file) ?? files[0];
  return (
    <div class="code-page">
      <nav aria-label="Files" class="files">
        <ul class="plain-list">
          {files.map((one) => (
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
      </nav>
      {chosen && children(chosen)}
    </div>
  );
}
