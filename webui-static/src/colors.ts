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

export const SERIES_COLORS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((n) => `--series-${n}`);

// Shades of each theme color: the part of white (positive) or black (negative) mixed into it. Each keeps a contrast of
// 3 to the card.
const SHADES = { light: [0, -0.35, 0.2], dark: [0, 0.55, -0.35] };

// Numbers from 0 with a color of their own.
export const DISTINCT_COLORS = SERIES_COLORS.length * SHADES.light.length;

// A shade of an rgb() color.
export function shaded(color: string, part: number): string {
  const [target, by] = part > 0 ? [255, part] : [0, -part];
  const mixed = (color.match(/[\d.]+/g) ?? []).slice(0, 3).map((one) => Math.round(Number(one) * (1 - by) + target * by));
  return `rgb(${mixed.join(', ')})`;
}

// Place of a number among the theme colors and its shade: hues change with every number, shades with every tenth.
export const colorPlace = (number: number): { hue: number; shade: number } => ({
  hue: number % SERIES_COLORS.length,
  shade: Math.floor(number / SERIES_COLORS.length) % SHADES.light.length,
});

// Colors of runs by id, or of series by place. A color depends on its number alone, so it is the same in all panels,
// orders and sessions. Numbers DISTINCT_COLORS apart share a color: giving one of them another color would change it
// with the selection. Computed together, because every read of the theme makes the browser compute styles.
export function colorsOf(numbers: readonly number[]): string[] {
  const own = SERIES_COLORS.map(themeColor);
  const dark = Number(themeColor('--page').match(/\d+/)?.[0] ?? 255) < 128;
  const shades = dark ? SHADES.dark : SHADES.light;
  return numbers.map((number) => {
    const { hue, shade } = colorPlace(number);
    const part = shades[shade] ?? 0;
    return part === 0 ? (own[hue] ?? '') : shaded(own[hue] ?? '', part);
  });
}
export const seriesColors = (count: number): string[] => colorsOf(Array.from({ length: count }, (_, at) => at));

// The color at 30 % opacity. Input is an rgb() or hsl() color as the functions above return it.
export const faint = (color: string): string =>
  color.includes(',') ? color.replace('rgb(', 'rgba(').replace(')', ', 0.3)') : color.replace(')', ' / 0.3)');

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
