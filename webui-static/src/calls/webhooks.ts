// API calls for webhooks: endpoints that are notified about experiments.
import { stateName } from '../format';
import { change, get } from '../http';

export interface Trigger {
  triggerType: string; // "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE" …
  condition: { state?: string; regex?: string; metric?: string; above?: number; below?: number } | null;
}
export interface Webhook {
  id: number;
  url: string; // the host alone for users without the right to change it
  name: string;
  webhookType: string; // "WEBHOOK_TYPE_DEFAULT", "WEBHOOK_TYPE_SLACK"
  workspaceId: number; // 0: the whole cluster
  mode: string; // "WEBHOOK_MODE_WORKSPACE", "WEBHOOK_MODE_SPECIFIC"
  triggers: Trigger[];
  outcome: string; // of the latest delivery; "" before the first
  attempted?: string | null;
}

export const webhooks = async (signal?: AbortSignal): Promise<Webhook[]> =>
  (await get<{ webhooks?: Webhook[] }>('/api/v1/webhooks', signal)).webhooks ?? [];

export const makeWebhook = (webhook: Omit<Webhook, 'id' | 'outcome' | 'attempted'>): Promise<unknown> =>
  change('POST', '/api/v1/webhooks', webhook);
export const moveWebhook = (id: number, url: string): Promise<unknown> => change('PATCH', `/api/v1/webhooks/${id}`, { url });
export const testWebhook = (id: number): Promise<unknown> => change('POST', `/api/v1/webhooks/${id}/test`);
export const removeWebhook = (id: number): Promise<unknown> => change('DELETE', `/api/v1/webhooks/${id}`);

// The state as lists of experiments name it.
export const triggerState = (state: string): string => (state === 'ACTIVE' ? 'Running' : stateName(state));

// "Error", "Log: out of memory", "loss > 2.5", "Alert".
export function triggerText({ triggerType, condition }: Trigger): string {
  if (triggerType === 'TRIGGER_TYPE_TASK_LOG') return `Log: ${condition?.regex ?? ''}`;
  if (triggerType === 'TRIGGER_TYPE_CUSTOM') return 'Alert';
  if (condition?.metric !== undefined) return `${condition.metric} ${condition.above === undefined ? `< ${condition.below}` : `> ${condition.above}`}`;
  return triggerState(condition?.state ?? '');
}
