// The former address of comparisons: leads to the workbench with these runs.
import { useLocation } from 'preact-iso';
import { useEffect } from 'preact/hooks';
import * as api from '../api';
import { paths, useQuery } from '../address';
import { readIds } from '../compare/subjects';
import { ErrorNote } from '../components/notes';
import { useLive } from '../live';

const PARTS: Record<string, string> = { configuration: 'configuration', code: 'code' };

export function ComparePage() {
  const { query } = useQuery();
  const { route } = useLocation();
  const experiments = readIds(query.experiments);
  const trials = readIds(query.trials);
  // Beside trials, an experiment is its best or first trial.
  const mixed = trials.length > 0 && experiments.length > 0;
  const live = useLive(
    `compare ${experiments.join()} ${trials.join()}`,
    async (signal) => {
      if (!mixed) return trials;
      const all = await Promise.all(experiments.map((id) => api.experiment(id, signal)));
      return [...all.map((one) => one.bestTrialId ?? one.trialIds[0] ?? 0).filter((id) => id > 0), ...trials];
    },
    () => false,
  );
  const part = PARTS[query.tab ?? ''] ?? '';
  // The first one is the baseline.
  const base = (ids: readonly number[]): string => (ids[0] === undefined ? '' : `&base=${ids[0]}`);
  const to = !live.data
    ? ''
    : trials.length > 0
      ? paths.compareTrials(live.data, part) + base(live.data)
      : paths.compare(experiments, part) + base(experiments);
  useEffect(() => {
    if (to !== '') route(to, true);
  }, [to]);
  return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Loading…</p>;
}
