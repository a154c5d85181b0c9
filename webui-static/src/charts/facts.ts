// Facts about a chart's curves for its title: line styles, last and best values, curves that coincide. Pure.
import type { Panel, Series } from './series';

// Dashes and gaps in pixels.
const VALIDATION = [5, 3];
const OTHER = [2, 2];

// The line style of a group of metrics; undefined for a solid line, which training and a group alone have.
export function dashOf(panel: Pick<Panel, 'series'>, group: string): number[] | undefined {
  if (group === 'training' || panel.series.every((one) => one.group === group)) return undefined;
  return group === 'validation' ? VALIDATION : OTHER;
}

// The groups with a key in the title: all, unless each curve is solid.
export function keyedGroups(panel: Pick<Panel, 'series'>): string[] {
  const groups = [...new Set(panel.series.map(({ group }) => group))];
  return groups.length > 1 || groups.includes('validation') ? groups : [];
}

// The last finite value of a curve.
export function lastOf({ y }: Pick<Series, 'y'>): number | undefined {
  for (let at = y.length - 1; at >= 0; at--) {
    const value = y[at];
    if (value != null) return value;
  }
  return undefined;
}

// The best finite value of a curve.
export function bestOf({ y }: Pick<Series, 'y'>, smallerIsBetter: boolean): number | undefined {
  let best: number | undefined;
  for (const value of y) if (value != null && (best === undefined || (smallerIsBetter ? value < best : value > best))) best = value;
  return best;
}

const isSame = (one: Series, other: Series): boolean =>
  one.x.length === other.x.length && one.y.every((value, at) => value === other.y[at]) && one.x.every((value, at) => value === other.x[at]);

// The labels of the most curves of one group of metrics that have the same points; none if all curves differ.
export function coinciding(panel: Pick<Panel, 'series'>): string[] {
  const found = new Map<string, Series[][]>();
  for (const one of panel.series) {
    const middle = one.y.length >> 1;
    const key = [one.group, one.y.length, one.y[0], one.y[middle], one.y[one.y.length - 1]].join(' ');
    const alike = found.get(key) ?? [];
    found.set(key, alike);
    const same = alike.find(([first]) => first !== undefined && isSame(first, one));
    if (same) same.push(one);
    else alike.push([one]);
  }
  const [most = []] = [...found.values()].flat().sort((a, b) => b.length - a.length);
  return most.length > 1 ? most.map(({ label }) => label) : [];
}

// Names of metrics before the first "/", without digits: "layer01/norm" and "layer02/norm" are of one section.
const SECTION = /^[^/]+(?=\/)/;

export interface Section {
  key: string; // '' for metrics without a prefix
  title: string; // "layer01/", or "layer…/" of several prefixes
  panels: Panel[];
}

// Panels by prefix, in the order of their first panels.
export function sectionsOf(panels: readonly Panel[]): Section[] {
  const found = new Map<string, { prefixes: Set<string>; panels: Panel[] }>();
  for (const panel of panels) {
    const prefix = SECTION.exec(panel.name)?.[0] ?? '';
    const key = prefix.replace(/\d+/g, '') || prefix;
    const own = found.get(key) ?? { prefixes: new Set(), panels: [] };
    found.set(key, own);
    own.prefixes.add(prefix);
    own.panels.push(panel);
  }
  return [...found].map(([key, { prefixes, panels: own }]) => ({
    key,
    title: key === '' ? '' : prefixes.size === 1 ? `${[...prefixes][0]}/` : `${key}…/`,
    panels: own,
  }));
}
