// Owns how a trial's metric groups become charts: one panel a metric, training and validation of it laid over
// each other. Pure.
import type { JsonValue, MetricGroup } from '../wire';

export interface Series {
  label: string; // "training"; "validation (validation_loss)" where the metric is not called like its panel
  group: string;
  x: number[]; // batches, rising
  y: (number | null)[]; // null: not a finite number, drawn as a gap
}

export interface Panel {
  name: string;
  series: Series[];
}

// "validation_loss" of the group validation is the loss.
export function panelName(group: string, name: string): string {
  for (const prefix of [`${group}_`, group === 'validation' ? 'val_' : '']) {
    if (prefix !== '' && name.startsWith(prefix) && name.length > prefix.length)
      return name.slice(prefix.length);
  }
  return name;
}

function toNumber(value: JsonValue | undefined): number | null | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return null;
  return undefined;
}

const kGroupOrder = ['training', 'validation'];

function groupRank(group: string): number {
  const at = kGroupOrder.indexOf(group);
  return at < 0 ? kGroupOrder.length : at;
}

// Panels in alphabetical order; in each, training before validation before other groups.
export function toPanels(groups: MetricGroup[]): Panel[] {
  const series = new Map<string, Series & { panel: string }>();
  for (const { group, data } of groups) {
    for (const point of data) {
      for (const [name, raw] of Object.entries(point.values ?? {})) {
        const value = toNumber(raw);
        if (value === undefined) continue;
        const id = `${group}.${name}`;
        let own = series.get(id);
        if (!own) {
          const panel = panelName(group, name);
          own = { panel, label: panel === name ? group : `${group} (${name})`, group, x: [], y: [] };
          series.set(id, own);
        }
        own.x.push(point.batches);
        own.y.push(value);
      }
    }
  }
  const panels = new Map<string, Panel>();
  for (const { panel, ...one } of series.values()) {
    const own = panels.get(panel) ?? { name: panel, series: [] };
    own.series.push(one);
    panels.set(panel, own);
  }
  const sorted = [...panels.values()].sort((a, b) => a.name.localeCompare(b.name));
  for (const panel of sorted) {
    panel.series.sort((a, b) => groupRank(a.group) - groupRank(b.group) || a.label.localeCompare(b.label));
  }
  return sorted;
}
