// Icons as inline SVG paths on a 16-pixel grid, drawn in the color of the text beside them.
const PATHS = {
  dashboard: 'M2 2h5v6H2zM9 2h5v4H9zM9 8h5v6H9zM2 10h5v4H2z',
  experiments: 'M6 2h4M7 2v4.5L3 13a1 1 0 0 0 .9 1.5h8.2A1 1 0 0 0 13 13L9 6.5V2M5 10h6',
  models: 'M8 1.5l6 3.200v6.600l-6 3.200-6-3.200V4.700zM2 4.700l6 3.300 6-3.300M8 8v6.5',
  tasks: 'M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10.5h3',
  workspaces: 'M1.5 4a1 1 0 0 1 1-1H6l1.5 2h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-11a1 1 0 0 1-1-1z',
  cluster: 'M2 2.5h12v4H2zM2 9.5h12v4H2zM4.5 4.5h.01M4.5 11.5h.01',
  users: 'M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M10.5 2.800a2.5 2.5 0 0 1 0 4.400M12.200 9.800c1.400.6 2.300 1.900 2.300 3.700',
  settings: 'M2 4h7M12 4h2M2 12h2M7 12h7M10.5 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM5.5 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM2 8h12',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.5 10.5L14 14',
  alert: 'M8 1.800l6.700 11.700H1.300zM8 6.200v3.5M8 11.700h.01',
  full: 'M6 2H2v4M10 2h4v4M6 14H2v-4M10 14h4v-4',
  image: 'M2 3h12v10H2zM2 11l3.5-3.5 3 3L11 8l3 3M10.500 6h.01',
  download: 'M8 2v8M4.500 7L8 10.500 11.500 7M2.500 13.500h11',
  eye: 'M1 8s2.500-4.500 7-4.500S15 8 15 8s-2.500 4.500-7 4.500S1 8 1 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  notes: 'M3 1.500h7l3 3v10H3zM10 1.500v3h3M5.500 8h5M5.500 11h5',
  copy: 'M5.500 5.500h8v8h-8zM3.500 10.500h-1v-8h8v1',
  webhook: 'M8 5.500a2 2 0 1 1 1.500-.700l2 4M3.500 13a2 2 0 1 1 1-3.800M4.500 11h7M12 13a2 2 0 1 0-.5-4M8 5.500L5 10.500',
  up: 'M3.500 10L8 5.500 12.500 10',
  down: 'M3.500 6L8 10.500 12.500 6',
  right: 'M6 3.500L10.500 8 6 12.500',
  pin: 'M6 1.500h4l-.500 4.500 2.500 2.500H4l2.500-2.500zM8 8.500v6',
  flag: 'M3.500 14.500V2h9l-2.500 3 2.500 3h-9',
  signout: 'M6 2.5H2.5v11H6M10.5 5L13.5 8l-3 3M13.5 8H6',
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
);

// Two bars of a determinant around a rising curve.
export const Logo = () => (
  <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" />
    <path class="logo-bars" d="M9 7v18M23 7v18" />
    <path class="logo-curve" d="M12.5 20.5c3.400 0 3-9 7-9" />
  </svg>
);
