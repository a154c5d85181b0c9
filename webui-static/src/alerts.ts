// Notifications of the browser: an experiment of the signed-in user has ended while the page is hidden. They are
// switched on in the settings of this browser.
import * as api from './api';
import { paths } from './address';
import { subscribe, type ServerEvent } from './events';
import { isEnded, metric, span, stateName } from './format';
import { user } from './session';
import { alerts } from './settings';
import type { Experiment } from './wire';

// An event may be about a change of an experiment that ended long ago. Milliseconds by the clock of the browser.
const RECENT_MS = 120_000;

export interface Alert {
  title: string;
  body: string;
}

// The notification about an experiment; undefined if it has not ended just now, or belongs to another user.
export function alertOf(one: Experiment, username: string, nowMs: number): Alert | undefined {
  const ended = Date.parse(one.endTime ?? '');
  if (!isEnded(one.state) || one.username !== username || !(Math.abs(nowMs - ended) < RECENT_MS)) return undefined;
  const best = one.bestTrialSearcherMetric == null ? '' : `best ${one.searcherMetric} ${metric(one.bestTrialSearcherMetric)}`;
  const parts = [best, span(one.startTime, one.endTime, nowMs)].filter((part) => part !== '');
  return { title: `${one.name || `Experiment ${one.id}`}: ${stateName(one.state)}`, body: parts.join(' · ') };
}

// Why this browser shows no notifications; "" if it may ask for them.
export function refusal(): string {
  if (!isSecureContext || typeof Notification !== 'function') return 'Browsers show notifications of pages with HTTPS only.';
  return Notification.permission === 'denied' ? 'The browser refuses notifications of this site. Allow them in its settings.' : '';
}

// Asks for the permission when alerts are switched on.
export async function setAlerts(on: boolean): Promise<void> {
  alerts.value = on;
  if (on && (refusal() !== '' || (await Notification.requestPermission()) !== 'granted')) alerts.value = false;
}

async function notify(id: number): Promise<void> {
  const own = user.value?.username;
  const alert = own === undefined ? undefined : alertOf(await api.experiment(id), own, Date.now());
  if (!alert) return;
  // Pages of one browser share the tag, so that several of them show one notification.
  const shown = new Notification(alert.title, { body: alert.body, tag: `experiment ${id}` });
  shown.onclick = () => {
    window.focus();
    location.assign(paths.experiment(id));
  };
}

const concerns = ({ kind, state = '', sameState, experimentId }: ServerEvent): boolean =>
  kind === 'experiment' && isEnded(state) && sameState !== true && experimentId !== undefined;

export function followAlerts(): void {
  subscribe((change) => {
    if (change === 'everything' || !alerts.value || !document.hidden || !concerns(change)) return;
    // An experiment that cannot be read, as one of another user, is no alert.
    notify(change.experimentId ?? 0).catch(() => undefined);
  });
}
