// An element that ends with the window: a style property "--above" with the height of the page above it.
import { useLayoutEffect, useRef } from 'preact/hooks';

// Sets how much of the page is above the element, so that it ends with the window. Measured again when `key` changes,
// not in every render: reading the position makes the browser lay the page out.
const BELOW = 16;
export function useAbove(key: string): { current: HTMLDivElement | null } {
  const host = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = host.current;
    if (!element) return;
    const above = Math.round(element.getBoundingClientRect().top + scrollY) + BELOW;
    element.style.setProperty('--above', `${above}px`);
  }, [key]);
  return host;
}
