// Owns the call about how a search by halving stands.
import { get } from '../http';

// One run of halving inside a search.
export interface Bracket {
  rungs: { length: number; trials: number }[]; // rising; how many came to each so far
  maxTrials: number;
  trialIds: number[];
}
export interface Brackets {
  brackets: Bracket[]; // none: the search stops no trial early
  timeMetric: string; // that lengths are counted in
}

interface Answer {
  brackets: { rungs: { length: string | number; trials: number }[]; maxTrials: number; trialIds: number[] }[];
  timeMetric: string;
}
export const brackets = async (experimentId: number, signal?: AbortSignal): Promise<Brackets> => {
  const answer = await get<Answer>(`/api/v1/experiments/${experimentId}/brackets`, signal);
  return {
    timeMetric: answer.timeMetric,
    brackets: answer.brackets.map((one) => ({
      ...one,
      rungs: one.rungs.map((rung) => ({ ...rung, length: Number(rung.length) })),
    })),
  };
};
