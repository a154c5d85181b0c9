// Elements that end with the window.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

// Calls `measure` now and when the height of the page's content has changed: then something above the element may have
// come, grown or gone. Returns a function that ends this.
function onMoved(measure: () => void): () => void {
  const observer = new ResizeObserver(measure);
  const main = document.querySelector('main');
  if (main) observer.observe(main);
  measure();
  return () => observer.disconnect();
}

// Sets how much of the page is above the element, so that it ends with the window. Starts again when `key` changes. A
// hidden element has no position.
const BELOW = 16;
export function useAbove(key = ''): { current: HTMLDivElement | null } {
  const host = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    return onMoved(() => {
      if (element.hidden) return;
      const above = Math.round(element.getBoundingClientRect().top + scrollY) + BELOW;
      element.style.setProperty('--above', `${above}px`);
    });
  }, [key]);
  return host;
}

// Pixels of a chart's frame beside its plot, and of the gap between charts.
const FRAME = 42;
const GAP = 8;
const MAX_ROWS = 2;
const MAX_GROWTH = 1.6;

// The height of the charts of a grid, at least `least`: one or two rows of them, with `below` pixels of keys, reach the
// end of the window.
export function useFilled(least: number, count: number, below: number, fixed: unknown): [{ current: HTMLDivElement | null }, number] {
  const host = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(least);
  useLayoutEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const fit = (): void => {
      const rows = Math.ceil(count / getComputedStyle(element).gridTemplateColumns.split(' ').length);
      const room = innerHeight - BELOW - below - (element.getBoundingClientRect().top + (element.closest('.workbench-panels')?.scrollTop ?? scrollY));
      const own = Math.floor((room - (rows - 1) * GAP) / rows) - FRAME;
      setHeight(fixed || rows > MAX_ROWS ? least : Math.min(Math.max(own, least), Math.round(least * MAX_GROWTH)));
    };
    const observer = new ResizeObserver(fit);
    observer.observe(element);
    addEventListener('resize', fit);
    const stop = onMoved(fit);
    return () => {
      observer.disconnect();
      removeEventListener('resize', fit);
      stop();
    };
  }, [least, count, below, fixed]);
  return [host, height];
}
