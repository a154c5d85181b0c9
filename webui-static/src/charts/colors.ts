// Owns the colors that canvases draw with, read from the theme.
import { useEffect, useState } from 'preact/hooks';
import { theme } from '../settings';

let probe: HTMLElement | undefined;

// The color behind a custom property, as the page shows it now.
export function themeColor(name: string): string {
  if (!probe) {
    probe = document.createElement('span');
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

export const kSeriesColors = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `--series-${n}`);

// A color for each of `count` series. The theme's eight go a long way; beyond, hues a golden angle apart keep neighbors
// distinct. All at once: each look at the theme makes the browser compute styles.
export function seriesColors(count: number): string[] {
  if (count <= kSeriesColors.length) return kSeriesColors.slice(0, count).map(themeColor);
  const dark = Number(themeColor('--page').match(/\d+/)?.[0] ?? 255) < 128;
  return Array.from({ length: count }, (_, at) => `hsl(${Math.round((at * 137.508 + 220) % 360)} 60% ${dark ? 70 : 40}%)`);
}

// A number that changes whenever the colors do: the reader's choice, or the system's.
export function useColors(): string {
  const [system, setSystem] = useState(0);
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const told = (): void => setSystem((n) => n + 1);
    dark.addEventListener('change', told);
    return () => dark.removeEventListener('change', told);
  }, []);
  return `${theme.value} ${system}`;
}
