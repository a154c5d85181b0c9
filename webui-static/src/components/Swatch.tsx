// A small square in the color of a curve.
export const Swatch = ({ color }: { color: string }) => (
  <span class="swatch" style={{ background: color }} aria-hidden="true" />
);
