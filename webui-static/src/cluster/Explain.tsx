// Explains why an experiment is waiting and suggests changes that would start it.
import type { ComponentChildren } from 'preact';
import { paths } from '../address';
import { explain, updateJobs, type JobChange, type Suggestion } from '../calls/cluster';
import { ErrorNote } from '../components/notes';
import { useLive } from '../live';
import { outline } from './outline';
import { useWork } from '../work';

// The text, with trials and experiments as links.
const linked = (text: string): ComponentChildren[] =>
  text.split(/\b((?:trial|experiment) \d+)\b/i).map((part, at) => {
    if (at % 2 === 0) return part;
    const [what, id] = part.split(' ');
    return (
      <a key={at} href={what?.toLowerCase() === 'trial' ? paths.trial(Number(id)) : paths.experiment(Number(id))}>
        {part}
      </a>
    );
  });

function toChange(jobId: string, { what, value }: Suggestion): [string, JobChange] | undefined {
  if (what === 'PRIORITY') return [`Set priority ${value}`, { jobId, priority: value }];
  if (what === 'MAX_SLOTS') return [`Allow ${value} slots`, { jobId, maxSlots: value }];
  return undefined;
}

export function Explain({ of, id, jobId }: { of: 'experiments' | 'commands'; id: string; jobId: string }) {
  const live = useLive(
    `explain ${of} ${id}`,
    (signal) => explain(of, id, signal),
    (change) => change === 'everything' || (['experiment', 'trial', 'agent', 'command'].includes(change.kind) && !change.sameState),
    1000,
  );
  const { busy, error, run } = useWork();
  const found = live.data;
  if (!found) {
    return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Looking…</p>;
  }
  const { headline, answer, details } = outline(found.text);
  const offers = (found.suggestions ?? [])
    .map((one) => toChange(jobId, one))
    .filter((one): one is [string, JobChange] => one !== undefined);
  return (
    <div class="explain" role="region" aria-label={`Why ${of.slice(0, -1)} ${id} waits`}>
      <p>
        <strong>{linked(headline)}</strong>
      </p>
      <p>{linked(answer)}</p>
      {details.length > 0 && (
        <details>
          <summary>Tasks that hold the slots</summary>
          <p class="lines-kept">{linked(details.join('\n'))}</p>
        </details>
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
