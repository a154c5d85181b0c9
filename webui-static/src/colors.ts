// Colors of the theme and of curves.
import { useEffect, useState } from 'preact/hooks';
import { theme } from './settings';

let probe: HTMLElement | undefined;

// The current color of a CSS custom property.
export function themeColor(name: string): string {
  if (!probe) {
    probe = document.createElement('span');
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

const SERIES_COLORS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((n) => `--series-${n}`);

// Known without a computed style, which the browser would have to compute while the page is built.
const isDark = (): boolean => theme.value === 'dark' || (theme.value === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);

// In OKLCH, where equal steps look equal: lightness of even and odd ids with a contrast of 3 to the card, most chroma.
const TONES = { light: { lightness: [0.64, 0.5], chroma: 0.2 }, dark: { lightness: [0.83, 0.73], chroma: 0.17 } };
const CHROMA_STEP = 0.01;
// Hues, in degrees, at equal visible distances: screens show little chroma of some of them, and those look closer. This
// part of the whole between two ids keeps 8 ids in a row furthest apart, and those of 16 that have close hues differ in
// lightness.
const HUES = [0, 41, 87, 136, 186, 239, 281, 323, 360];
const BETWEEN = 0.388;

function hueOf(id: number): number {
  const at = ((id * BETWEEN) % 1) * (HUES.length - 1);
  const [low = 0, high = 0] = HUES.slice(Math.floor(at));
  return low + (high - low) * (at % 1);
}

type Lab = readonly [lightness: number, a: number, b: number];
type Tone = (typeof TONES)['light'];

// An OKLab color in linear sRGB; one that is not in 0..1 cannot be displayed.
function linear([lightness, a, b]: Lab): number[] {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

// The color of a seed, an integer, with the most chroma that can be displayed.
function labOf(seed: number, tone: Tone): Lab {
  const lightness = tone.lightness[seed % 2] ?? 0.6;
  const radians = (hueOf(seed) * Math.PI) / 180;
  const lab = (chroma: number): Lab => [lightness, chroma * Math.cos(radians), chroma * Math.sin(radians)];
  let chroma = tone.chroma;
  while (chroma > 0 && linear(lab(chroma)).some((part) => part < 0 || part > 1)) chroma -= CHROMA_STEP;
  return lab(chroma);
}

const encoded = (part: number): number => Math.round(255 * (part <= 0.0031308 ? 12.92 * part : 1.055 * part ** (1 / 2.4) - 0.055));

// The color of a seed as rgb(). The seed of a run is its id, so that it has the same color on all pages, unless
// that looks like the color of another shown run.
export const runColor = (seed: number, dark: boolean): string =>
  `rgb(${linear(labOf(seed, dark ? TONES.dark : TONES.light)).map(encoded).join(', ')})`;

// Among more runs than these, colors cannot be told apart anyway.
export const MAX_APART = 16;
// The least distance in OKLab at which two colors do not look alike, and the seeds that are tried for it. Lines differ
// by their hues rather than by their lightness, which counts less.
const ALIKE = 0.12;
// The same for the color that a run had last: it changes only for one that can hardly be told from another one.
const SAME = 0.05;
const LIGHTNESS = 0.4;
const SEEDS = Array.from({ length: 64 }, (_, at) => at);

// The colors of a seed in both themes, computed once: each takes several tries.
const known = new Map<number, Lab[]>();
function bothOf(seed: number): Lab[] {
  const both = known.get(seed) ?? [labOf(seed, TONES.light), labOf(seed, TONES.dark)];
  known.set(seed, both);
  return both;
}

// The distance of two colors in the theme that shows less of it.
function apart(one: number, other: number): number {
  const [from, to] = [bothOf(one), bothOf(other)];
  const distance = ([l, a, b]: Lab, [m, c, d]: Lab): number => Math.hypot(LIGHTNESS * (l - m), a - c, b - d);
  return Math.min(...from.map((lab, at) => distance(lab, to[at] ?? lab)));
}

type Seeds = ReadonlyMap<number, number>;
const NO_SEEDS: Seeds = new Map();

// The seeds of shown runs: that of `shown` for those that were shown already, so that no curve changes its color; else
// the usual one, by default the id, or, if its color looks like another one of at most MAX_APART runs, the seed furthest
// from all others. Runs without a usual one give way to those with it.
export function seedsOf(ids: readonly number[], shown: Seeds, usual: Seeds = NO_SEEDS): Map<number, number> {
  const steady = shown.size > MAX_APART ? [] : ids.filter((id) => shown.has(id));
  const seeds = new Map(steady.map((id) => [id, shown.get(id) ?? id]));
  if (ids.length > MAX_APART) return new Map(ids.map((id) => [id, seeds.get(id) ?? usual.get(id) ?? id]));
  for (const id of [...ids].sort((a, b) => Number(usual.has(b)) - Number(usual.has(a)) || a - b)) {
    if (seeds.has(id)) continue;
    const taken = [...seeds.values()];
    const room = (seed: number): number => Math.min(...taken.map((other) => apart(seed, other)));
    const own = usual.get(id) ?? id;
    seeds.set(id, room(own) >= (usual.has(id) ? SAME : ALIKE) ? own : SEEDS.reduce((best, seed) => (room(seed) > room(best) ? seed : best), own));
  }
  return seeds;
}

export const colorOfSeed = (seed: number): string => runColor(seed, isDark());

// Colors of series or groups by place: those of the theme, then further hues. Computed together, because every read of
// the theme makes the browser compute styles.
export function seriesColors(count: number): string[] {
  const own = SERIES_COLORS.map(themeColor);
  const dark = isDark();
  return Array.from({ length: count }, (_, at) => own[at] ?? runColor(at, dark));
}

// The color with less opacity. Input is an rgb() or hsl() color as the functions above return it.
export const faint = (color: string, opacity = 0.3): string =>
  color.includes(',') ? color.replace('rgb(', 'rgba(').replace(')', `, ${opacity})`) : color.replace(')', ` / ${opacity})`);

// A key that changes with the colors: by the user's setting or the system's.
export function useColors(): string {
  const [system, setSystem] = useState(0);
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const update = (): void => setSystem((n) => n + 1);
    dark.addEventListener('change', update);
    return () => dark.removeEventListener('change', update);
  }, []);
  return `${theme.value} ${system}`;
}
