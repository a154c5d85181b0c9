// Owns comparing the configuration text and the code of two of the things that are compared.
import { useQuery } from '../address';
import { asTexts, codeOf } from '../code';
import { DiffView } from '../components/DiffView';
import { ErrorNote } from '../components/notes';
import { fileChanges, type FileChange } from '../diff';
import { useLive } from '../live';
import type { Subject } from './subjects';

export function useSides(all: Subject[]): { left: Subject; right: Subject } {
  const { query } = useQuery();
  const pick = (text: string | undefined, other: number): Subject => all[Number(text)] ?? (all[other] as Subject);
  return { left: pick(query.left ?? '0', 0), right: pick(query.right ?? '1', Math.min(1, all.length - 1)) };
}

export function Sides({ all }: { all: Subject[] }) {
  const { setQuery } = useQuery();
  const { left, right } = useSides(all);
  const choice = (side: 'left' | 'right', chosen: Subject) => (
    <label class="check">
      {side === 'left' ? 'Left' : 'Right'}{' '}
      <select value={all.indexOf(chosen)} onChange={(e) => setQuery({ [side]: e.currentTarget.value })}>
        {all.map((one, at) => (
          <option key={one.name} value={at}>
            {one.name}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <div class="controls" role="group" aria-label="Which two are compared">
      {choice('left', left)}
      {choice('right', right)}
    </div>
  );
}

const kWords: Record<FileChange['kind'], string> = {
  same: 'the same',
  changed: 'changed',
  left: 'only left',
  right: 'only right',
};

export function CodeCompare({ all }: { all: Subject[] }) {
  const { query, setQuery } = useQuery();
  const { left, right } = useSides(all);
  const ids = [left.experiment.id, right.experiment.id] as const;
  const live = useLive(
    `codes ${ids.join()}`,
    async (signal) => Promise.all(ids.map(async (id) => asTexts(await codeOf(id, signal)))),
    () => false,
  );
  const [a, b] = live.data ?? [];
  if (!a || !b) {
    return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Loading…</p>;
  }
  const files = fileChanges(a, b);
  const file = files.find((one) => one.path === query.file) ?? files[0];
  if (!file) return <p class="quiet">Both were submitted without code.</p>;
  return (
    <div class="code-page">
      <nav aria-label="Files" class="files">
        <ul class="plain-list">
          {files.map((one) => (
            <li key={one.path}>
              <button
                type="button"
                class="link"
                aria-current={one === file ? 'true' : undefined}
                onClick={() => setQuery({ file: one.path })}
              >
                {one.path}
              </button>{' '}
              <span class={one.kind === 'same' ? 'quiet' : 'mark'}>{kWords[one.kind]}</span>
            </li>
          ))}
        </ul>
      </nav>
      <DiffView
        key={`${file.path} ${ids.join()}`}
        left={a.get(file.path) ?? ''}
        right={b.get(file.path) ?? ''}
        title={file.path}
      />
    </div>
  );
}
