// How charts are drawn: smoothing, and the menu "Axes" with x axis, logarithm and size. All options are part of the
// address.
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useQuery } from '../address';
import { useClosing } from '../closing';
import { onPhone } from '../phone';
import { SIZES, type Axis, type Look } from './series';

// A menu of the row above the panels. `isSet`: its settings differ from the default.
export function Menu({ label, isSet = false, children }: { label: string; isSet?: boolean; children: ComponentChildren }) {
  const host = useRef<HTMLDivElement>(null);
  useClosing(host);
  return (
    <div class="panel-menu" ref={host}>
      <details class="tool">
        <summary class={isSet ? 'is-set' : ''}>{label}</summary>
        <div class="tool-body">{children}</div>
      </details>
    </div>
  );
}

// The weight of the past in the moving average of each curve. Without a choice each chart has its own: noisy curves of
// several runs are smoothed.
export function Smoothing({ value: chosen }: { value: number | undefined }) {
  const { setQuery } = useQuery();
  return (
    <div class="smoothing">
      <span>Smoothing</span>
      <span class="segments">
        <button type="button" aria-pressed={chosen === undefined} title="Noisy curves of several runs are smoothed; their titles are marked" onClick={() => setQuery({ smooth: chosen === undefined ? '0' : '' })}>
          Auto
        </button>
      </span>
      {chosen !== undefined && (
        <>
          <input
            type="range"
            aria-label="Smoothing"
            title="The weight of the past in a moving average, for all curves"
            min="0"
            max="0.99"
            step="0.01"
            value={chosen}
            onInput={(e) => setQuery({ smooth: e.currentTarget.value })}
          />
          <output>{chosen.toFixed(2)}</output>
        </>
      )}
    </div>
  );
}

// `isTime`: the charts have no other x axis than the time.
export function Axes({ look, axes, isTime }: { look: Look; axes: readonly Axis[]; isTime: boolean }) {
  const { setQuery } = useQuery();
  const isSet = look.log !== undefined || (look.whole && !isTime) || (onPhone() && (look.smoothing ?? 0) > 0) || (look.size ?? 'medium') !== 'medium' || (!isTime && look.axis !== 'batches');
  return (
    <Menu label="Axes" isSet={isSet}>
      <div class="axes" role="group" aria-label="How charts are drawn">
        {!isTime && (
          <label class="axes-row">
            <span>X axis</span>
            <select value={look.axis} onChange={(e) => setQuery({ x: e.currentTarget.value === 'batches' ? '' : e.currentTarget.value })}>
              {axes.map((axis) => (
                <option key={axis}>{axis}</option>
              ))}
            </select>
          </label>
        )}
        <label class="axes-row">
          <span>Log y</span>
          <input type="checkbox" checked={look.log === true} onChange={(e) => setQuery({ log: e.currentTarget.checked ? '1' : '' })} />
        </label>
        {!isTime && (
          <label class="axes-row" title="Otherwise first values that are far from the others are out of sight">
            <span>All values</span>
            <input type="checkbox" checked={look.whole} onChange={(e) => setQuery({ y: e.currentTarget.checked ? 'all' : '' })} />
          </label>
        )}
        {onPhone() && <Smoothing value={look.smoothing} />}
        {!isTime && !onPhone() && (
          <div class="axes-row" role="group" aria-label="Size">
            <span>Size</span>
            <span class="segments">
              {SIZES.map((size) => (
                <button type="button" key={size} aria-pressed={size === (look.size ?? 'medium')} onClick={() => setQuery({ size: size === 'medium' ? '' : size })}>
                  {size}
                </button>
              ))}
            </span>
          </div>
        )}
      </div>
    </Menu>
  );
}
