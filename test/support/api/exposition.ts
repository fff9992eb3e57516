import { metrics } from '../../lint/metrics-reference.ts';

/** A line of a scrape: its labels and its value. */
export interface Line {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The lines of one name in a scrape, in Prometheus' text format. */
export function linesOf(scrape: string, name: string): Line[] {
  return scrape.split('\n').flatMap((line) => {
    const [, found, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (found !== name) return [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = '', text = '']) => [key, text]);
    return [{ labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }];
  });
}

/** The value of the only line of a name that has these labels among others; undefined when there is none, or more. */
export function valueOf(scrape: string, name: string, labels: Readonly<Record<string, string>> = {}) {
  const found = linesOf(scrape, name).filter((line) =>
    Object.entries(labels).every(([key, value]) => line.labels[key] === value),
  );
  return found.length === 1 ? found[0]?.value : undefined;
}

/** A scrape, whose lines have the labels that docs/metrics-reference.md says. @throws Error for others */
export function documented(scrape: string): string {
  for (const { name, type, labels = [] } of metrics()) {
    const lines = type === 'histogram' ? linesOf(scrape, `${name}_count`) : linesOf(scrape, name);
    for (const line of lines) {
      const found = Object.keys(line.labels).sort().join(' ');
      if (found !== labels.toSorted().join(' ')) throw new Error(`${name} has the labels ${found}`);
    }
  }
  return scrape;
}
