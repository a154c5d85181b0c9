// The lower edge of a chart: it sets the height of all charts, by pointer or arrow keys.
const LEAST = 96;
const MOST = 800;
const STEP = 16;

const within = (height: number): number => Math.round(Math.min(MOST, Math.max(LEAST, height)));

export interface Resize {
  height: number; // pixels
  drag: (height: number) => void; // while the pointer moves
  drop: (height: number | undefined) => void; // undefined: the usual one
}

export function readHeight(text: string | undefined): number | undefined {
  return /^\d{2,4}$/.test(text ?? '') ? within(Number(text)) : undefined;
}

export function Grip({ height, drag, drop }: Resize) {
  const start = (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    const grip = event.currentTarget;
    grip.setPointerCapture(event.pointerId);
    let now = height;
    const move = ({ clientY }: PointerEvent): void => drag((now = within(height + clientY - event.clientY)));
    const end = (): void => {
      grip.removeEventListener('pointermove', move);
      if (now !== height) drop(now);
    };
    grip.addEventListener('pointermove', move);
    // Also when the pointer is taken away.
    grip.addEventListener('lostpointercapture', end, { once: true });
  };
  return (
    <div
      class="chart-grip"
      role="separator"
      aria-label="Height of the charts"
      aria-orientation="horizontal"
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      aria-valuenow={height}
      title="Drag to set the height of the charts; a double click resets it"
      tabIndex={0}
      onPointerDown={start}
      onDblClick={(event) => {
        event.stopPropagation();
        drop(undefined);
      }}
      onKeyDown={(event) => {
        const by = { ArrowUp: -STEP, ArrowDown: STEP }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        drop(within(height + by));
      }}
    />
  );
}
