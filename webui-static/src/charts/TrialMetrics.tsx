// Owns the charts of one trial: their data, kept live, and which of them are shown (kept in the address).
import * as api from '../api';
import { ErrorNote } from '../components/notes';
import { useLive } from '../live';
import { useQuery } from '../address';
import { MetricChart } from './MetricChart';
import { toPanels } from './series';

// Points asked for per series: about one for each pixel of a wide chart.
const kPoints = 1200;
// Without a choice in the address this many charts are shown.
const kDefaultPanels = 6;

export function TrialMetrics({ trialId, ended }: { trialId: number; ended: boolean }) {
  const { query, setQuery } = useQuery();
  const live = useLive(
    `series ${trialId}`,
    async (signal) => toPanels(await api.series(trialId, kPoints, signal)),
    (change) => change === 'everything' || (change.kind === 'metrics' && change.trialId === trialId),
    400,
  );
  const panels = live.data ?? [];
  const chosen = query.charts?.split(',').filter((name) => name !== '');
  const shown = chosen
    ? panels.filter((panel) => chosen.includes(panel.name))
    : panels.slice(0, kDefaultPanels);
  const toggle = (name: string): void => {
    const names = shown.map((panel) => panel.name);
    const next = names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
    setQuery({ charts: next.join(',') });
  };
  return (
    <section aria-labelledby="metrics-title">
      <div class="section-head">
        <h2 id="metrics-title">Metrics</h2>
        {panels.length > 0 && (
          <div class="chips" role="group" aria-label="Metrics shown">
            {panels.map((panel) => (
              <button
                type="button"
                key={panel.name}
                class="chip"
                aria-pressed={shown.includes(panel)}
                onClick={() => toggle(panel.name)}
              >
                {panel.name}
              </button>
            ))}
          </div>
        )}
      </div>
      <ErrorNote error={live.error} retry={live.reload} />
      {live.data && panels.length === 0 && (
        <p class="quiet">
          {ended
            ? 'This trial reported no metrics.'
            : 'No metrics yet. They appear here as they are reported.'}
        </p>
      )}
      <div class="charts">
        {shown.map((panel) => (
          <MetricChart key={panel.name} panel={panel} />
        ))}
      </div>
    </section>
  );
}
