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

// Colors with these numbers. Beyond the theme's ten colors, hues a golden angle apart keep neighbors distinct.
// Computed together, because every read of the theme makes the browser compute styles.
export function colorsOf(numbers: readonly number[]): string[] {
  const own = SERIES_COLORS.map(themeColor);
  const dark = Number(themeColor('--page').match(/\d+/)?.[0] ?? 255) < 128;
  return numbers.map((n) => own[n] ?? `hsl(${Math.round((n * 137.508 + 220) % 360)} 60% ${dark ? 70 : 40}%)`);
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
