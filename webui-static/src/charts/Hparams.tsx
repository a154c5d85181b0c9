// The hyperparameters of one trial in a row above its charts.
import { metric, sorted } from '../format';
import type { Trial } from '../wire';
import { flatten } from './dimensions';

// The tab of the trial has the others.
const MAX_VALUES = 8;

export function Hparams({ trial }: { trial: Trial }) {
  const values = [...flatten(sorted(trial.hparams ?? {}))];
  if (values.length === 0) return null;
  return (
    <p class="hparams">
      {values.slice(0, MAX_VALUES).map(([name, value]) => (
        <span class="tag" key={name}>
          <span class="quiet">{name}</span> {typeof value === 'number' ? metric(value) : typeof value === 'string' ? value : JSON.stringify(value)}
        </span>
      ))}
      {values.length > MAX_VALUES && <span class="quiet">and {values.length - MAX_VALUES} more</span>}
    </p>
  );
}
