// Checkpoints: files, metadata, location, download; continuing from one, deleting one.
import type { ComponentChildren } from 'preact';
import * as api from '../api';
import { paths } from '../address';
import { removeCheckpoint } from '../calls/changes';
import { bytes, counted, digits, grouped, sorted } from '../format';
import { useLive, type Live } from '../live';
import type { Checkpoint, Experiment, Trial } from '../wire';
import { Confirm } from './Confirm';
import { Empty } from './Empty';
import { Register } from './Register';
import { Loaded } from './Loaded';
import { StateBadge } from './notes';
import { CopyText } from './Copy';
import { Facts } from './Tabs';
import { Time } from './Time';

const MAX_CHECKPOINTS = 100;
const SHORT_ID = 8; // characters of a UUID

const isKept = (one: Checkpoint): boolean => one.state === 'STATE_COMPLETED';

const sizeOf = (one: Checkpoint): number => Object.values(one.resources).reduce((sum, length) => sum + Number(length), 0);

interface RowProps {
  one: Checkpoint;
  metricName: string;
  marks: readonly string[]; // "best", "latest"
  named: boolean; // by its trial
  reload: () => void;
}

const CheckpointActions = ({ one, reload }: Pick<RowProps, 'one' | 'reload'>) => (
  <div class="actions">
    <a class="button" href={`/checkpoints/${encodeURIComponent(one.uuid)}`} download>
      Download
    </a>
    <Register uuid={one.uuid} />
    {one.training?.experimentId != null && (
      <a class="button" href={paths.forkFrom(one.training.experimentId, one.uuid)}>
        Continue from here…
      </a>
    )}
    <Confirm
      label="Delete…"
      name={`Delete checkpoint ${one.uuid}`}
      title="Delete this checkpoint?"
      yes="Delete"
      no="Keep it"
      work={() => removeCheckpoint(one.uuid)}
      done={reload}
    >
      Its files are removed from the storage: {one.uuid}. This cannot be undone.
    </Confirm>
  </div>
);

function CheckpointRow({ one, metricName, marks, named, reload }: RowProps) {
  const files = Object.entries(one.resources).sort(([a], [b]) => (a < b ? -1 : 1));
  const trialId = one.training?.trialId;
  const [step, trial] = [`batch ${grouped(one.stepsCompleted)}`, trialId == null ? '–' : `trial ${trialId}`];
  return (
    <details class="checkpoint">
      <summary>
        <span class="checkpoint-step">
          {named ? trial : step}
          {marks.map((mark) => (
            <span key={mark} class={`mark-${mark}`}>
              {mark}
            </span>
          ))}
          {!isKept(one) && <StateBadge state={one.state} />}
        </span>
        <span class="checkpoint-metric">
          <span class="quiet phone">{metricName}</span> {digits(one.training?.searcherMetric) || <span class="quiet">–</span>}
        </span>
        {named && <span class="quiet checkpoint-trial">{step}</span>}
        <span class="quiet checkpoint-time">
          <Time at={one.reportTime} />
        </span>
        <span class="quiet checkpoint-size">
          {bytes(sizeOf(one))}, {counted(files.length, 'file')}
        </span>
        <code class="checkpoint-id quiet" title={one.uuid}>
          {one.uuid.slice(0, SHORT_ID)}
        </code>
      </summary>
      {isKept(one) && <CheckpointActions one={one} reload={reload} />}
      <Facts
        facts={[
          ['ID', <CopyText text={one.uuid} what={`the ID ${one.uuid}`} />],
          ['Path on the cluster', one.storagePath && <code>{one.storagePath}</code>],
        ]}
      />
      <h3>{counted(files.length, 'file')}</h3>
      <ul class="plain-list checkpoint-files">
        {files.map(([path, length]) => (
          <li key={path}>
            <code>{path}</code>
            <span class="quiet">{bytes(Number(length))}</span>
          </li>
        ))}
      </ul>
      {Object.keys(one.metadata ?? {}).length > 0 && (
        <>
          <h3>Metadata</h3>
          <pre tabIndex={0}>{JSON.stringify(sorted(one.metadata ?? {}), null, 2)}</pre>
        </>
      )}
    </details>
  );
}

// Checkpoints that are gone stay as records below the others.
function Gone({ count, children }: { count: number; children: ComponentChildren }) {
  return (
    <details class="gone">
      <summary>{counted(count, 'deleted checkpoint')}</summary>
      <div class="card checkpoints">{children}</div>
    </details>
  );
}

