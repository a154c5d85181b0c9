// The surface of a metric over two numeric hyperparameters: a smooth mean of the trials nearby, and the lines of equal
// value. Positions are parts 0..1 of the axes. Pure.

interface Sample {
  x: number;
  y: number;
  value: number;
}

// Standard deviation of a trial's influence, as a part of an axis.
const REACH = 0.09;
// Least sum of influences at a place with a value: further from all trials nothing is known.
const LEAST = 0.3;

// Numbers at the corners of a grid of cells, by rows from y = 0.
type Grid = readonly (readonly number[])[];
// The same with places where nothing is known.
export type Surface = readonly (readonly (number | undefined)[])[];

// The surface of `columns` × `rows` cells, computed for each `times`-th corner and interpolated between these: undefined
// far from all samples. The mean of all samples, each weighted by a Gaussian of its distance (Nadaraya, On Estimating
// Regression, 1964).
export function surface(samples: readonly Sample[], columns: number, rows: number, times = 1): Surface {
  const sums: number[][] = [];
  const weights: number[][] = [];
  for (let row = 0; row <= rows / times; row++) {
    const own = Array.from({ length: columns / times + 1 }, (_, column) => {
      let [weight, sum] = [0, 0];
      for (const one of samples) {
        const [dx, dy] = [one.x - (column * times) / columns, one.y - (row * times) / rows];
        const influence = Math.exp(-(dx * dx + dy * dy) / (2 * REACH * REACH));
        weight += influence;
        sum += influence * one.value;
      }
      return [weight, sum] as const;
    });
    weights.push(own.map(([weight]) => weight));
    sums.push(own.map(([, sum]) => sum));
  }
  const [whole, weight] = [finer(sums, times), finer(weights, times)];
  return whole.map((line, row) =>
    line.map((sum, column) => {
      const own = weight[row]?.[column] ?? 0;
      return own < LEAST ? undefined : sum / own;
    }),
  );
}

interface Segment {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
}

// The lines on which the surface has a value: marching squares, interpolated along the edges of cells. Cells with an
// unknown corner are left out.
export function isoLines(grid: Surface, level: number): Segment[] {
  const rows = grid.length - 1;
  const columns = (grid[0]?.length ?? 1) - 1;
  const out: Segment[] = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const [a, b, c, d] = [grid[row]?.[column], grid[row]?.[column + 1], grid[row + 1]?.[column + 1], grid[row + 1]?.[column]];
      if (a === undefined || b === undefined || c === undefined || d === undefined) continue;
      const corners = [[column, row, a], [column + 1, row, b], [column + 1, row + 1, c], [column, row + 1, d]] as const;
      const crossings = corners.flatMap(([x, y, value], at) => {
        const [nextX, nextY, next] = corners[(at + 1) % 4] as readonly [number, number, number];
        if (value < level === next < level) return [];
        const part = (level - value) / (next - value);
        return [[(x + part * (nextX - x)) / columns, (y + part * (nextY - y)) / rows] as const];
      });
      for (let at = 0; at + 1 < crossings.length; at += 2) {
        const [from, to] = [crossings[at], crossings[at + 1]];
        if (from && to) out.push({ x1: from[0], y1: from[1], x2: to[0], y2: to[1] });
      }
    }
  }
  return out;
}

// The grid with `times` × `times` cells in place of each, interpolated between its corners.
function finer(grid: Grid, times: number): number[][] {
  const rows = (grid.length - 1) * times;
  const columns = ((grid[0]?.length ?? 1) - 1) * times;
  return Array.from({ length: rows + 1 }, (_, row) =>
    Array.from({ length: columns + 1 }, (__, column) => {
      const [top, left] = [Math.min(grid.length - 2, Math.floor(row / times)), Math.min(columns / times - 1, Math.floor(column / times))];
      const [down, right] = [row / times - top, column / times - left];
      const at = (y: number, x: number): number => grid[y]?.[x] ?? 0;
      return (1 - down) * ((1 - right) * at(top, left) + right * at(top, left + 1)) + down * ((1 - right) * at(top + 1, left) + right * at(top + 1, left + 1));
    }),
  );
}

// How many of the levels a value exceeds.
export const step = (value: number, all: readonly number[]): number => all.filter((level) => value >= level).length;
