// Scrolls the current link into view when a row of links overflows.
import { useEffect, useRef } from 'preact/hooks';
import type { RefObject } from 'preact';

// A ref for the scrolling element. Scrolls whenever `current` changes.
export function useCurrentInSight<T extends HTMLElement>(current: string): RefObject<T> {
  const row = useRef<T>(null);
  useEffect(() => {
    const [host, link] = [row.current, row.current?.querySelector<HTMLElement>('[aria-current]')];
    if (!host || !link) return;
    // scrollIntoView() would also scroll the page.
    const [frame, own] = [host.getBoundingClientRect(), link.getBoundingClientRect()];
    host.scrollLeft += own.left - frame.left - (frame.width - own.width) / 2;
  }, [current]);
  return row;
}
