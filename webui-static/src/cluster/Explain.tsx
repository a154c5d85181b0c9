// Owns saying why an experiment waits, what stands in its way, and what would start it.
import { paths } from '../address';
import { explain, updateJobs, type JobChange, type Suggestion } from '../calls/cluster';
import { ErrorNote } from '../components/notes';
import { useLive } from '../live';
import { useWork } from '../work';

const kHow: Record<string, string> = { RUNS: 'runs', LEAVES: 'is leaving', HOLDS: 'waits ahead, slots are kept for it' };

function toChange(jobId: string, { what, value }: Suggestion): [string, JobChange] | undefined {
  if (what === 'PRIORITY') return [`Set priority ${value}`, { jobId, priority: value }];
  if (what === 'MAX_SLOTS') return [`Allow ${value} slots`, { jobId, maxSlots: value }];
  return undefined;
}

export function Explain({ experimentId, jobId }: { experimentId: number; jobId: string }) {
  const live = useLive(
    `explain ${experimentId}`,
    (signal) => explain(experimentId, signal),
    (change) => change === 'everything' || ['experiment', 'trial', 'agent'].includes(change.kind),
    1000,
  );
  const { busy, error, run } = useWork();
  const found = live.data;
  if (!found) {
    return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Looking…</p>;
  }
  const offers = (found.suggestions ?? [])
    .map((one) => toChange(jobId, one))
    .filter((one): one is [string, JobChange] => one !== undefined);
  return (
    <div class="explain" role="region" aria-label={`Why experiment ${experimentId} waits`}>
      <p class="lines-kept">{found.text}</p>
      {(found.blockers ?? []).length > 0 && (
        <ul>
          {found.blockers.map((one) => (
            <li key={one.trialId}>
              <a href={paths.trial(one.trialId)}>trial {one.trialId}</a> of{' '}
              <a href={paths.experiment(one.experimentId)}>experiment {one.experimentId}</a> {kHow[one.how] ?? one.how}:{' '}
              {one.slots} {one.slots === 1 ? 'slot' : 'slots'}
              {one.agents.length > 0 && ` on ${one.agents.join(', ')}`}
            </li>
          ))}
          {found.moreBlockers > 0 && <li>and {found.moreBlockers} more</li>}
        </ul>
      )}
      <div class="actions">
        {offers.map(([label, change]) => (
          <button type="button" key={label} disabled={busy} onClick={() => void run(() => updateJobs([change]))}>
            {label}
          </button>
        ))}
      </div>
      <ErrorNote error={error} />
    </div>
  );
}
