// Comparison of the configuration text and the code of two subjects.
import { useQuery } from '../address';
import { asTexts, codeOf } from '../code';
import { DiffView } from '../components/DiffView';
import { Files } from '../components/Files';
import { Loaded } from '../components/Loaded';
import { fileChanges } from '../diff';
import { counted } from '../format';
import { useLive } from '../live';
import type { Subject } from './subjects';

// The baseline, and the one that the address compares with it.
export function useSides(all: Subject[]): { left: Subject; right: Subject } {
  const { query } = useQuery();
  const left = all[0] as Subject;
  return { left, right: all[Number(query.right ?? 1)] ?? all[1] ?? left };
}

// The choice of the one that is compared with the baseline; nothing if there is only one.
export function OtherSide({ all }: { all: Subject[] }) {
  const { setQuery } = useQuery();
  const { right } = useSides(all);
  if (all.length < 3) return null;
  return (
    <label class="check">
      Compared with{' '}
      <select value={all.indexOf(right)} onChange={(e) => setQuery({ right: e.currentTarget.value })}>
        {all.slice(1).map((one, at) => (
          <option key={one.name} value={at + 1}>
            {one.name}
          </option>
        ))}
      </select>
    </label>
  );
}

// The signs of lines and whose they are.
export function Signs({ all }: { all: Subject[] }) {
  const { left, right } = useSides(all);
  if (all.length < 2) return null;
  return (
    <span class="quiet">
      − {left.name} · + {right.name}
    </span>
  );
}

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
        const same = files.filter(({ kind }) => kind === 'same');
        const words = { same: 'the same', changed: 'changed', left: `only in ${left.name}`, right: `only in ${right.name}` };
        return (
          <Files
            files={files.filter(({ kind }) => kind !== 'same')}
            folded={{ files: same, label: `${counted(same.length, 'file')} ${same.length === 1 ? 'is' : 'are'} the same` }}
            note={({ kind }) => kind !== 'same' && <span class="mark">{words[kind]}</span>}
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
