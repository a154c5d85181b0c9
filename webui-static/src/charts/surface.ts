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
export type Grid = readonly (readonly number[])[];

export interface Surface {
  values: Grid; // 0 where no sample has any influence
  weights: Grid; // the sums of influences
}

// The surface of `columns` × `rows` cells, computed for each `times`-th corner and interpolated between these: the mean of
// all samples, each weighted by a Gaussian of its distance (Nadaraya, On Estimating Regression, 1964).
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
  const values = whole.map((line, row) => line.map((sum, column) => sum / (weight[row]?.[column] || 1)));
  return { values, weights: weight };
}

type Point = readonly [number, number];

// The corners of a cell in a circle, with their numbers.
function cornersOf(grid: Grid, row: number, column: number): (readonly [number, number, number])[] {
  const at = (x: number, y: number): readonly [number, number, number] => [x, y, grid[y]?.[x] ?? 0];
  return [at(column, row), at(column + 1, row), at(column + 1, row + 1), at(column, row + 1)];
}

// The places at which nothing is known, as polygons: of each cell the part below LEAST, interpolated along its edges;
// cells of a row that are wholly unknown are one polygon.
export function unknownParts({ weights }: Pick<Surface, 'weights'>): Point[][] {
  const [rows, columns] = [weights.length - 1, (weights[0]?.length ?? 1) - 1];
  const scaled = (x: number, y: number): Point => [x / columns, y / rows];
  const out: Point[][] = [];
  for (let row = 0; row < rows; row++) {
    let from = 0; // of the unknown cells before this one
    for (let column = 0; column <= columns; column++) {
      const corners = column < columns ? cornersOf(weights, row, column) : [];
      if (corners.length > 0 && corners.every(([, , weight]) => weight < LEAST)) continue;
      if (from < column) out.push([scaled(from, row), scaled(column, row), scaled(column, row + 1), scaled(from, row + 1)]);
      from = column + 1;
      const part = corners.flatMap(([x, y, weight], at): Point[] => {
        const [nextX, nextY, next] = corners[(at + 1) % corners.length] ?? [x, y, weight];
        const own = weight < LEAST ? [scaled(x, y)] : [];
        if (weight < LEAST === next < LEAST) return own;
        const way = (LEAST - weight) / (next - weight);
        return [...own, scaled(x + way * (nextX - x), y + way * (nextY - y))];
      });
      if (part.length > 0) out.push(part);
    }
  }
  return out;
}

interface Segment {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
}

// The lines on which a grid has a value: marching squares, interpolated along the edges of cells.
export function isoLines(grid: Grid, level: number): Segment[] {
  const rows = grid.length - 1;
  const columns = (grid[0]?.length ?? 1) - 1;
  const out: Segment[] = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const corners = cornersOf(grid, row, column);
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
