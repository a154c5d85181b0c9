// Comparison of the configuration text and the code of two subjects.
import { useQuery } from '../address';
import { asTexts, codeOf } from '../code';
import { DiffView } from '../components/DiffView';
import { Files } from '../components/Files';
import { Loaded } from '../components/Loaded';
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

const WORDS: Record<FileChange['kind'], string> = {
  same: 'the same',
  changed: 'changed',
  left: 'only left',
  right: 'only right',
};

export function CodeCompare({ all }: { all: Subject[] }) {
  const { left, right } = useSides(all);
  const ids = [left.experiment.id, right.experiment.id] as const;
  const live = useLive(
    `codes ${ids.join()}`,
    async (signal) => {
      const [a, b] = await Promise.all([codeOf(ids[0], signal), codeOf(ids[1], signal)]);
      return [asTexts(a), asTexts(b)] as const;
    },
    () => false,
  );
  return (
    <Loaded live={live}>
      {([a, b]) => {
        const files = fileChanges(a, b);
        if (files.length === 0) return <p class="quiet">Both were submitted without code.</p>;
        return (
          <Files
            files={files}
            note={(one) => <span class={one.kind === 'same' ? 'quiet' : 'mark'}>{WORDS[one.kind]}</span>}
          >
            {({ path }) => (
              <DiffView key={`${path} ${ids.join()}`} left={a.get(path) ?? ''} right={b.get(path) ?? ''} title={path} />
            )}
          </Files>
        );
      }}
    </Loaded>
  );
}
