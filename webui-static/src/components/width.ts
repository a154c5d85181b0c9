// Owns knowing how wide a part of the page is, so that what is drawn fits and its letters keep their size.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

// A reference for the element, and its width in pixels.
export function useWidth<T extends HTMLElement>(first = 960): [{ current: T | null }, number] {
  const host = useRef<T>(null);
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const look = (): void => setWidth(Math.max(240, Math.floor(element.clientWidth)));
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
    return () => observer.disconnect();
  }, []);
  return [host, width];
}
