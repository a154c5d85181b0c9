// Finds a GPU of a trial that is used less or more than the others, which names a slow rank: on each machine the
// process of local rank I trains on GPU I, and the first machine reports its GPUs. Pure.
import type { MetricSeries } from '../wire';

const NAME = /^gpu_util\.(\d+)$/;
// Newest reports that count, and least difference in percentage points to name a GPU.
const REPORTS = 60;
const LEAST = 20;

export interface Uneven {
  gpu: number;
  own: number; // mean utilization, percent
  others: number; // mean of the others' means
}

// The GPU with the mean utilization furthest from the others; undefined if all are close, or there is one.
export function unevenGpu(all: readonly MetricSeries[]): Uneven | undefined {
  const means = all.flatMap(({ group, name, values }) => {
    const gpu = group === 'gpu' ? NAME.exec(name)?.[1] : undefined;
    const newest = values.slice(-REPORTS).filter((value): value is number => typeof value === 'number' && Number.isFinite(value));
    if (gpu === undefined || newest.length === 0) return [];
    return [{ gpu: Number(gpu), mean: newest.reduce((sum, value) => sum + value, 0) / newest.length }];
  });
  if (means.length < 2) return undefined;
  const sum = means.reduce((total, { mean }) => total + mean, 0);
  const found = means
    .map(({ gpu, mean }): Uneven => ({ gpu, own: mean, others: (sum - mean) / (means.length - 1) }))
    .sort((a, b) => Math.abs(b.own - b.others) - Math.abs(a.own - a.others))[0];
  return found && Math.abs(found.own - found.others) >= LEAST ? found : undefined;
}

// The finding as a sentence.
export const unevenText = ({ gpu, own, others }: Uneven): string =>
  `GPU ${gpu} is much ${own > others ? 'busier' : 'less busy'} than the others (${Math.round(own)}% vs ${Math.round(others)}%). ` +
  (own > others ? 'They may wait for it.' : 'It may wait for data, or has less work.');
