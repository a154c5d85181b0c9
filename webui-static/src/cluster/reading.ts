// Text of the state of a GPU. Pure.
import { bytes, percent } from '../format';
import type { DeviceReading } from '../wire';

const MEGAHERTZ = 1e6;

// One part for each value that the GPU supports.
export function readingParts(reading: DeviceReading): string[] {
  const parts: string[] = [];
  const add = (value: number | null | undefined, text: (value: number) => string) => {
    if (value !== null && value !== undefined) parts.push(text(value));
  };
  add(reading.utilization, (value) => `${percent(value)} busy`);
  add(reading.memoryUsed, (used) =>
    reading.memoryTotal ? `${bytes(used)} of ${bytes(reading.memoryTotal)}` : `${bytes(used)} in use`,
  );
  add(reading.temperature, (value) => `${Math.round(value)} °C`);
  add(reading.power, (value) => `${Math.round(value)} W`);
  add(reading.smClock, (value) => `${Math.round(value / MEGAHERTZ)} MHz`);
  if (reading.slowdown !== '') parts.push(`slowed down: ${reading.slowdown}`);
  return parts;
}
