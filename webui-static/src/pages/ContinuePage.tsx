// Continues an ended experiment: extends it, or retries its failed trials.
import { useLocation } from 'preact-iso';
import { useRef } from 'preact/hooks';
import { paths, useTitle } from '../address';
import * as api from '../api';
import * as changes from '../calls/changes';
import { at } from '../workbench/runs';
import { useCheck, CheckNote } from '../components/Checked';
import { ConfigEditor } from '../components/ConfigEditor';
import { ErrorNote } from '../components/notes';
import { useDraft } from '../draft';
import { grouped, isEnded } from '../format';
import { useLive } from '../live';
import { useWork } from '../work';
import type { Experiment } from '../wire';
import { withKey } from '../yaml';
import { NotFoundPage } from '../components/NotFoundPage';
import { PageHead } from './PageHead';

// The initial text: twice the length of the search.
function proposal(one: Experiment): string {
  const searcher = at(one.config, ['searcher']);
  const lines = ['# Merged over the configuration of the experiment.', 'searcher:'];
  const length = at(searcher, ['max_length']);
  if (length !== null && typeof length === 'object' && !Array.isArray(length)) {
    const [unit, value] = Object.entries(length)[0] ?? ['batches', 0];
    lines.push(`  max_length: {${unit}: ${Number(value) * 2}}`);
  }
  for (const key of ['max_time', 'max_trials']) {
    const value = at(searcher, [key]);
    if (typeof value === 'number') lines.push(`  ${key}: ${value * 2}`);
  }
  return lines.length > 2 ? `${lines.join('\n')}\n` : '';
}

// The totals of the search that can grow, with the questions that they answer.
const TOTALS: readonly (readonly [string, string])[] = [
  ['max_length', 'Train until'],
  ['max_time', 'Longest training of a trial'],
  ['max_trials', 'Trials in all'],
];

// The value of a key in the text: "2000000" of "max_length: {batches: 2000000}", with the unit.
function totalOf(text: string, key: string): { value: string; unit: string } | undefined {
  const found = new RegExp(`\\b${key}\\s*:\\s*(?:\\{\\s*(\\w+)\\s*:\\s*)?(\\d+)`).exec(text);
  return found ? { unit: found[1] ?? '', value: found[2] ?? '' } : undefined;
}

// The value of a total in the configuration of the experiment: a number, or a map of its unit.
function currentOf(one: Experiment, key: string): number | undefined {
  const value = at(one.config, ['searcher', key]);
  const own = value !== null && typeof value === 'object' ? Object.values(value)[0] : value;
  return typeof own === 'number' ? own : undefined;
}

// By how much the totals of the text exceed those of the experiment: "6,000 more batches".
function growth(one: Experiment, text: string): string {
  const grown = TOTALS.flatMap(([key]) => {
    const [total, current] = [totalOf(text, key), currentOf(one, key)];
    const more = total && current !== undefined ? Number(total.value) - current : 0;
    const unit = total?.unit || (key === 'max_trials' ? 'trials' : 'of the longest training');
    return more > 0 ? [`${grouped(more)} more ${unit}`] : [];
  });
  return grown.length > 0 ? grown.join(', ') : 'it goes on';
}

// What continuing does to the trials of the experiment.
export function effect({ searcherType, state, numTrials }: Pick<Experiment, 'searcherType' | 'state' | 'numTrials'>): string {
  if (searcherType !== 'single' || numTrials !== 1 || !isEnded(state))
    return 'Failed trials run again from their newest checkpoints. Larger numbers extend the training or the search.';
  if (state === 'STATE_COMPLETED') return 'The trial goes on from its newest checkpoint.';
  return 'The trial runs again from its newest checkpoint. A larger number extends its training.';
}

// Fields for the totals that the text has.
function Totals({ one, text, change }: { one: Experiment; text: string; change: (text: string) => void }) {
  const shown = TOTALS.flatMap(([key, label]) => {
    const total = totalOf(text, key);
    return total ? [{ key, label, ...total, current: currentOf(one, key) }] : [];
  });
  if (shown.length === 0) return null;
  return (
    <div class="fields totals">
      {shown.map(({ key, label, value, unit, current }) => (
        <label key={key}>
          {label}
          <span class="check">
            <input
              type="number"
              min="1"
              required
              value={value}
              onInput={(e) => {
                const to = e.currentTarget.value;
                if (/^\d+$/.test(to)) change(withKey(text, 'searcher', key, unit === '' ? to : `{${unit}: ${to}}`));
              }}
            />{' '}
            {unit} {current !== undefined && <span class="quiet">now {current}</span>}
          </span>
        </label>
      ))}
    </div>
  );
}

function Form({ one }: { one: Experiment }) {
  const { route } = useLocation();
  const draft = useDraft(location.pathname);
  const text = draft.text ?? proposal(one);
  const isUnfolded = useRef(draft.text !== undefined || text === '');
  const checked = useCheck(text, async (now) => {
    await changes.goOn(one.id, now, true);
    return { summary: now.trim() === '' ? 'its failed trials run again' : growth(one, now), warnings: [] };
  });
  const { busy, error, run } = useWork();
  const submit = async (): Promise<void> => {
    if (!checked?.result) return;
    await run(async () => {
      await changes.goOn(one.id, text);
      draft.drop();
      route(paths.experiment(one.id));
    });
  };
  return (
    <>
      <Totals one={one} text={text} change={draft.change} />
      <details class="changes" open={isUnfolded.current}>
        <summary>Changes as YAML</summary>
        <ConfigEditor
          label="Changes to the configuration"
          text={text}
          problems={checked?.error?.problems ?? []}
          change={draft.change}
          submit={() => void submit()}
        />
      </details>
      <CheckNote checked={checked} />
      <ErrorNote error={error} />
      <div class="actions">
        <button type="button" class="primary" disabled={busy || !checked?.result} onClick={() => void submit()}>
          Continue experiment
        </button>
        <button type="button" disabled={draft.text === undefined} onClick={draft.drop}>
          Start over
        </button>
        <a class="button" href={paths.experiment(one.id)}>
          Cancel
        </a>
        <a href={paths.fork(one.id)}>Change something else: fork it</a>
      </div>
    </>
  );
}

export function ContinuePage({ id }: { id: number }) {
  useTitle(`Continue experiment ${id}`);
  const live = useLive(`experiment ${id}`, (signal) => api.experiment(id, signal), () => false);
  if (live.error?.status === 404) return <NotFoundPage what={`There is no experiment ${id}.`} />;
  if (!live.data) {
    return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Loading…</p>;
  }
  return (
    <>
      <PageHead
        path={[
          [paths.experiments, 'Experiments'],
          [paths.experiment(id), live.data.name || String(id)],
        ]}
        title={`Continue experiment ${id}`}
      />
      <p class="quiet">{effect(live.data)}</p>
      <Form key={id} one={live.data} />
    </>
  );
}
