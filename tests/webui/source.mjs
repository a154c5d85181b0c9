// Extracts the views and the change requests from the UI's source. Tests compare them with the ones they
// covered, so that a new one without a test fails.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../webui-static/src');
const read = (file) => readFileSync(path.join(root, file), 'utf8');
const pattern = (text, hole) => {
  const parts = text.split(hole).map((part) => part.replace(/[.*+?^()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^/]+')}/?$`);
};

// The panels of a page with a workbench; those of a search belong to the page of an experiment.
function panelsOf(page, route, place) {
  if (!read(`pages/${page}.tsx`).includes('<Workbench')) return [];
  const all = /const PANELS = \[(.*?)\]/s.exec(read('workbench/Panels.tsx'))[1].match(/\w+/g).map((panel) => panel.toLowerCase());
  return all
    .filter((panel, at) => at > 0 && (panel !== 'search' || page === 'ExperimentPage'))
    .map((panel) => ({
      name: `${route}?panels=${panel}`,
      holds: (url) => place.test(url.pathname) && url.searchParams.get('panels') === panel,
    }));
}

// Former addresses that lead to another page; comparing.mjs tests where.
const LEADING = ['/det/compare'];

// Every route of the router, once for each tab of its page: its name, and whether a URL matches it.
export function views() {
  const router = read('router.tsx');
  const pages = new Map([...router.matchAll(/const (\w+) = (?:page|numbered|named)\((\w+)\)/g)].map(([, name, page]) => [name, page]));
  return [...router.matchAll(/<Route path="(\/det[^"]*)" component={(\w+)}/g)].filter(([, route]) => !LEADING.includes(route)).flatMap(([, route, name]) => {
    const tabs = /const TABS = \[(.*?)\]/s.exec(read(`pages/${pages.get(name) ?? name}.tsx`))?.[1].match(/\w+/g) ?? [''];
    const place = pattern(route, /:\w+/);
    return [...panelsOf(pages.get(name) ?? name, route, place), ...tabs.map((tab, at) => ({
      name: at === 0 ? route : `${route}?tab=${tab.toLowerCase()}`,
      holds: (url) => place.test(url.pathname) && (url.searchParams.get('tab') ?? '') === (at === 0 ? '' : tab.toLowerCase()),
    }))];
  });
}

// Expands `${on ? 'a' : 'b'}`, and `${action}` whose type `Action` is a union of words, to all possible
// values.
function spelled(text, source) {
  const choice = /\$\{\w+ \? '([^']*)' : '([^']*)'\}/.exec(text);
  if (choice) return [choice[1], choice[2]].flatMap((word) => spelled(text.replace(choice[0], word), source));
  for (const [hole, name] of text.matchAll(/\$\{(\w+)\}/g)) {
    const type = new RegExp(`type ${name[0].toUpperCase()}${name.slice(1)} = ((?:'\\w+'(?: \\| )?)+);`).exec(source);
    if (type) return type[1].match(/\w+/g).flatMap((word) => spelled(text.replace(hole, word), source));
  }
  return [text];
}

// Every POST, PUT, PATCH and DELETE: its name, and whether a request matches it.
export function changes() {
  const files = ['api.ts', ...readdirSync(path.join(root, 'calls')).map((file) => `calls/${file}`)];
  return files.flatMap((file) => {
    const source = read(file);
    // Named addresses: `const at = (model: string): string => `/api/v1/…`;`
    const named = new Map([...source.matchAll(/const (\w+) = \([^)]*\): string => `([^`]+)`/g)].map(([, name, text]) => [name, text]));
    const calls = [...source.matchAll(/\b(?:change|request)(?:<.*?>)?\(\s*([^,]*'(?:POST|PUT|PATCH|DELETE)'[^,]*),\s*(`[^`]*`|'[^']*'|\w+\([^)]*\))/g)];
    return calls.flatMap(([, methods, place]) => {
      const text = place.replace(/^[`']|[`']$/g, '').replace(/^(\w+)\(.*\)$|\$\{(\w+)\([^)]*\)\}/, (all, whole, part) => named.get(whole ?? part) ?? all);
      return methods.match(/POST|PUT|PATCH|DELETE/g).flatMap((method) =>
        spelled(text, source).map((one) => {
          const own = pattern(one, /\$\{[^}]*\}/);
          return { name: `${method} ${one}`, holds: (request) => request.method === method && own.test(request.path) };
        }),
      );
    });
  });
}
