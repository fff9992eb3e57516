import { setImmediate as turn } from 'node:timers/promises';
import type { Family } from './family.ts';
import { heading, sampleLine } from './text-format.ts';

const TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const OPEN = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** Time that a scrape may hold the event loop. A turn after each family would take seconds where turns are long. */
const SLICE_MS = 2;
/** Characters that are encoded at once: one string of all lines would be taken apart where no cache has it any more. */
const PIECE = 16_384;

export interface Scrape {
  readonly contentType: string;
  /** UTF-8. */
  readonly body: Buffer;
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
  readonly #contentType: string;
  readonly #families: readonly { readonly family: Family; readonly heading: string }[];
  #running: Promise<Scrape> | undefined;

  constructor(contentType: string, families: readonly Family[]) {
    this.#contentType = contentType;
    const names = new Set<string>();
    this.#families = families.map((family) => {
      // OpenMetrics has the suffix in the samples only
      const name = contentType === OPEN && family.type === 'counter' ? withoutTotal(family.name) : family.name;
      if (names.has(name)) throw new Error(`there are two metric families of the name ${name}`);
      names.add(name);
      return { family, heading: heading(name, family) };
    });
  }

  scrape(): Promise<Scrape> {
    this.#running ??= this.#scrape().finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #scrape(): Promise<Scrape> {
    const pieces: Buffer[] = [];
    let text = '';
    const take = (): void => {
      pieces.push(Buffer.from(text));
      text = '';
    };
    let since = performance.now();
    for (const { family, heading: head } of this.#families) {
      text += head;
      const read = family.samples();
      for (const sample of read instanceof Promise ? await read : read) {
        text += sampleLine(family.name, sample);
        if (text.length > PIECE) take();
      }
      if (performance.now() - since < SLICE_MS) continue;
      await turn();
      since = performance.now();
    }
    if (this.#contentType === OPEN) text += '# EOF\n';
    take();
    return { contentType: this.#contentType, body: Buffer.concat(pieces) };
  }
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
