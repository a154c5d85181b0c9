// The Compare panel of the workbench: values, configurations and code of the drawn runs side by side.
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useQuery } from '../address';
import { RUNS_BEAT_MS } from '../beat';
import { useNow } from '../components/clock';
import { DiffView } from '../components/DiffView';
import { ErrorNote } from '../components/notes';
import { isEnded, sharedStart } from '../format';
import { useLive } from '../live';
import type { Run } from '../workbench/runs';
import { readView } from '../workbench/view';
import type { Objective } from '../workbench/Workbench';
import { CodeCompare, OtherSide, Signs, useSides } from './CodeCompare';
import { CompareTable } from './CompareTable';
import { asChosen, steadilyRanked } from './order';
import { configSections, sections, leaderText } from './rows';
import { idOf, loadSubjects, MAX_COMPARED, withRow, type Subject } from './subjects';

const PARTS = ['Values', 'Configuration', 'Code'] as const;

interface ValuesProps {
  all: Subject[];
  smallerIsBetter: boolean;
  format: Props['format'];
  tools: ComponentChildren;
}

function Values({ all, smallerIsBetter, format, tools }: ValuesProps) {
  const now = useNow(all.some((one) => !isEnded(one.experiment.state)));
  const text = leaderText(all, smallerIsBetter, format);
  return (
    <>
      {text !== '' && <p class="leader">{text}</p>}
      <CompareTable label="Values" all={all} sections={sections(all, smallerIsBetter, now, format)} tools={tools} />
    </>
  );
}

function Configuration({ all, tools }: { all: Subject[]; tools: ComponentChildren }) {
  const { left, right } = useSides(all);
  return (
    <>
      <CompareTable label="Configurations" all={all} sections={configSections(all.map((one) => one.experiment.config))} tools={tools} />
      {all.length > 1 && (
        <details class="submitted">
          <summary>Submitted text, line by line</summary>
          <OtherSide all={all} />
          <DiffView left={left.experiment.originalConfig} right={right.experiment.originalConfig} title={`${left.name} → ${right.name}`} />
        </details>
      )}
    </>
  );
}

// Longer names lose the beginning that all share: the choice of the baseline is narrow.
const LONG_NAME = 16;

// "#6 …lr=0.003 gelu", or "trial 6".
function baselineNames(all: readonly Subject[]): string[] {
  const isNamed = ({ path, experiment }: Subject): boolean => path === 'experiment' && experiment.name !== '';
  const names = all.map((one) => (isNamed(one) ? one.experiment.name : one.name));
  const start = names.some(({ length }) => length > LONG_NAME) ? sharedStart(names) : '';
  const short = (name: string): string => (start === '' ? name : `…${name.slice(start.length)}`);
  return all.map((one, at) => `${isNamed(one) ? `#${one.experiment.id} ` : ''}${short(names[at] ?? '')}`);
}

// The choice of what is compared, and of the baseline.
function Tools({ part, all, children }: { part: (typeof PARTS)[number]; all: Subject[]; children?: ComponentChildren }) {
  const { setQuery } = useQuery();
  return (
    <>
      <div class="parts" role="group" aria-label="What is compared">
        {PARTS.map((one) => (
          <button type="button" class="plain" key={one} aria-pressed={one === part} onClick={() => setQuery({ of: one === 'Values' ? '' : one.toLowerCase() })}>
            {one}
          </button>
        ))}
      </div>
      {all.length > 1 && (
        <label class="check">
          Baseline{' '}
          <select value={idOf(all[0] as Subject)} onChange={(e) => setQuery({ base: e.currentTarget.value })}>
            {baselineNames(all).map((name, at) => (
              <option key={name} value={idOf(all[at] as Subject)}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {children}
    </>
  );
}

// The best runs come first unless a baseline is chosen or a run is pinned.
function useOrder(drawn: readonly Run[], objective: Objective | undefined): Run[] {
  const { query } = useQuery();
  const held = useRef<{ runs: readonly Run[]; by: Objective | undefined }>({ runs: [], by: undefined });
  const { top } = readView(query);
  const baseline = Number(query.base);
  if (baseline || top.length > 0 || !objective) return asChosen(drawn, top, baseline);
  const { by } = held.current;
  const isSame = by?.metric === objective.metric && by.smallerIsBetter === objective.smallerIsBetter;
  const runs = steadilyRanked(isSame ? held.current.runs : [], drawn, objective);
  held.current = { runs, by: objective };
  return runs;
}

export interface Props {
  drawn: readonly Run[];
  colors: ReadonlyMap<number, string>; // by id of the run
  objective: Objective | undefined;
  format: (value: number) => string; // of the searcher metric in the run table
}

export function Comparison({ drawn, colors, objective, format }: Props) {
  const { query } = useQuery();
  const runs = useOrder(drawn, objective).slice(0, MAX_COMPARED);
  const ids = (kind: Run['kind']): number[] => runs.filter((run) => run.kind === kind).map(({ id }) => id);
  const [experiments, trials] = [ids('experiment'), ids('trial')];
  const live = useLive(
    // Another baseline loads nothing.
    `compare ${[...experiments].sort().join()} ${[...trials].sort().join()}`,
    (signal) => loadSubjects(experiments, trials, signal),
    (change) =>
      change === 'everything' ||
      ((change.kind === 'experiment' || change.kind === 'trial') &&
        (experiments.includes(change.experimentId ?? 0) || trials.includes(change.trialId ?? 0))),
    RUNS_BEAT_MS,
  );
  if (runs.length === 0) return <p class="quiet">No run is shown. The dot before a row adds it to the comparison.</p>;
  if (!live.data) return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Loading…</p>;
  const subjects = new Map(live.data.map((one) => [idOf(one), one]));
  const all = runs.flatMap((run): Subject[] => {
    const one = subjects.get(run.id);
    return one ? [{ ...withRow(one, run), color: colors.get(run.id) }] : [];
  });
  const part = PARTS.find((one) => one.toLowerCase() === query.of) ?? 'Values';
  const tools = (
    <Tools part={part} all={all}>
      {drawn.length > MAX_COMPARED && (
        <span class="quiet">
          the first {MAX_COMPARED} of {drawn.length} shown
        </span>
      )}
    </Tools>
  );
  return (
    <section aria-label="Comparison" class="comparison">
      <ErrorNote error={live.error} retry={live.reload} />
      {part === 'Values' && <Values all={all} smallerIsBetter={objective?.smallerIsBetter ?? true} format={format} tools={tools} />}
      {part === 'Configuration' && <Configuration all={all} tools={tools} />}
      {part === 'Code' && (
        <>
          <div class="compare-tools">
            {tools}
            <OtherSide all={all} />
            <Signs all={all} />
          </div>
          <CodeCompare all={all} />
        </>
      )}
    </section>
  );
}