const hasMetric = (one: Checkpoint): boolean => one.training?.searcherMetric != null;
const savedAt = (one: Checkpoint): number => Date.parse(one.reportTime ?? '') || 0;

// Checkpoints in the order of `all`, or the newest first if none of them has a metric.
function Rows({ all, first, metricName, isBest, named, total, reload }: Omit<ListProps, 'live'> & { all: Checkpoint[]; reload: () => void }) {
  const measured = all.some(hasMetric);
  const rows = measured ? all : [...all].sort((a, b) => savedAt(b) - savedAt(a));
  const [kept, gone] = [rows.filter(isKept), rows.filter((one) => !isKept(one))];
  const best = kept.find((one) => hasMetric(one) && isBest(one));
  const latest = [...kept].sort((a, b) => b.stepsCompleted - a.stepsCompleted || savedAt(b) - savedAt(a))[0];
  const isCut = total !== undefined && all.length === MAX_CHECKPOINTS && total > kept.length;
  const columns: [string, string][] = [
    [named ? 'Trial' : 'Step', '15rem'],
    [metricName, 'minmax(6rem, 10rem)'],
    ...(named ? ([['Step', '8rem']] as [string, string][]) : []),
    ['Saved', 'minmax(6rem, 1fr)'],
    ['Size', '8rem'],
    ['ID', '6rem'],
  ];
  const row = (one: Checkpoint) => {
    const marks = [...(one === best ? ['best'] : []), ...(one === latest && kept.length > 1 && !isCut ? ['latest'] : [])];
    return <CheckpointRow key={one.uuid} one={one} metricName={metricName} marks={marks} named={named} reload={reload} />;
  };
  return (
    <div style={{ '--columns': columns.map(([, width]) => width).join(' ') }}>
      {kept.length > 0 && (
        <p class="quiet">
          {isCut && `${kept.length} of `}
          {counted(isCut ? total : kept.length, 'checkpoint')}
          {isCut ? '; these have' : ','} {bytes(kept.reduce((sum, one) => sum + sizeOf(one), 0))}.{kept.length > 1 && ` ${measured ? first : 'Newest first.'}`}
        </p>
      )}
      {kept.length > 0 && (
        <div class="card checkpoints">
          <div class="checkpoint-heads" aria-hidden="true">
            {columns.map(([head]) => (
              <span key={head}>{head}</span>
            ))}
          </div>
          {kept.map(row)}
        </div>
      )}
      {gone.length > 0 && <Gone count={gone.length}>{gone.map(row)}</Gone>}
    </div>
  );
}

interface ListProps {
  live: Live<Checkpoint[]>;
  first: string; // describes the order
  metricName: string;
  isBest: (one: Checkpoint) => boolean; // the first one for which this holds is marked
  named: boolean; // the checkpoints are of several trials
  total?: number; // where `live` has only the first MAX_CHECKPOINTS
}

const List = ({ live, ...props }: ListProps) => (
  <Loaded live={live}>
    {(all) =>
      all.length > 0 ? (
        <Rows {...props} all={all} reload={live.reload} />
      ) : (
        <Empty icon="download" title="No checkpoints yet">
          <code>min_checkpoint_period</code> in the configuration makes them come more often;{' '}
          <code>det experiment pause</code> saves one at once.
        </Empty>
      )
    }
  </Loaded>
);

export const useCheckpoints = (trialId: number): Live<Checkpoint[]> =>
  useLive(
    `checkpoints ${trialId}`,
    (signal) => api.checkpoints(trialId, signal),
    (change) => change === 'everything' || (change.kind === 'checkpoint' && change.trialId === trialId),
  );

export const TrialCheckpoints = ({ trial, metricName }: { trial: Trial; metricName: string | undefined }) => (
  <List live={useCheckpoints(trial.id)} first="Newest first." metricName={metricName || 'Metric'} isBest={(one) => one.training?.searcherMetric === trial.searcherMetricValue} named={false} />
);

export function ExperimentCheckpoints({ one, smallerIsBetter }: { one: Experiment; smallerIsBetter: boolean }) {
  const live = useLive(
    `checkpoints of ${one.id}`,
    (signal) => api.experimentCheckpoints(one.id, smallerIsBetter, MAX_CHECKPOINTS, signal),
    (change) => change === 'everything' || (change.kind === 'checkpoint' && change.experimentId === one.id),
    2000,
  );
  return <List live={live} named={one.numTrials > 1} total={one.checkpointCount} metricName={one.searcherMetric || 'Metric'} isBest={() => true} first={`Best first, by ${one.searcherMetric || 'the metric of the search'} when saved.`} />;
}
