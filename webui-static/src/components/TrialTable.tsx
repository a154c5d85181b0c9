// Owns the table of an experiment's trials and choosing one of them.
import { dateTime, isEnded, metric, sorted, span } from '../format';
import type { JsonObject, JsonValue, Trial } from '../wire';
import { useNow } from './clock';
import { StateBadge } from './notes';

const one = (value: JsonValue): string =>
  typeof value === 'number' ? metric(value) : typeof value === 'string' ? value : JSON.stringify(value);

const hparamText = (hparams: JsonObject | null | undefined): string =>
  Object.entries(sorted(hparams ?? {}) as JsonObject)
    .map(([name, value]) => `${name}=${one(value)}`)
    .join('  ');

interface Props {
  trials: Trial[];
  chosen: number | undefined;
  metricName: string;
  choose: (trialId: number) => void;
}

export function TrialTable({ trials, chosen, metricName, choose }: Props) {
  const now = useNow(trials.some((trial) => !isEnded(trial.state)));
  return (
    <div class="table-frame table-short" tabIndex={0} role="region" aria-labelledby="trials-title">
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              ID
            </th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Batches
            </th>
            <th scope="col" class="number">
              Best {metricName || 'validation'}
            </th>
            <th scope="col" class="number">
              Restarts
            </th>
            <th scope="col" class="number">
              Checkpoints
            </th>
            <th scope="col">Started</th>
            <th scope="col" class="number">
              Duration
            </th>
            <th scope="col">Hyperparameters</th>
          </tr>
        </thead>
        <tbody>
          {trials.map((trial) => {
            const best = trial.searcherMetricValue ?? trial.bestValidation?.metrics?.avgMetrics?.[metricName];
            return (
              <tr key={trial.id} class={trial.id === chosen ? 'chosen' : ''}>
                <td class="number">
                  <button
                    type="button"
                    class="link"
                    aria-pressed={trial.id === chosen}
                    aria-label={`Show trial ${trial.id}`}
                    onClick={() => choose(trial.id)}
                  >
                    {trial.id}
                  </button>
                </td>
                <td>
                  <StateBadge state={trial.state} />
                  {trial.exitReason !== '' && <div class="quiet reason">{trial.exitReason}</div>}
                </td>
                <td class="number">{trial.totalBatchesProcessed}</td>
                <td class="number">
                  {typeof best === 'number' || typeof best === 'string' ? metric(best) : ''}
                </td>
                <td class="number">{trial.restarts}</td>
                <td class="number">{trial.checkpointCount}</td>
                <td>{dateTime(trial.startTime)}</td>
                <td class="number">{span(trial.startTime, trial.endTime, now)}</td>
                <td class="hparams">{hparamText(trial.hparams)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
