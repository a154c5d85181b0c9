// API calls for quotas: limits on what a user, or a workspace, has at a time.
import { ApiError, change, get } from '../http';
import { bytes, grouped } from '../format';

// Resources in the words of the API, and their names.
export const RESOURCES: Record<string, string> = {
  slots: 'Slots in use',
  experiments: 'Experiments that have not ended',
  metric_series: 'Metrics of trials',
  log_bytes: 'Log text',
  checkpoint_bytes: 'Checkpoints',
};

export interface Quota {
  scope: string; // "user" or "workspace"
  id: number;
  resource: string;
  limit: number;
  used: number;
  name: string; // of the user or workspace; "" if it does not exist any more
}
type QuotaKey = Pick<Quota, 'scope' | 'id' | 'resource'>;

// 64-bit numbers are texts on the wire.
type Answer = { quotas?: (Omit<Quota, 'limit' | 'used'> & { limit?: string | number; used?: string | number })[] };

export const quotas = async (signal?: AbortSignal): Promise<Quota[]> =>
  ((await get<Answer>('/api/v1/quotas', signal)).quotas ?? []).map((one) => ({
    ...one,
    limit: Number(one.limit ?? 0),
    used: Number(one.used ?? 0),
  }));

const place = ({ scope, id, resource }: QuotaKey): string => `/api/v1/quotas/${scope}/${id}/${resource}`;
export const setQuota = (key: QuotaKey, limit: number): Promise<unknown> => change('PUT', place(key), { limit });
export const removeQuota = (key: QuotaKey): Promise<unknown> => change('DELETE', place(key));

export const isBytes = (resource: string): boolean => resource.endsWith('_bytes');
export const amountText = (resource: string, amount: number): string =>
  isBytes(resource) ? bytes(amount).replace('.0 ', ' ') : grouped(amount);

const UNITS = ['', 'k', 'm', 'g', 't', 'p'];

// Reads "40", or for bytes "500 GB" and "2 GiB". Throws for anything else.
export function readAmount(resource: string, text: string): number {
  const match = /^(\d{1,15}(?:\.\d{1,3})?) ?(?:([kmgtp]?)(i?)b)?$/i.exec(text.trim());
  const plain = match !== null && /^\d+$/.test(text.trim());
  if (match === null || !(plain || isBytes(resource))) {
    const message = `must be a ${isBytes(resource) ? 'size such as 500 GB or 2 GiB' : 'whole number from 0'}`;
    throw new ApiError(400, message, [{ code: '', path: 'limit', message, file: '', line: 0, column: 0 }]);
  }
  const [, number, unit = '', binary = ''] = match;
  return Math.round(Number(number) * (binary === '' ? 1000 : 1024) ** UNITS.indexOf(unit.toLowerCase()));
}
