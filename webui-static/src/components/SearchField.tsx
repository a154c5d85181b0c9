// A text field that reports its value when typing pauses, on Enter and when it loses the focus. New values from
// outside are shown only while it does not have the focus, so that a redraw never replaces what is being typed.
import { useEffect, useRef } from 'preact/hooks';

// Milliseconds without input before a text takes effect.
export const REST_MS = 250;

export function SearchField(props: { label: string; value: string; placeholder?: string; say: (v: string) => void }) {
  const timer = useRef<number>();
  const field = useRef<HTMLInputElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const report = (): void => {
    if (timer.current === undefined) return;
    clearTimeout(timer.current);
    timer.current = undefined;
    latest.current.say(field.current?.value ?? '');
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (field.current && document.activeElement !== field.current) field.current.value = props.value;
  }, [props.value]);
  return (
    <input
      ref={field}
      type="search"
      class="search"
      aria-label={props.label}
      placeholder={props.placeholder ?? props.label}
      defaultValue={props.value}
      onInput={() => {
        clearTimeout(timer.current);
        timer.current = window.setTimeout(report, REST_MS);
      }}
      onChange={report}
    />
  );
}
