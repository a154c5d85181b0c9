// Measures the width of an element, so that charts fit and their text keeps its size.
import { useCallback, useRef, useState } from 'preact/hooks';

// A ref callback for the element, and its width in pixels; `first` before it is measured.
export function useWidth<T extends HTMLElement>(first = 960): [(element: T | null) => void, number] {
  const [width, setWidth] = useState(first);
  const observer = useRef<ResizeObserver>();
  const host = useCallback((element: T | null) => {
    observer.current?.disconnect();
    if (!element) return;
    const look = (): void => setWidth(Math.max(240, Math.floor(element.clientWidth)));
    observer.current = new ResizeObserver(look);
    observer.current.observe(element);
    look();
  }, []);
  return [host, width];
}
