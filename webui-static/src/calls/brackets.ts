// API call for the progress of a successive-halving search.
import { get } from '../http';

// One bracket of successive halving.
interface Bracket {
  rungs: { length: number; trials: number }[]; // ascending; trials that reached each rung so far
  maxTrials: number;
  trialIds: number[];
}
export interface Brackets {
  brackets: Bracket[]; // empty: the search stops no trial early
  timeMetric: string; // unit of the lengths
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
