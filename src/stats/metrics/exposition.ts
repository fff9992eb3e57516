import { setImmediate as turn } from 'node:timers/promises';
import { Registry, type Metric, type RegistryContentType } from 'prom-client';
import type { Family } from './family.ts';

const TEXT = Registry.PROMETHEUS_CONTENT_TYPE;
const OPEN = Registry.OPENMETRICS_CONTENT_TYPE;

/** Time that a scrape may hold the event loop. A turn after each family would take seconds where turns are long. */
const SLICE_MS = 2;

export interface Scrape {
  readonly contentType: string;
  readonly body: string;
}

/**
 * All metrics of this node, in the text formats of Prometheus. Values are read at each scrape. The event loop may turn between
 * families, so that media does not wait for all of them.
 */
export class Exposition {
  readonly #formats: Readonly<Record<'text' | 'open', Format>>;

  constructor(families: readonly Family[]) {
    this.#formats = { text: new Format(TEXT, families), open: new Format(OPEN, families) };
  }

  /** @param accept header of the request: Prometheus prefers OpenMetrics */
  scrape(accept: string | undefined): Promise<Scrape> {
    return this.#formats[prefersOpenMetrics(accept) ? 'open' : 'text'].scrape();
  }
}

/** One format. Simultaneous scrapes share one answer. */
class Format {
  readonly #registry = new Registry<RegistryContentType>();
  readonly #names: readonly string[];
  #running: Promise<Scrape> | undefined;

  constructor(contentType: RegistryContentType, families: readonly Family[]) {
    this.#registry.setContentType(contentType);
    this.#names = families.map((family) => {
      // OpenMetrics has the suffix in the samples only
      const name = contentType === OPEN && family.type === 'counter' ? withoutTotal(family.name) : family.name;
      this.#registry.registerMetric(asMetric({ ...family, name }));
      return name;
    });
  }

  scrape(): Promise<Scrape> {
    this.#running ??= this.#scrape().finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #scrape(): Promise<Scrape> {
    const { contentType } = this.#registry;
    const families: string[] = [];
    let since = performance.now();
    for (const name of this.#names) {
      families.push(await this.#registry.getSingleMetricAsString(name));
      if (performance.now() - since < SLICE_MS) continue;
      await turn();
      since = performance.now();
    }
    const end = contentType === OPEN ? '# EOF\n' : '';
    return { contentType, body: `${families.join('\n')}\n${end}` };
  }
}

/**
 * The part of a metric that prom-client's registry uses. Its own classes would first copy every value of a scrape into maps by
 * label, which takes longer than writing it.
 */
function asMetric({ name, help, type, samples }: Family): Metric {
  const metric: { readonly name?: string; get(): Promise<object> } = {
    name,
    get: async () => ({ name, help, type, values: await samples() }),
  };
  return metric as Metric;
}

function withoutTotal(name: string): string {
  return name.replace(/_total$/, '');
}

/** Whether a request asks for OpenMetrics before plain text (RFC 9110 section 12.5.1). */
function prefersOpenMetrics(accept = ''): boolean {
  const qualities = { open: 0, text: 0 };
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const version = valueOf(parameters, 'version');
    const quality = Number(valueOf(parameters, 'q') ?? 1);
    if (type === 'application/openmetrics-text' && (version ?? '1.0.0') === '1.0.0')
      qualities.open = Math.max(qualities.open, quality);
    else if (type === 'text/plain' || type === 'text/*' || type === '*/*')
      qualities.text = Math.max(qualities.text, quality);
  }
  return qualities.open > 0 && qualities.open >= qualities.text;
}

function valueOf(parameters: readonly string[], name: string): string | undefined {
  return parameters.find((parameter) => parameter.startsWith(`${name}=`))?.slice(name.length + 1);
}
