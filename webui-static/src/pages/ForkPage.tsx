// Creates an experiment from an existing one: its configuration, edited and validated
// as the user types, and its code.
import { useLocation } from 'preact-iso';
import { useRef } from 'preact/hooks';
import { paths, useQuery, useTitle } from '../address';
import * as api from '../api';
import * as changes from '../calls/changes';
import { ConfigEditor } from '../components/ConfigEditor';
import { useCheck, CheckNote, type CheckResult } from '../components/Checked';
import { DiffView } from '../components/DiffView';
import { ErrorNote } from '../components/notes';
import { useDraft } from '../draft';
import { counted, grouped } from '../format';
import { useLive } from '../live';
import { useWork } from '../work';
import type { Experiment } from '../wire';
import { endOfFirst, withKey } from '../yaml';
import { NotFoundPage } from '../components/NotFoundPage';
import { PageHead } from './PageHead';

const planText = ({ count, unit }: changes.Planned): string =>
  `${counted(count, 'trial')}${
    !unit || unit.maxLength ? ', trained to the end' : ` for ${grouped(unit.value ?? 0)} ${unit.name ?? ''}`
  }`;

// A summary of the trials that the configuration would train.
async function check(text: string, one: Experiment): Promise<CheckResult> {
  const valid = await changes.validate(text, one.id, one.projectId);
  const plan = await changes.previewSearch(valid.config).catch(() => []);
  return { summary: plan.map(planText).join(', ') || 'it can be submitted', warnings: valid.warnings };
}

function Form({ one, start }: { one: Experiment; start: string }) {
  const { route } = useLocation();
  const draft = useDraft(`${location.pathname}${location.search}`);
  const text = draft.text ?? start;
  // By configuration: the master answers a known id with the experiment that it has created.
  const requests = useRef(new Map<string, string>()).current;
  const checked = useCheck(text, (now) => check(now, one));
  const { busy, error, run } = useWork();
  const submit = async (): Promise<void> => {
    if (!checked?.result) return;
    await run(async () => {
      const request = requests.get(text) ?? crypto.randomUUID?.() ?? String(Math.random());
      requests.set(text, request);
      const made = await changes.create(text, one.id, one.projectId, request);
      draft.drop();
      route(paths.experiment(made.id));
    });
  };
  return (
    <>
      <ConfigEditor
        label="Configuration"
        text={text}
        start={endOfFirst(text, 'hyperparameters')}
        problems={checked?.error?.problems ?? []}
        change={draft.change}
        submit={() => void submit()}
      />
      <CheckNote checked={checked} />
      <ErrorNote error={error} />
      <div class="actions">
        <button
          type="button"
          class="primary"
          disabled={busy || !checked || !checked.result}
          onClick={() => void submit()}
        >
          Create experiment
        </button>
        <button type="button" disabled={text === start} onClick={draft.drop}>
          Start over
        </button>
        <span class="quiet">
          <span class="by-mouse">Ctrl+Enter creates. </span>The code is that of experiment {one.id}.
        </span>
      </div>
      <section hidden={text === one.originalConfig}>
        <DiffView left={one.originalConfig} right={text} title={`Changes against experiment ${one.id}`} />
      </section>
    </>
  );
}

export function ForkPage({ id }: { id: number }) {
  useTitle(`Fork experiment ${id}`);
  const { query } = useQuery();
  const live = useLive(`experiment ${id}`, (signal) => api.experiment(id, signal), () => false);
  const one = live.data;
  if (live.error?.status === 404) return <NotFoundPage what={`There is no experiment ${id}.`} />;
  if (!one) {
    return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Loading…</p>;
  }
  const trial = /^[1-9]\d{0,9}$/.test(query.trial ?? '') ? query.trial : undefined;
  const checkpoint = /^[0-9a-f-]{36}$/.test(query.checkpoint ?? '') ? query.checkpoint : undefined;
  const start = trial
    ? withKey(one.originalConfig, 'searcher', 'source_trial_id', trial, 'source_checkpoint_uuid')
    : checkpoint
      ? withKey(one.originalConfig, 'searcher', 'source_checkpoint_uuid', checkpoint, 'source_trial_id')
      : one.originalConfig;
  return (
    <>
      <PageHead
        path={[
          [paths.experiments, 'Experiments'],
          [paths.experiment(id), one.name || String(id)],
        ]}
        title={`Fork experiment ${id}`}
        facts={
          (trial ?? checkpoint) && <span class="quiet">{trial ? `from the weights of trial ${trial}` : `from checkpoint ${checkpoint}`}</span>
        }
      />
      <Form key={`${id} ${trial} ${checkpoint}`} one={one} start={start} />
    </>
  );
}
